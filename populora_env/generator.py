"""Our own problems: typed programs with inputs and outputs, their family, depth and the values on the way.

Owns what is asked for: a task, a depth, a family, a split. It seeds the problem buffer, feeds the action space's
samples, the default opponents and nano's training data. Programs come in the normal form of `source.normalise`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from populora_env.generator_drafts import STEPS, Draft
from populora_env.generator_families import Family, is_held_out
from populora_env.generator_values import pick
from populora_env.types import Problem, Task

MAX_DEPTH = 6
"""Most steps of a program; by default the depth is uniform in 1..4."""

Split = Literal["train", "held_out"]
"""Which programs: those that nano is trained on, or those kept from it (`generator_families.is_held_out`)."""

TAGS = tuple(sorted({step.tag for step in STEPS}))
"""Names of the operations, as the messages of induction problems use them."""

_FAMILIES: Final = tuple(Family)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A problem, and what is known of how it was made."""

    problem: Problem
    family: Family
    depth: int
    """Steps of the program: each makes one new variable, or the value returned, from the newest one."""
    worked: tuple[str, ...]
    """Lines that a player may write before its answer: the arguments, then each new value, for the first input."""


def generate_problem(
    rng: np.random.Generator, *, task: Task, n_inputs: int = 4, depth: int | None = None, split: Split = "train"
) -> Problem:
    """Return a problem that is valid by construction, of any family; see `generate`."""
    return generate(rng, task=task, n_inputs=n_inputs, depth=depth, split=split).problem


def generate(
    rng: np.random.Generator,
    *,
    task: Task,
    n_inputs: int = 4,
    depth: int | None = None,
    family: Family | None = None,
    split: Split = "train",
) -> Generated:
    """Return a problem that is valid by construction, with what is known of it.

    Args:
        rng: Source of all randomness.
        task: Type of the problem.
        n_inputs: Inputs of an induction problem, half of them (rounded down) hidden; the other types have one.
        depth: Steps of the program, 1..6; None draws 1..4.
        family: None draws one.
        split: Programs that training may use, or those kept from it.

    Raises:
        ValueError: `depth` or `n_inputs` out of range.
    """
    if depth is not None and not 1 <= depth <= MAX_DEPTH:
        raise ValueError(f"`depth` must be in 1..{MAX_DEPTH}, got {depth!r}")
    if n_inputs < 1:
        raise ValueError(f"`n_inputs` must be at least 1, got {n_inputs!r}")
    induction = task is Task.INDUCTION
    wanted = pick(rng, _FAMILIES) if family is None else family
    steps = int(rng.integers(1, 5)) if depth is None else depth
    while True:
        draft = Draft.start(rng, wanted, n_inputs if induction else 1)
        if not draft.grow(rng, steps) or not draft.distinct_inputs():
            continue
        program = draft.program()
        if is_held_out(program) != (split == "held_out"):
            continue
        problem = draft.problem(program, task, n_visible=n_inputs - n_inputs // 2 if induction else 0)
        return Generated(problem=problem, family=wanted, depth=steps, worked=draft.worked())
