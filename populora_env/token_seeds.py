"""Problems of the token grammar with which a token game begins, so that all references can be told in tokens.

Owns random derivations (the uniform play of the grammar) and their gold values, found by running the printed program:
the code that runs here is ours, nothing that a player wrote ever reaches this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import numpy as np

from populora_env.buffer import ProblemBuffer
from populora_env.config import GameConfig
from populora_env.problems import problem_id
from populora_env.token_derivation import Derivation, derive_inputs_and_hint, derive_program_and_input
from populora_env.token_printing import HINT_WORDS, Program, argument_text, literal_value, print_program, read_literal
from populora_env.types import Problem, Task

_SEED = 0
"""The seed problems are part of the rules: every game begins with the same ones."""
_TRIES = 200
"""Drafts in a row without a new problem after which the grammar is taken to have nothing new."""

_GLOBALS: dict[str, Any] = {
    "__builtins__": {},
    "abs": abs,
    "enumerate": enumerate,
    "int": int,
    "len": len,
    "list": list,
    "max": max,
    "min": min,
    "range": range,
    "sorted": sorted,
    "str": str,
    "sum": sum,
}


@dataclass(frozen=True, slots=True)
class Seeds:
    """Problems, and their programs by text."""

    buffer: ProblemBuffer
    programs: Mapping[str, Program]


def seeded_buffer(config: GameConfig, *, budget: int, room: int) -> Seeds:
    """Return the problems with which token games begin, made once a process; copy the buffer before you add to it.

    Args:
        config: Rules of the game.
        budget: Most tokens of a proposal.
        room: Most tokens of a literal, outputs included.

    Raises:
        ValueError: Within that budget there are too few different problems.
    """
    return _seeded_buffer(config.tasks, config.buffer_size, config.seed_problems, config.induction_inputs, budget, room)


@lru_cache(maxsize=16)
def _seeded_buffer(tasks: tuple[Task, ...], size: int, n: int, n_inputs: int, budget: int, room: int) -> Seeds:
    rng = np.random.default_rng(_SEED)
    buffer, programs = ProblemBuffer(tasks, size), {}
    for task in tasks:
        added = failures = 0
        while added < n:
            program, problem = _draft(rng, task, n_inputs, budget, room)
            if problem is not None and buffer.add(problem):
                programs[program.text] = program
                added, failures = added + 1, 0
                continue
            failures += 1
            if failures > _TRIES:
                raise ValueError(f"`seed_problems` is {n}, but only {added} different ones were found for {task}")
    return Seeds(buffer=buffer, programs=MappingProxyType(programs))


def finish_randomly(derivation: Derivation, rng: np.random.Generator) -> None:
    """Finish a derivation with tokens drawn uniformly from those that are legal."""
    while not derivation.finished:
        legal = np.flatnonzero(derivation.mask)
        derivation.choose(int(legal[rng.integers(len(legal))]))


def _draft(
    rng: np.random.Generator, task: Task, n_inputs: int, budget: int, room: int
) -> tuple[Program, Problem | None]:
    """Return a random program, and the problem made of it unless a value would not fit the room."""
    derivation = derive_program_and_input(budget, room)
    finish_randomly(derivation, rng)
    program = print_program(derivation.done[0])
    literals, message = derivation.done[1:], ""
    if task is Task.INDUCTION:
        derivation = derive_inputs_and_hint(program.takes, n_inputs, budget, room)
        finish_randomly(derivation, rng)
        literals, message = derivation.done[:-1], HINT_WORDS[derivation.done[-1][0]]
    inputs = tuple(argument_text(literal, program.takes) for literal in literals)
    outputs = tuple(repr(run_program(program, literal)) for literal in literals)
    tokens = [read_literal(output) for output in outputs]
    if any(found is None or len(found[1]) > room for found in tokens):
        return program, None
    problem = Problem(
        problem_id=problem_id(task, program.text, inputs, message),
        task=task,
        program=program.text,
        inputs=inputs,
        outputs=outputs,
        message=message,
        n_visible=n_inputs - n_inputs // 2 if task is Task.INDUCTION else 0,
    )
    return program, problem


def run_program(program: Program, literal: tuple[int, ...]) -> Any:
    """Return what a program gives for the value of a literal; both are of the grammar."""
    names: dict[str, Any] = {}
    exec(program.text, _GLOBALS, names)
    return names["f"](literal_value(literal, program.takes))
