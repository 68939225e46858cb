"""Suites: fixed problems with labels, and how answers to them are scored.

Owns the type that benchmarks share. Owns neither problems (a suite is made by whoever knows some) nor who answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from populora_env.config import GameConfig
from populora_env.parsing import parse_answer
from populora_env.prompts import get_style
from populora_env.types import Answer, Observation, Problem, Role, Task
from populora_env.verifier import Verifier

Figures = dict[str, float]
"""Shares by name."""


class Speak(Protocol):
    """Who is measured: something that turns observations into texts."""

    def __call__(
        self, observations: Sequence[Observation], temperature: float, max_new_tokens: int, begin: str = ""
    ) -> list[str]:
        """Return one text an observation; each starts with `begin`, which is put into the player's mouth."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A problem of a suite."""

    problem: Problem
    labels: Mapping[str, str]
    """What shares are broken down by, e.g. depth and family."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Problems that never change, under a name that stands for them."""

    name: str
    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        """Check that there is something to answer."""
        if not self.items:
            raise ValueError(f"`items` of suite {self.name!r} must not be empty")

    def of_task(self, task: Task) -> Suite:
        """Return the suite of one task's problems.

        Raises:
            ValueError: There is none.
        """
        return Suite(name=self.name, items=tuple(item for item in self.items if item.problem.task is task))

    def observations(self, config: GameConfig) -> list[Observation]:
        """Return what a solver of each problem sees."""
        style = get_style(config.style)
        prompts = [style.solver_prompt(item.problem) for item in self.items]
        return [
            Observation(role=Role.SOLVER, task=item.problem.task, prompt=prompt, messages=style.messages(prompt))
            for item, prompt in zip(self.items, prompts, strict=True)
        ]

    def judge(self, texts: Sequence[str], verifier: Verifier, config: GameConfig) -> list[bool]:
        """Return which problems the texts solve, one text a problem."""
        pairs = [
            (item.problem, parse_answer(text, task=item.problem.task, config=config))
            for item, text in zip(self.items, texts, strict=True)
        ]
        asked = [(problem, answer) for problem, answer in pairs if isinstance(answer, Answer)]
        verdicts = iter(verifier.check_answers(asked))
        return [isinstance(answer, Answer) and next(verdicts).ok for _, answer in pairs]

    def shares(self, solved: Sequence[bool]) -> Figures:
        """Return the share solved of each task, and of each task and label: `deduction`, `deduction_depth_3`."""
        groups: dict[str, list[bool]] = {}
        for item, ok in zip(self.items, solved, strict=True):
            names = [f"_{key}_{value}" for key, value in sorted(item.labels.items())]
            for name in ("", *names):
                groups.setdefault(f"{item.problem.task}{name}", []).append(ok)
        return {name: sum(group) / len(group) for name, group in sorted(groups.items())}
