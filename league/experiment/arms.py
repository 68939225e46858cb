"""The arms of the experiment and the settings that all of them share.

Owns names and flags. What is compared with what is in `claims`. The settings were fixed by a pilot on other seeds
(docs/log.md tells which values were tried) before the first run of the summary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

STEPS = 100
"""Of a run, unless the command says more."""
SHARED = ("--attempts", "8", "--teacher-learning-rate", "0.002", "--student-learning-rate", "0.004")
"""Flags of all runs: a hundred steps of the defaults teach too little to tell arms apart."""
_FOUR = ("--teachers", "4", "--students", "4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One way to train, repeated over seeds."""

    name: str
    flags: tuple[str, ...]
    """Of `python -m league.run`, beside the settings that all arms share."""
    meaning: str
    length: int = 1
    """Its runs have this many times the steps of others."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Job:
    """One run."""

    seed: int
    arm: str


ARMS: Mapping[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm(
            name="single-agent",
            flags=(*_FOUR, "--single-agent"),
            meaning="one adapter in both roles, with the proposals of one teacher and the attempts of one student",
        ),
        Arm(
            name="single-agent-total",
            flags=(*_FOUR, "--single-agent", "--baseline-compute", "total"),
            meaning="the same adapter with all proposals and attempts of 4T+4S",
        ),
        Arm(
            name="1T+1S",
            flags=("--teachers", "1", "--students", "1", "--no-evolution"),
            meaning="one teacher and one student, which nobody replaces: there is nobody to select from",
        ),
        Arm(name="4T+4S", flags=_FOUR, meaning="the population, with evolution"),
        Arm(name="4T+4S-no-evolution", flags=(*_FOUR, "--no-evolution"), meaning="nobody is replaced"),
        Arm(
            name="4T+4S-copy-parent",
            flags=(*_FOUR, "--operators", "copy_parent"),
            meaning="children are copies of survivors",
        ),
        Arm(
            name="4T+4S-linear",
            flags=(*_FOUR, "--operators", "linear_0_5"),
            meaning="children are the means of two survivors' deltas",
        ),
        Arm(
            name="4T+4S-variance",
            flags=(*_FOUR, "--game.rewards.scheme", "variance"),
            meaning="teachers are paid 4 rho (1 - rho) instead of the paper's 1 - rho",
        ),
        Arm(name="8T+8S", flags=("--teachers", "8", "--students", "8"), meaning="a population of twice the size"),
        Arm(
            name="4T+4S-rare-evolution",
            flags=(*_FOUR, "--evolve-every", "25"),
            meaning="evolution every 25 steps instead of every 5: children learn for longer before they breed",
        ),
        Arm(
            name="single-agent-total-long",
            flags=(*_FOUR, "--single-agent", "--baseline-compute", "total"),
            meaning="`single-agent-total` for four times the steps",
            length=4,
        ),
        Arm(name="4T+4S-long", flags=_FOUR, meaning="`4T+4S` for four times the steps", length=4),
    )
}
MAIN = ("single-agent", "single-agent-total", "1T+1S", "4T+4S")
"""Arms that every seed runs."""
VARIATIONS = ("4T+4S-no-evolution", "4T+4S-copy-parent", "4T+4S-linear", "4T+4S-variance", "8T+8S")
"""Arms that the first `VARIATION_SEEDS` seeds run."""
VARIATION_SEEDS = 3
FOLLOW_UPS = ("single-agent", "1T+1S", "4T+4S-rare-evolution", "single-agent-total-long", "4T+4S-long")
"""Arms that test why a claim was not seen, and what they are compared with."""
FOLLOW_UP_SEEDS = (11, 12, 13, 14, 15)
"""On which nothing else has run: what the first seeds showed led to these arms."""


def jobs(seeds: int, arms: Sequence[str] | None = None) -> list[Job]:
    """Return the runs in the order in which they are made: all main arms of a seed before the next seed.

    Args:
        seeds: Number of seeds, 1, 2, ... up to 10; the pilot's are above 100.
        arms: Arms to run; None is all main arms, the variations on the first seeds, and the follow-ups on theirs.

    Raises:
        ValueError: An arm that does not exist, or a number of seeds out of range.
    """
    if not 1 <= seeds < min(FOLLOW_UP_SEEDS):
        raise ValueError(f"`seeds` must be in [1, {min(FOLLOW_UP_SEEDS) - 1}], got {seeds!r}")
    if unknown := sorted(set(arms or ()) - ARMS.keys()):
        raise ValueError(f"`arms` must be among {', '.join(ARMS)}; got {unknown[0]!r}")
    if arms is not None:
        return [Job(seed=seed, arm=arm) for seed in range(1, seeds + 1) for arm in arms]
    main = [Job(seed=seed, arm=arm) for seed in range(1, seeds + 1) for arm in MAIN]
    others = [Job(seed=seed, arm=arm) for seed in range(1, min(seeds, VARIATION_SEEDS) + 1) for arm in VARIATIONS]
    return main + others + [Job(seed=seed, arm=arm) for seed in FOLLOW_UP_SEEDS for arm in FOLLOW_UPS]
