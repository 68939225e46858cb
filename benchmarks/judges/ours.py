"""Our verifier in full isolation, and the same zygotes without any.

Owns how the second is brought about: no setting of the verifier can do that, so its zygotes are started from a script
of the benchmark's own (`open_zygote.py`), and no attack is tried on them.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import populora_env
from judges.contenders import Contender, MixJudge, SmallJob, installed
from judges.mix import Mix
from populora_env.config import VerifierConfig
from populora_env.sandbox import canaries
from populora_env.types import Status, Task
from populora_env.values import encode
from populora_env.verifier import Job, Verifier

_OPEN_ZYGOTE = Path(__file__).with_name("open_zygote.py")
_CHECKOUT = Path(__file__).parents[2]
JOBS = 900
"""Small jobs a round."""
MEMBERS = 4
"""Members of each side whose proposals and answers a mix holds: plain programs of one member share processes."""
_SPY = "def f():\n    open('/proc/self/status').close()"


class Ours:
    """A verifier with as many zygotes as callers, and no cache."""

    _spy_comes_to = Status.ERROR

    def __init__(self, callers: int) -> None:
        """Start the zygotes."""
        self._callers = callers
        self._config = VerifierConfig(workers=callers, cache_size=0)
        self._verifier = Verifier(self._config)
        with self._zygotes():
            self._verifier.__enter__()
        self._check_isolation()

    def judge(self, jobs: Sequence[SmallJob]) -> list[bool]:
        """Run the jobs in one batch."""
        outcomes = self._verifier.run([self._job(job) for job in jobs])
        return [
            outcome.results[0].status is Status.OK and outcome.results[0].payload == encode(job.output)
            for job, outcome in zip(jobs, outcomes, strict=True)
        ]

    def mix_judges(self) -> Mapping[str, MixJudge]:
        """Return the one way to judge a mix: the proposals in one batch, then the answers in another."""
        return {"isolated": self._judge_mix}

    def _judge_mix(self, mix: Mix) -> tuple[list[bool], list[bool]]:
        proposers, owners = _turns(len(mix.proposals)), _owners(mix)
        valid = [verdict.verdict.ok for verdict in self._verifier.check_proposals(mix.proposals, owners=proposers)]
        return valid, [verdict.ok for verdict in self._verifier.check_answers(mix.attempts, owners=owners)]

    def latencies_ms(self, jobs: Sequence[SmallJob]) -> list[float]:
        """Return how long each job takes when every caller waits for one at a time, in milliseconds."""
        with ThreadPoolExecutor(self._callers) as callers:
            return list(callers.map(self._latency_ms, [self._job(job) for job in jobs]))

    def close(self) -> None:
        """End the zygotes."""
        self._verifier.close()

    def _latency_ms(self, job: Job) -> float:
        began = time.perf_counter()
        self._verifier.run([job])
        return (time.perf_counter() - began) * 1000

    def _job(self, job: SmallJob) -> Job:
        return Job(
            program=job.program,
            inputs=(encode(job.arguments),),
            cpu_s=self._config.cpu_s,
            wall_s=self._config.wall_s,
        )

    def _check_isolation(self) -> None:
        """Check on every zygote that what is measured is what it is called."""
        spy = Job(program=_SPY, inputs=(encode(()),), cpu_s=self._config.cpu_s, wall_s=self._config.wall_s)
        found = {outcome.results[0].status for outcome in self._verifier.run([spy] * (8 * self._callers))}
        if found != {self._spy_comes_to}:
            raise RuntimeError(f"expected reading a file to come to {self._spy_comes_to!r}, got {found}")

    def _zygotes(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


def _turns(count: int) -> list[int]:
    """Return whose so many items are: members take turns."""
    return [place % MEMBERS for place in range(count)]


def _owners(mix: Mix) -> list[tuple[str, int]]:
    """Return whose the programs are that run: of a problem that is asked for an input a teacher's, else a student's."""
    problems = dict.fromkeys(problem.problem_id for problem, _ in mix.attempts)
    teachers = dict(zip(problems, _turns(len(problems)), strict=True))
    return [
        ("teacher", teachers[problem.problem_id]) if problem.task is Task.ABDUCTION else ("student", student)
        for (problem, _), student in zip(mix.attempts, _turns(len(mix.attempts)), strict=True)
    ]


class Unisolated(Ours):
    """The same, cut off from nothing: what a job costs without a sandbox."""

    _spy_comes_to = Status.OK

    def mix_judges(self) -> Mapping[str, MixJudge]:
        """Return none: the mix is for ours as it is used."""
        return {}

    @contextlib.contextmanager
    def _zygotes(self) -> Iterator[None]:
        if Path(populora_env.__file__).parents[1] != _CHECKOUT:
            raise RuntimeError(
                f"expected `populora_env` of {_CHECKOUT}, got {populora_env.__file__!r}: install it editable"
            )
        harmless = canaries.canaries()[:1]
        with (
            mock.patch("populora_env.sandbox.worker.ZYGOTE", _OPEN_ZYGOTE),
            mock.patch("populora_env.sandbox.pool.canaries", return_value=harmless),
        ):
            yield


UNISOLATED = Contender(
    name="unisolated", n_jobs=JOBS, start=Unisolated, version=installed("populora_env", "populora-league")
)
