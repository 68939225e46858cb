"""The common face of all that judges, and the small jobs by which they are compared.

Owns no judge: ours are in `ours`, the others in `rivals` and `reused_pool`.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from judges.mix import Mix
from populora_env.generator import generate_problem
from populora_env.types import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallJob:
    """A program of a few lines to run on one input, and the output to compare with."""

    program: str
    arguments: tuple[Any, ...]
    output: Any
    right: bool
    """Whether the program gives `output`."""


MixJudge: TypeAlias = Callable[[Mix], tuple[list[bool], list[bool]]]
"""Returns which proposals of a mix are valid, and which answers right."""


class Judge(Protocol):
    """Anything that runs programs; it keeps as many callers busy as it was started with."""

    def judge(self, jobs: Sequence[SmallJob]) -> list[bool]:
        """Return for each job whether its program gave its output."""
        ...

    def mix_judges(self) -> Mapping[str, MixJudge]:
        """Return by name the ways in which it can judge a mix; most judges know none."""
        ...

    def close(self) -> None:
        """End what was started."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A judge as the benchmark knows it."""

    name: str
    n_jobs: int
    """Jobs a round: about half a second's worth."""
    start: Callable[[int], Judge]
    """Starts the judge for a number of callers."""
    version: Callable[[], str | None]
    """Gives what is installed; None: nothing that works."""
    install: str = ""
    """What to do when nothing is."""


def make_jobs(rng: np.random.Generator, count: int) -> list[SmallJob]:
    """Return jobs of which about half are right."""
    problems = [generate_problem(rng, task=Task.DEDUCTION) for _ in range(count)]
    outputs = [eval(problem.outputs[0]) for problem in problems]
    jobs = []
    for place, problem in enumerate(problems):
        output = outputs[place if rng.random() < 0.5 else int(rng.integers(count))]
        right = bool(output == outputs[place])
        if right:
            output = outputs[place]  # True is 1 to some of the judges, and not to ours
        jobs.append(SmallJob(program=problem.program, arguments=eval(problem.inputs[0]), output=output, right=right))
    return jobs


def installed(module: str, distribution: str) -> Callable[[], str | None]:
    """Return a function that gives a package's version, None if `module` of it cannot be imported."""

    def version() -> str | None:
        try:
            importlib.import_module(module)
            return importlib.metadata.version(distribution)
        except ImportError:
            return None

    return version
