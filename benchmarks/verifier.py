"""What the verifier costs: ours beside the same without isolation and beside what others use, in turn, in one run.

    python benchmarks/verifier.py [--json] [--rounds N] [--only NAME ...] [--share SHARE]

Every contender keeps as many callers busy as there are zygotes. In each round all run the same small jobs, in turns,
and ours and the reused pool judge the same mix of proposals and answers. Ratios are taken within a round; what is
printed are medians over the rounds. A contender that is not installed is left out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from judges.contenders import Judge, MixJudge, make_jobs
from judges.mix import Sizes, make_mix
from judges.ours import JOBS, UNISOLATED, Ours
from judges.reused_pool import REUSED_POOL
from judges.rivals import RIVALS
from judges.rounds import TURNS, Rates, run_mix, run_small_jobs

CONTENDERS = (*RIVALS, REUSED_POOL, UNISOLATED)
"""In the order in which they start: those that fork should find neither threads nor zygotes of ours."""
OURS = "isolated"
MIX = "mix"
NAMES = (*(contender.name for contender in CONTENDERS), MIX)

RATIOS: dict[str, tuple[str, float | None]] = {
    "isolated_vs_unisolated": (UNISOLATED.name, 0.9),
    "vs_evalplus": ("evalplus", 3.0),
    "vs_bubblewrap": ("bubblewrap", 6.0),
    "vs_fresh_python": ("fresh_python", None),
    "vs_human_eval": ("human_eval", None),
    "vs_reused_pool": (REUSED_POOL.name, None),
}
"""Ratios of small jobs a second, ours in full isolation to another's, each with the least that must hold."""
MIX_RATIOS: dict[str, tuple[str, float | None]] = {
    "mix_vs_reused_pool": (REUSED_POOL.name, 1.0),
    "mix_vs_reused_pool_at_once": ("reused_pool_at_once", None),
}
"""The same for items of the mix a second."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=7, help="rounds (default: 7)")
    parser.add_argument("--share", type=float, default=1.0, help="part of each round's work to do (default: 1)")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=NAMES,
        default=NAMES,
        metavar="NAME",
        help=f"what to measure beside ours in full isolation: {', '.join(NAMES)} (default: all)",
    )
    arguments = parser.parse_args()
    if arguments.rounds < 1 or not 0 < arguments.share <= 1:
        parser.error("`--rounds` must be at least 1, and `--share` in (0, 1]")
    figures = measure(rounds=arguments.rounds, share=arguments.share, only=arguments.only)
    print(json.dumps(figures) if arguments.json else as_text(figures))


def measure(*, rounds: int, share: float, only: Sequence[str]) -> dict[str, Any]:
    """Run all rounds and return the figures, ready for JSON.

    Args:
        rounds: Rounds, at least 1.
        share: Part of each round's work to do, in (0, 1].
        only: Names of what to measure, of `NAMES`; ours in full isolation is always measured.
    """
    callers = max(2, len(os.sched_getaffinity(0)))
    wanted = {*only, REUSED_POOL.name} if MIX in only else {*only}
    versions = {contender.name: contender.version() for contender in CONTENDERS if contender.name in wanted}
    present = [contender for contender in CONTENDERS if versions.get(contender.name) is not None]
    n_jobs = {contender.name: max(TURNS, round(contender.n_jobs * share)) for contender in present}
    n_jobs[OURS] = max(TURNS, round(JOBS * share))
    small, mixed, latencies = Rates(), Rates(), list[float]()
    with contextlib.ExitStack() as stack:
        judges: dict[str, Judge] = {}
        for contender in present:
            judges[contender.name] = judge = stack.enter_context(contextlib.closing(contender.start(callers)))
            judge.judge(make_jobs(np.random.default_rng(0), callers))
        judges[OURS] = ours = stack.enter_context(contextlib.closing(Ours(callers)))
        mix_judges: dict[str, MixJudge] = {}
        if MIX in only:
            # A mix makes the verifier start more zygotes, so that it is no more the same as the one without isolation.
            for_mix = stack.enter_context(contextlib.closing(Ours(callers)))
            for judge in (*judges.values(), for_mix):
                mix_judges |= judge.mix_judges()
        for number in range(rounds):
            rng = np.random.default_rng((1, number))
            run_small_jobs(rng, judges, n_jobs, small)
            latencies += ours.latencies_ms(make_jobs(rng, n_jobs[OURS] // 4 + 1))
            if mix_judges:
                run_mix(make_mix(rng, Sizes.part(share)), mix_judges, mixed, backwards=bool(number % 2))
    ratios = {name: small.ratio(OURS, other) for name, (other, _) in RATIOS.items()}
    return {
        "ratios": ratios | {name: mixed.ratio(OURS, other) for name, (other, _) in MIX_RATIOS.items()},
        "jobs_per_s": small.medians(),
        "mix_items_per_s": mixed.medians(),
        "p50_ms": float(np.percentile(latencies, 50)),
        "p99_ms": float(np.percentile(latencies, 99)),
        "callers": callers,
        "rounds": rounds,
        "versions": versions,
    }


def as_text(figures: dict[str, Any]) -> str:
    """Return the figures as a table for people."""
    lines = [f"medians of {figures['rounds']} rounds, {figures['callers']} callers", "", "small jobs a second"]
    for name, rate in sorted(figures["jobs_per_s"].items(), key=lambda item: -item[1]):
        lines.append(f"  {name:28}{rate:9.0f}   {figures['versions'].get(name) or ''}")
    lines.append(f"  one job, ours: p50 {figures['p50_ms']:.1f} ms, p99 {figures['p99_ms']:.1f} ms")
    if figures["mix_items_per_s"]:
        lines += ["", "items of the mix a second"]
        lines += [f"  {name:28}{rate:9.0f}" for name, rate in figures["mix_items_per_s"].items()]
    lines += ["", "ratios (isolated to the other)"]
    for name, (_, floor) in (RATIOS | MIX_RATIOS).items():
        ratio = figures["ratios"][name]
        if ratio is not None:
            lines.append(f"  {name:28}{ratio:9.2f}" + ("" if floor is None else f"   must be at least {floor:g}"))
    for contender in CONTENDERS:
        if figures["versions"].get(contender.name, "") is None:
            lines.append(f"left out: {contender.name}, which is not installed ({contender.install})")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
