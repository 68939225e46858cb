"""A realistic step's worth of proposals and answers, drawn anew for each round.

Owns what is judged, and which of it is right. No two items of a mix have the same content: neither a cache nor a judge
that looks for duplicates has anything to gain. All items are well-formed, and all proposals valid: what is refused
from its text alone would cost us less than it costs those who run it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from populora_env.generator import generate_problem
from populora_env.generator_values import literal
from populora_env.problems import problem_id
from populora_env.types import Answer, Problem, Proposal, Task

RIGHT_SHARE = 0.45
"""Part of the answers that are right."""
GROUP = 8
"""Answers to one abduction problem."""
INDUCTION_INPUTS = 10
"""Inputs of an induction problem; half of them are hidden."""
_CANDIDATES = 400
"""Problems whose inputs are tried as answers to abduction problems."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How many items of each kind a mix has."""

    deduction: int = 512
    abduction: int = 512
    """A multiple of `GROUP`."""
    induction: int = 512
    proposals: int = 192
    """A multiple of 3: as many of each task."""

    def __post_init__(self) -> None:
        """Check that groups and tasks come out even."""
        if self.abduction % GROUP or self.proposals % len(Task):
            raise ValueError(f"`abduction` must be a multiple of {GROUP} and `proposals` of {len(Task)}, got {self!r}")

    @classmethod
    def part(cls, share: float) -> Self:
        """Return the sizes of a part of a whole mix, in whole groups."""
        whole = cls()
        groups = {name: GROUP * max(1, round(getattr(whole, name) * share / GROUP)) for name in _ANSWERS}
        return cls(**groups, proposals=len(Task) * max(1, round(whole.proposals * share / len(Task))))


_ANSWERS = ("deduction", "abduction", "induction")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """Proposals and answers, with what an honest judge says of them."""

    proposals: tuple[Proposal, ...]
    """All of them valid."""
    attempts: tuple[tuple[Problem, Answer], ...]
    right: tuple[bool, ...]
    """Whether each attempt is right."""

    @property
    def n_items(self) -> int:
        """Proposals and answers."""
        return len(self.proposals) + len(self.attempts)


_Item = tuple[Problem, Answer, bool]


def make_mix(rng: np.random.Generator, sizes: Sizes) -> Mix:
    """Return a mix, its answers in an arbitrary order."""
    source = _Source(rng)
    items = [
        *(_deduction(source) for _ in range(sizes.deduction)),
        *(item for _ in range(sizes.abduction // GROUP) for item in _abduction_group(source)),
        *(_induction(source) for _ in range(sizes.induction)),
    ]
    items = [items[place] for place in rng.permutation(len(items))]
    posed = [source.problem(task) for _ in range(sizes.proposals // len(Task)) for task in Task]
    return Mix(
        proposals=tuple(
            Proposal(task=problem.task, program=problem.program, inputs=problem.inputs, message=problem.message)
            for problem in posed
        ),
        attempts=tuple((problem, answer) for problem, answer, _ in items),
        right=tuple(right for _, _, right in items),
    )


class _Source:
    """Problems, none twice, and inputs by the types of their arguments."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self._seen: set[tuple[object, ...]] = set()
        self._inputs: defaultdict[tuple[type, ...], set[str]] = defaultdict(set)
        for _ in range(_CANDIDATES):
            (text,) = generate_problem(rng, task=Task.DEDUCTION).inputs
            self._inputs[_kinds(text)].add(text)

    def problem(self, task: Task) -> Problem:
        while True:
            problem = generate_problem(self.rng, task=task, n_inputs=INDUCTION_INPUTS)
            contents = {(problem.program, problem.inputs), (problem.inputs, problem.outputs)}
            if not contents & self._seen:
                self._seen |= contents
                return problem

    def is_right(self) -> bool:
        return bool(self.rng.random() < RIGHT_SHARE)

    def inputs_like(self, text: str) -> list[str]:
        inputs = sorted(self._inputs[_kinds(text)])
        return [inputs[place] for place in self.rng.permutation(len(inputs))]


def _deduction(source: _Source) -> _Item:
    problem = source.problem(Task.DEDUCTION)
    right = source.is_right()
    text = problem.outputs[0]
    while not right and _alike([text], [problem.outputs[0]]):
        text = source.problem(Task.DEDUCTION).outputs[0]
    return problem, Answer(task=Task.DEDUCTION, text=text), right


def _induction(source: _Source) -> _Item:
    """Return the program itself, or one that gives something else on the hidden inputs, but gives something."""
    problem = source.problem(Task.INDUCTION)
    right = source.is_right()
    program = problem.program
    hidden = problem.inputs[problem.n_visible :]
    gold: list[str | None] = [*problem.outputs[problem.n_visible :]]
    values = gold
    while not right and (None in values or _alike(values, gold)):
        program = source.problem(Task.DEDUCTION).program
        values = _outputs(program, hidden)
    return problem, Answer(task=Task.INDUCTION, text=program), right


def _abduction_group(source: _Source) -> list[_Item]:
    """Return a group of different answers to one problem; its output is one that several inputs give."""
    n_right = sum(source.is_right() for _ in range(GROUP))
    while True:
        base = source.problem(Task.ABDUCTION)
        inputs = source.inputs_like(base.inputs[0])
        by_output: defaultdict[str | None, list[str]] = defaultdict(list)
        for text, output in zip(inputs, _outputs(base.program, inputs), strict=True):
            by_output[output].append(text)
        by_output.pop(None, None)
        gold = max(by_output, key=lambda output: len(by_output[output]), default=None)
        right = by_output.pop(gold, [])
        wrong = [text for output, texts in by_output.items() if not _alike([output], [gold]) for text in texts]
        if gold is not None and len(right) > n_right and len(wrong) >= GROUP - n_right:
            break
    given, *right = right
    identity = problem_id(base.task, base.program, (given,), "")
    problem = replace(base, problem_id=identity, inputs=(given,), outputs=(gold,))
    answers = [(text, True) for text in right[:n_right]] + [(text, False) for text in wrong[: GROUP - n_right]]
    return [(problem, Answer(task=Task.ABDUCTION, text=text), is_right) for text, is_right in answers]


def _alike(texts: Sequence[str | None], others: Sequence[str | None]) -> bool:
    """Return whether literals are equal to Python, to whom True is 1: an answer that is to be wrong is so for all."""
    return all(eval(str(text)) == eval(str(other)) for text, other in zip(texts, others, strict=True))


def _outputs(program: str, inputs: Sequence[str]) -> list[str | None]:
    """Run a program of our own generator; None where it raises."""
    names: dict[str, Any] = {}
    exec(program, names)
    return [_output(names["f"], text) for text in inputs]


def _output(function: Any, text: str) -> str | None:
    try:
        return literal(function(*eval(text)))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None


def _kinds(text: str) -> tuple[type, ...]:
    return tuple(type(argument) for argument in eval(text))
