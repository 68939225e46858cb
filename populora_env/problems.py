"""From a judged proposal to a problem, and the identity by which problems are told apart.

Owns `problem_id` and `make_problem`. Owns no judgement (that is `verifier`) and no storage (that is `buffer`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from populora_env.config import GameConfig
from populora_env.types import Problem, Proposal, ProposalVerdict, Task

ID_CHARS = 16
"""Hex digits of a problem's id (64 bits)."""


def problem_id(task: Task, program: str, inputs: Sequence[str], message: str) -> str:
    """Return the id of a problem: a hash over all that makes it the problem it is.

    Each part goes in with its length, so that no two different problems spell the same bytes.

    Args:
        task: Type of the problem.
        program: Source in the normal form of `source.normalise`.
        inputs: Canonical literals of the argument tuples.
        message: Hint of an induction problem, else empty.
    """
    digest = hashlib.blake2b(digest_size=ID_CHARS // 2)
    for part in (str(task), program, message, *inputs):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


def make_problem(proposal: Proposal, verdict: ProposalVerdict, config: GameConfig) -> Problem:
    """Return the problem that a valid proposal poses.

    Raises:
        ValueError: The verdict is not ok, or its inputs and outputs do not match the proposal's in number.
    """
    if not verdict.verdict.ok:
        raise ValueError(f"`verdict` must be ok to make a problem, got {verdict.verdict!s}")
    expected = len(proposal.inputs)
    if (len(verdict.inputs), len(verdict.outputs)) != (expected, expected):
        raise ValueError(
            f"`verdict` must hold {expected} inputs and outputs, got {len(verdict.inputs)} and {len(verdict.outputs)}"
        )
    return Problem(
        problem_id=problem_id(proposal.task, proposal.program, verdict.inputs, proposal.message),
        task=proposal.task,
        program=proposal.program,
        inputs=verdict.inputs,
        outputs=verdict.outputs,
        message=proposal.message,
        n_visible=config.visible_inputs if proposal.task is Task.INDUCTION else 0,
    )
