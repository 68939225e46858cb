"""nano's training texts: both roles and all three tasks, in the very words of `populora_env.prompts`.

Owns the mixture. Every text is a prompt and the completion that a perfect player would write; some answers to deduction
problems are *worked*: the values on the way stand before the answer. All programs are of the generator's training
split.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from populora_env.generator import Generated, generate, generate_problem
from populora_env.prompts import get_style
from populora_env.types import Answer, Problem, Proposal, Role, Task

N_INPUTS = 4
"""Inputs of an induction problem."""

WORKED_SHARE = 0.4
"""Of the deduction texts."""
HABIT = 0.18
"""Share of worked answers that the choice of how to begin is trained towards; far below `WORKED_SHARE`."""

_STYLE = get_style("compact")
_MIXTURE = {
    (Role.SOLVER, Task.DEDUCTION): 0.68,
    (Role.SOLVER, Task.ABDUCTION): 0.09,
    (Role.SOLVER, Task.INDUCTION): 0.08,
    (Role.PROPOSER, Task.DEDUCTION): 0.05,
    (Role.PROPOSER, Task.ABDUCTION): 0.05,
    (Role.PROPOSER, Task.INDUCTION): 0.05,
}
_DIRECT_DEPTHS = (0.42, 0.22, 0.13, 0.10, 0.07, 0.06)
_WORKED_DEPTHS = (0.10, 0.24, 0.21, 0.18, 0.14, 0.13)
_OTHER_DEPTHS = (0.30, 0.20, 0.15, 0.13, 0.11, 0.11)
"""Shares of depths 1, 2, ... in solvers' texts."""
_REFERENCES = {0: 0.1, 1: 0.1, 2: 0.8}


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One training text."""

    role: Role
    task: Task
    prompt: str
    completion: str
    is_begun: bool = False
    """Whether the completion's first token carries no loss, so that the text teaches how to go on, not how to begin."""


def examples(rng: np.random.Generator) -> Iterator[Example]:
    """Yield training texts without end."""
    kinds = list(_MIXTURE)
    ends = np.cumsum(list(_MIXTURE.values()))
    while True:
        role, task = kinds[int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))]
        yield solver_example(rng, task) if role is Role.SOLVER else proposer_example(rng, task)


def solver_example(rng: np.random.Generator, task: Task, *, depth: int | None = None) -> Example:
    """Return a solver's text for a fresh problem."""
    worked = task is Task.DEDUCTION and bool(rng.random() < WORKED_SHARE)
    shares = _WORKED_DEPTHS if worked else _DIRECT_DEPTHS if task is Task.DEDUCTION else _OTHER_DEPTHS
    drawn = 1 + int(np.searchsorted(np.cumsum(shares), rng.random() * sum(shares), side="right"))
    made = generate(rng, task=task, n_inputs=N_INPUTS, depth=drawn if depth is None else depth)
    return Example(
        role=Role.SOLVER,
        task=task,
        prompt=_STYLE.solver_prompt(made.problem),
        completion=worked_answer(made) if worked else _STYLE.write_answer(gold_answer(made.problem)),
        is_begun=worked and bool(rng.random() >= _TEACHES_TO_BEGIN),
    )


_TEACHES_TO_BEGIN = HABIT / (1 - HABIT) * (1 - WORKED_SHARE) / WORKED_SHARE
"""Share of the worked texts whose first token carries loss, which makes `HABIT` the optimum of that choice."""


def gold_answer(problem: Problem) -> Answer:
    """Return a right answer: the output, the input, or the program that the problem was made from."""
    gold = {Task.DEDUCTION: problem.outputs[0], Task.ABDUCTION: problem.inputs[0], Task.INDUCTION: problem.program}
    return Answer(task=problem.task, text=gold[problem.task])


def worked_answer(made: Generated) -> str:
    """Return the action that answers a problem after the values on the way, one a line."""
    return "\n".join((*made.worked, _STYLE.write_answer(gold_answer(made.problem))))


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
