"""From played rounds to the rows of `problems` and `rollouts`.

Owns what stands in which column. Owns no play (`rounds`) and no files (`storage`, which also escapes the text).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields

from league.rounds import PlayedRound, Seat
from league.types import Row
from populora_env.features import program_features
from populora_env.rewards import reward_parts
from populora_env.types import Message, Problem, Role, Verdict

ABILITY = "code"
"""The verl column `ability`."""

_PROBLEM_FIELDS = tuple(field.name for field in fields(Problem))


def problem_row(played: PlayedRound, index: int) -> Row:
    """Return the row of one proposal, valid or not.

    Args:
        played: A settled round.
        index: Number of the proposal in the run, for verl's `extra_info`.
    """
    result, match = played.round.result(), played.match
    proposal, problem = result.proposal, result.problem
    row: Row = {
        "proposal_id": played.proposal_id,
        "problem_id": problem.problem_id if problem else None,
        "step": match.step,
        "task": result.task.value,
        "teacher_id": match.teacher.member_id,
        "teacher_version": match.teacher.version,
        "match_id": match.match_id,
        "program": proposal.program if proposal else None,
        "inputs": list(problem.inputs if problem else proposal.inputs if proposal else ()),
        "outputs": list(problem.outputs) if problem else [],
        "n_visible": problem.n_visible if problem else 0,
        "message": proposal.message if proposal else "",
        "valid": problem is not None,
        "invalid_reason": None if problem else str(result.proposal_verdict),
        "solve_rate": result.solve_rate,
        "repeated": result.repeated,
        "cell_id": None,
        "exec_ms": played.exec_ms,
    }
    return row | _structure(problem) | _training_columns(played, problem, index)


def _structure(problem: Problem | None) -> Row:
    return asdict(program_features(problem.program)) if problem else {}


def _training_columns(played: PlayedRound, problem: Problem | None, index: int) -> Row:
    """Return verl's and TRL's columns: what a solver is shown, and all that is needed to judge its answer."""
    messages = played.round.solver_observation().messages if problem else ()
    return {
        "data_source": f"populora/{played.round.task.value}",
        "prompt": _messages(messages),
        "ability": ABILITY,
        "reward_model": {"style": "rule", "ground_truth": json.dumps(_plain(problem)) if problem else ""},
        "extra_info": {"split": "train", "index": index, "proposal_id": played.proposal_id},
    }


def _plain(problem: Problem) -> Row:
    """Return what `asdict` does, without its deep copies."""
    return {name: getattr(problem, name) for name in _PROBLEM_FIELDS}


def rollout_rows(played: PlayedRound, advantages: Mapping[str, float], sampler: str) -> list[Row]:
    """Return the rows of one round: the proposer's, then one a solver seat.

    Args:
        played: A settled round.
        advantages: By rollout id; 0 in the table for those from which nobody learns.
        sampler: Name of the backend.
    """
    result = played.round.result()
    problem_id = result.problem.problem_id if result.problem else None
    shared = {"task": result.task.value, "problem_id": problem_id, "sampler": sampler}
    rows = [
        _rollout_row(played.proposer, Role.PROPOSER, result.proposal_verdict, result.proposer_reward, advantages)
        | shared
    ]
    for seat, verdict, reward in zip(played.solvers, result.attempt_verdicts, result.solver_rewards, strict=True):
        rows.append(_rollout_row(seat, Role.SOLVER, verdict, reward, advantages) | shared)
    return rows


def _rollout_row(seat: Seat, role: Role, verdict: Verdict, reward: float, advantages: Mapping[str, float]) -> Row:
    completion = seat.completion
    return {
        "rollout_id": seat.rollout_id,
        "step": seat.step,
        "match_id": seat.match_id,
        "group_id": seat.group_id,
        "seat": seat.number,
        "role": role.value,
        "member_id": seat.member.member_id,
        "version": seat.member.version,
        "prompt": _messages(completion.request.messages),
        "prompt_ids": list(completion.prompt_ids),
        "completion_ids": list(completion.token_ids),
        "logprobs": list(completion.logprobs),
        "completion": completion.text,
        "reward": reward,
        "advantage": advantages.get(seat.rollout_id, 0.0),
        "verdict": str(verdict),
        "finish_reason": completion.finish_reason,
        "temperature": completion.request.temperature,
    } | {f"reward_{name}": part for name, part in reward_parts(role, verdict, reward).items()}


def _messages(messages: Sequence[Message]) -> list[Row]:
    return [{"role": message.role, "content": message.content} for message in messages]
