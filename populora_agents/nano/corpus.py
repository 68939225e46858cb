"""nano's training texts: both roles and all three tasks, in the very words of `populora_env.prompts`.

Owns the mixture. Every text is a prompt and the completion that a perfect player would write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from populora_env.generator import generate_problem
from populora_env.prompts import get_style
from populora_env.types import Answer, Problem, Proposal, Role, Task

N_INPUTS = 4
"""Inputs of an induction problem."""

_STYLE = get_style("compact")
_MIXTURE = {
    (Role.SOLVER, Task.DEDUCTION): 0.40,
    (Role.SOLVER, Task.ABDUCTION): 0.15,
    (Role.SOLVER, Task.INDUCTION): 0.15,
    (Role.PROPOSER, Task.DEDUCTION): 0.10,
    (Role.PROPOSER, Task.ABDUCTION): 0.10,
    (Role.PROPOSER, Task.INDUCTION): 0.10,
}
_REFERENCES = {0: 0.1, 1: 0.1, 2: 0.8}


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One training text."""

    role: Role
    task: Task
    prompt: str
    completion: str


def examples(rng: np.random.Generator) -> Iterator[Example]:
    """Yield training texts without end."""
    kinds = list(_MIXTURE)
    while True:
        role, task = kinds[int(rng.choice(len(kinds), p=list(_MIXTURE.values())))]
        yield solver_example(rng, task) if role is Role.SOLVER else proposer_example(rng, task)


def solver_example(rng: np.random.Generator, task: Task, *, depth: int | None = None) -> Example:
    """Return a solver's text for a fresh problem."""
    problem = generate_problem(rng, task=task, n_inputs=N_INPUTS, depth=depth)
    gold = {Task.DEDUCTION: problem.outputs[0], Task.ABDUCTION: problem.inputs[0], Task.INDUCTION: problem.program}
    answer = Answer(task=task, text=gold[task])
    prompt = _STYLE.solver_prompt(problem)
    return Example(role=Role.SOLVER, task=task, prompt=prompt, completion=_STYLE.write_answer(answer))


def proposer_example(rng: np.random.Generator, task: Task) -> Example:
    """Return a proposer's text: references that are problems of ours, and a further one as the proposal."""
    problem = generate_problem(rng, task=task, n_inputs=N_INPUTS)
    references: Sequence[Problem] = (problem,)
    if task is not Task.INDUCTION:
        count = int(rng.choice(list(_REFERENCES), p=list(_REFERENCES.values())))
        references = [generate_problem(rng, task=task) for _ in range(count)]
    proposal = Proposal(task=task, program=problem.program, inputs=problem.inputs, message=problem.message)
    prompt = _STYLE.proposer_prompt(task, references, N_INPUTS)
    return Example(role=Role.PROPOSER, task=task, prompt=prompt, completion=_STYLE.write_proposal(proposal))
