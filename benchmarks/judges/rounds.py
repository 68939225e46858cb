"""Rounds in which all judges do the same work in turn, and what comes of them.

Owns the order of the work, the clock, and the check that every judge found what is true.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from judges.contenders import Judge, MixJudge, make_jobs
from judges.mix import Mix

TURNS = 6
"""Parts in which a judge runs the small jobs of a round."""


class Rates:
    """Jobs a second of each judge, one figure a round."""

    def __init__(self) -> None:
        """Start without any."""
        self._rounds: defaultdict[str, list[float]] = defaultdict(list)

    def add(self, name: str, rate: float) -> None:
        """Take down the rate of one round."""
        self._rounds[name].append(rate)

    def medians(self) -> dict[str, float]:
        """Return each judge's median."""
        return {name: statistics.median(rates) for name, rates in self._rounds.items()}

    def ratio(self, name: str, other: str) -> float | None:
        """Return the median over the rounds of how many times faster `name` was; None where one was left out."""
        if name not in self._rounds or other not in self._rounds:
            return None
        return statistics.median(a / b for a, b in zip(self._rounds[name], self._rounds[other], strict=True))


def run_small_jobs(
    rng: np.random.Generator, judges: Mapping[str, Judge], n_jobs: Mapping[str, int], rates: Rates
) -> None:
    """Let every judge run its number of jobs, in turns of which every other one goes through the judges backwards.

    So what slows the machine for a while hits all alike.
    """
    jobs = make_jobs(rng, max(n_jobs.values()))
    seconds = dict.fromkeys(judges, 0.0)
    for turn in range(TURNS):
        for name in reversed(list(judges)) if turn % 2 else judges:
            part = jobs[turn : n_jobs[name] : TURNS]
            began = time.perf_counter()
            found = judges[name].judge(part)
            seconds[name] += time.perf_counter() - began
            _check(name, found, [job.right for job in part])
    for name in judges:
        rates.add(name, n_jobs[name] / seconds[name])


def run_mix(mix: Mix, judges: Mapping[str, MixJudge], rates: Rates, *, backwards: bool) -> None:
    """Let every judge judge the whole mix."""
    for name in reversed(list(judges)) if backwards else judges:
        began = time.perf_counter()
        valid, right = judges[name](mix)
        rates.add(name, mix.n_items / (time.perf_counter() - began))
        _check(name, [*valid, *right], [*(True for _ in mix.proposals), *mix.right])


def _check(name: str, found: Sequence[bool], expected: Sequence[bool]) -> None:
    wrong = sum(ours != theirs for ours, theirs in zip(found, expected, strict=True))
    if wrong:
        raise RuntimeError(f"expected {name} to judge all {len(expected)} items right, got {wrong} wrong")
