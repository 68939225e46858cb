"""Scripted players: what sits in a seat when no model does.

Owns well-formed random proposals and answers (the action space samples them too) and two policies made of them.
Nothing here runs a program; what is in a prompt may be hostile and is only read.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace

import numpy as np

from populora_env.config import GameConfig
from populora_env.generator import generate_problem
from populora_env.prompts import PROGRAM, get_style
from populora_env.source import SourceError, parse_program
from populora_env.types import Answer, Observation, Problem, Proposal, Task

_TRIES = 64

_KIND_SIGNS = (
    (str, r"\b{x}\.(upper|replace|find|count\(')|\b{x} \+ '|' \+ {x}\b|\b{x} \* 2\b"),
    (list, r"\b(sorted|sum|max)\({x}\)|\bin {x}\b|\b{x} \+ \[|\b{x}\[|\blen\({x}\)|\b{x}\.count\("),
)
"""How our generator's programs use an argument that is a text or a list; an int shows none of these."""


def random_proposal(rng: np.random.Generator, task: Task, config: GameConfig) -> str:
    """Write a well-formed proposal. One of induction is blind to the program it is about, so it seldom fits."""
    problem = generate_problem(rng, task=task, n_inputs=config.induction_inputs)
    return _write(problem, config)


def fitting_proposal(rng: np.random.Generator, observation: Observation, config: GameConfig) -> str:
    """Write a proposal of the task asked for; for induction, inputs of the kinds that the program seems to take."""
    if observation.task is not Task.INDUCTION:
        return random_proposal(rng, observation.task, config)
    kinds = _argument_kinds(_shown_program(observation.prompt))
    for _ in range(_TRIES):
        problem = generate_problem(rng, task=observation.task, n_inputs=config.induction_inputs)
        if tuple(map(type, ast.literal_eval(problem.inputs[0]))) == kinds:
            break
    return _write(replace(problem, message=f"arguments of f: {len(kinds)}"), config)


def random_answer(rng: np.random.Generator, task: Task, config: GameConfig) -> str:
    """Write a well-formed answer: that of some other small problem, so it is seldom right."""
    problem = generate_problem(rng, task=task, n_inputs=config.induction_inputs, depth=1)
    texts = {Task.DEDUCTION: problem.outputs[0], Task.ABDUCTION: problem.inputs[0], Task.INDUCTION: problem.program}
    return get_style(config.style).write_answer(Answer(task=task, text=texts[task]))


class GeneratorProposer:
    """A policy that proposes generated problems (`fitting_proposal`)."""

    def __init__(self, config: GameConfig, seed: int) -> None:
        """Make the policy; `seed` is the root of its draws."""
        self._config = config
        self._rng = np.random.default_rng(seed)

    def __call__(self, observation: Observation) -> str:
        """Return a proposal of the observation's task."""
        return fitting_proposal(self._rng, observation, self._config)


class GuessingSolver:
    """A policy that runs nothing and reads nothing: it answers with the answer of another problem."""

    def __init__(self, config: GameConfig, seed: int) -> None:
        """Make the policy; `seed` is the root of its draws."""
        self._config = config
        self._rng = np.random.default_rng(seed)

    def __call__(self, observation: Observation) -> str:
        """Return a guess of the kind that the observation's task asks for."""
        return random_answer(self._rng, observation.task, self._config)


def _write(problem: Problem, config: GameConfig) -> str:
    proposal = Proposal(task=problem.task, program=problem.program, inputs=problem.inputs, message=problem.message)
    return get_style(config.style).write_proposal(proposal)


def _shown_program(prompt: str) -> str:
    found = re.search(rf"{PROGRAM}\n(.*)|```python\n(.*?)```", prompt, re.DOTALL)
    return "" if found is None else found[1] or found[2]


def _argument_kinds(program: str) -> tuple[type, ...]:
    """Guess the kinds of the arguments of a program's first function."""
    try:
        first = parse_program(program).body[0]
        names = [argument.arg for argument in first.args.args]  # type: ignore[attr-defined]
    except (SourceError, IndexError, AttributeError):
        return (int,)
    return tuple(
        next((kind for kind, signs in _KIND_SIGNS if re.search(signs.format(x=re.escape(name)), program)), int)
        for name in names
    )
