"""Making the runs, one after the other in this process; what comes of each is written to the summary at once.

Owns which runs there are, their order, and what is left. A run that is broken off leaves nothing and is made anew.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.marl.algorithms import ALGORITHMS, REFERENCES, TEAM_ALGORITHMS
from benchmarks.marl.config import TrainingConfig
from benchmarks.marl.environments import ENVIRONMENTS
from benchmarks.marl.summary import Job, Record, append_record, read_summary
from populora_env import Verifier

Say = Callable[[str], None]
_DIGITS = 4


def jobs(seeds: int, environments: Sequence[str], algorithms: Sequence[str]) -> list[Job]:
    """Return the runs in the order in which they are made: all of a seed before the next seed.

    Args:
        seeds: Number of seeds, 1, 2, ...; the pilot's are above 99.
        environments: Names; all references are run in each. A name given twice counts once.
        algorithms: Names; VDN and QMIX are left out where agents are not a team.

    Raises:
        ValueError: A name that does not exist, or no seed.
    """
    if seeds < 1:
        raise ValueError(f"`seeds` must be at least 1, got {seeds!r}")
    for what, given, known in (
        ("environments", environments, tuple(ENVIRONMENTS)),
        ("algorithms", algorithms, ALGORITHMS),
    ):
        if unknown := sorted(set(given) - set(known)):
            raise ValueError(f"`{what}` must be among {', '.join(known)}; got {unknown[0]!r}")
    return [
        Job(seed=seed, environment=name, algorithm=algorithm)
        for seed in range(1, seeds + 1)
        for name in dict.fromkeys(environments)
        for algorithm in dict.fromkeys((*REFERENCES, *algorithms))
        if ENVIRONMENTS[name].team or algorithm not in TEAM_ALGORITHMS
    ]


@dataclass(slots=True, kw_only=True)
class Plan:
    """What is to be run, with what, and where it is kept."""

    jobs: Sequence[Job]
    summary: Path
    """File of the records."""
    config: TrainingConfig = field(default_factory=TrainingConfig)

    def settings(self, job: Job) -> dict[str, Any]:
        """Return all that a run depends on, but its seed."""
        given: dict[str, Any] = asdict(self.config)
        gradient: dict[str, Any] = given.pop("policy_gradient")
        values: dict[str, Any] = given.pop("q_learning")
        rules: dict[str, Any] = {"rules": dict(ENVIRONMENTS[job.environment].rules)}
        if job.algorithm in REFERENCES:
            return rules | {name: given[name] for name in ("games", "episodes")}
        gamma = {"gamma": ENVIRONMENTS[job.environment].gamma}
        return rules | given | gamma | (gradient if job.algorithm in ("ippo", "mappo") else values)

    def left(self) -> list[Job]:
        """Return the runs that the summary does not have.

        Raises:
            ValueError: It has one with other settings, planned or not: one table compares only what ran alike.
        """
        done = read_summary(self.summary)
        for record in done:
            if record.settings != self.settings(record.job):
                raise ValueError(
                    f"{self.summary}: {record.algorithm} on {record.environment}, seed {record.seed} ran with "
                    f"{record.settings!r}, not with {self.settings(record.job)!r}; name another summary"
                )
        there = {record.job for record in done}
        return [job for job in self.jobs if job not in there]


def run_all(plan: Plan, say: Say) -> None:
    """Make the runs that are left and write a record of each.

    Raises:
        ValueError: The summary cannot be used.
        ModuleNotFoundError: TorchRL or mpe2 is needed and is not there.
    """
    left = plan.left()
    say(f"{len(plan.jobs) - len(left)} runs are done, {len(left)} are left")
    if not left:
        return
    from benchmarks.marl.training import play_and_learn  # torch takes seconds to load

    logging.getLogger("torchrl").setLevel(logging.WARNING)  # it tells of every buffer

    with contextlib.ExitStack() as stack:
        judged = any(ENVIRONMENTS[job.environment].judged for job in left)
        verifier = stack.enter_context(Verifier()) if judged else None
        for number, job in enumerate(left, start=1):
            found = play_and_learn(job, plan.config, verifier)
            record = Record(
                environment=job.environment,
                algorithm=job.algorithm,
                seed=job.seed,
                settings=plan.settings(job),
                curve=[[steps, round(score, _DIGITS)] for steps, score in found.curve],
                score=round(found.score, _DIGITS),
                seconds=round(found.seconds, 1),
                cpu_seconds=round(found.cpu_seconds, 1),
            )
            append_record(plan.summary, record)
            say(
                f"{job.environment}, {job.algorithm}, seed {job.seed}: {record.score:.3f} after "
                f"{record.seconds:.0f} s; {len(left) - number} runs are left"
            )
