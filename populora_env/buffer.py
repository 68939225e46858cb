"""Earlier problems, from which proposers are shown references.

Owns storage: one list a task, told apart by `problem_id`, the newest kept when full, drawn uniformly with an explicit
generator. Owns neither validity (only judged problems are added) nor files (`rows` are plain data for others to write).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from populora_env.generator import generate_problem
from populora_env.types import Problem, Task

_SEED_TRIES = 50
"""Duplicates in a row after which the generator is taken to have nothing new."""


class ProblemBuffer:
    """Problems by task. Lists are in order of age, so a buffer rebuilt from its rows draws the same."""

    def __init__(self, tasks: Sequence[Task], size: int) -> None:
        """Make an empty buffer that keeps the newest `size` problems of each of the `tasks`.

        Raises:
            ValueError: No task, or a size below 1.
        """
        if not tasks or size < 1:
            raise ValueError(f"`tasks` must not be empty and `size` be at least 1, got {tasks!r} and {size!r}")
        self.size = size
        self._problems: dict[Task, list[Problem]] = {task: [] for task in tasks}
        self._ids: dict[Task, set[str]] = {task: set() for task in tasks}

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Tasks whose problems are kept."""
        return tuple(self._problems)

    def __len__(self) -> int:
        """Return the number of problems over all tasks."""
        return sum(map(len, self._problems.values()))

    def problems(self, task: Task) -> tuple[Problem, ...]:
        """Return the problems of one task, oldest first."""
        return tuple(self._of(task))

    def add(self, problem: Problem) -> bool:
        """Keep a problem, dropping the oldest of its task when full; return False if it is there already.

        Raises:
            ValueError: The problem's task is not kept here.
        """
        problems, ids = self._of(problem.task), self._ids[problem.task]
        if problem.problem_id in ids:
            return False
        if len(problems) >= self.size:
            ids.discard(problems.pop(0).problem_id)
        problems.append(problem)
        ids.add(problem.problem_id)
        return True

    def draw(self, task: Task, k: int, rng: np.random.Generator) -> tuple[Problem, ...]:
        """Draw `k` distinct problems uniformly as references for a proposal of type `task`; all if there are fewer.

        References of deduction and abduction are problems of that type. Those of induction are taken for their
        programs, from deduction and abduction together; from induction only where neither is kept.
        """
        pools = [self._of(source) for source in self._sources(task)]
        total = sum(map(len, pools))
        if k < 1 or not total:
            return ()
        places = rng.choice(total, size=min(k, total), replace=False)
        return tuple(_pick(pools, int(place)) for place in places)

    def seed(self, rng: np.random.Generator, n: int, n_inputs: int) -> None:
        """Add `n` generated problems to each task.

        Raises:
            ValueError: The generator found too few that are new.
        """
        for task in self.tasks:
            added = failures = 0
            while added < n:
                if self.add(generate_problem(rng, task=task, n_inputs=n_inputs)):
                    added, failures = added + 1, 0
                    continue
                failures += 1
                if failures > _SEED_TRIES:
                    raise ValueError(f"`n` is {n}, but only {added} different problems were found for {task}")

    def copy(self) -> ProblemBuffer:
        """Return a buffer with the same problems that grows apart from this one."""
        other = ProblemBuffer(self.tasks, self.size)
        other._problems = {task: list(problems) for task, problems in self._problems.items()}
        other._ids = {task: set(ids) for task, ids in self._ids.items()}
        return other

    def rows(self) -> list[dict[str, Any]]:
        """Return the problems as plain data, oldest first within each task."""
        rows = [asdict(problem) for problems in self._problems.values() for problem in problems]
        return [
            row | {"task": str(row["task"]), "inputs": list(row["inputs"]), "outputs": list(row["outputs"])}
            for row in rows
        ]

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, Any]], *, tasks: Sequence[Task], size: int) -> ProblemBuffer:
        """Rebuild a buffer from `rows`, which come in their order of age."""
        buffer = cls(tasks, size)
        for row in rows:
            values = {"task": Task(row["task"]), "inputs": tuple(row["inputs"]), "outputs": tuple(row["outputs"])}
            buffer.add(Problem(**(dict(row) | values)))
        return buffer

    def _of(self, task: Task) -> list[Problem]:
        if task not in self._problems:
            raise ValueError(f"`task` must be one of {[str(kept) for kept in self.tasks]}, got {task!r}")
        return self._problems[task]

    def _sources(self, task: Task) -> tuple[Task, ...]:
        if task is not Task.INDUCTION:
            return (task,)
        with_programs = tuple(other for other in (Task.DEDUCTION, Task.ABDUCTION) if other in self._problems)
        return with_programs or (task,)


def _pick(pools: Sequence[Sequence[Problem]], place: int) -> Problem:
    for pool in pools:
        if place < len(pool):
            return pool[place]
        place -= len(pool)
    raise IndexError(place)
