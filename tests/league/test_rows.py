"""The rows of `problems` and `rollouts`: they fit their schemas, and their numbers hang together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from scripted import ScriptedBackend
from test_rounds import GAME, SAMPLING, open_some

from league.learning import rollouts_of
from league.rounds import Room, judge_answers, judge_proposals, propose, solve
from league.rows import problem_row, rollout_rows
from league.schemas import to_table


@pytest.fixture(scope="module")
def played(verifier: Any) -> list[Any]:
    rounds = open_some()
    backend = ScriptedBackend(GAME)
    propose(rounds, backend, SAMPLING)
    judge_proposals(rounds, verifier, Room(None, backend.prompt_ids, SAMPLING))
    solve(rounds, backend, SAMPLING)
    judge_answers(rounds, verifier)
    return rounds


def rows_of(played: list[Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    advantages = {name: 0.25 for one in played for name, _ in rollouts_of(one)}
    problems = [problem_row(one, index) for index, one in enumerate(played)]
    return problems, [row for one in played for row in rollout_rows(one, advantages, "scripted")]


def test_rows_fit_their_schemas_whatever_was_written(played: list[Any]) -> None:
    problems, rollouts = rows_of(played)
    stored = to_table("rollouts", rollouts, "run").to_pylist()
    assert len({row["rollout_id"] for row in stored}) == len(stored)
    assert any(r"\ud800" in row["completion"] and r"\x00" in row["completion"] for row in stored)
    assert to_table("problems", problems, "run").num_rows == len(played)


def test_solve_rate_and_rewards_follow_from_the_rollouts(played: list[Any]) -> None:
    problems, rollouts = rows_of(played)
    for problem in problems:
        own = [row for row in rollouts if row["rollout_id"].startswith(problem["proposal_id"] + "/")]
        (proposer,) = [row for row in rollouts if row["rollout_id"] == problem["proposal_id"]]
        assert proposer["role"] == "proposer"
        if problem["valid"]:
            rho = sum(row["verdict"] == "ok" for row in own) / len(own)
            assert problem["solve_rate"] == rho
            assert proposer["reward"] == (0.0 if rho in (0.0, 1.0) else 1.0 - rho)
            assert problem["ast_depth"] > 0
            assert problem["invalid_reason"] is None
        else:
            assert own == []
            assert proposer["reward"] == -1.0
            assert (problem["solve_rate"], problem["problem_id"], problem.get("ast_depth")) == (None, None, None)
            assert problem["invalid_reason"]
    for row in rollouts:
        parts = [value for name, value in row.items() if name.startswith("reward_")]
        assert sum(parts) == row["reward"]


def test_a_valid_row_is_a_training_example_of_its_own(played: list[Any]) -> None:
    problems, _ = rows_of(played)
    for row in (row for row in problems if row["valid"]):
        truth = json.loads(row["reward_model"]["ground_truth"])
        assert (truth["program"], truth["outputs"]) == (row["program"], row["outputs"])
        assert row["prompt"][0]["content"].startswith(f"<{row['task']}>")
        assert row["data_source"] == f"populora/{row['task']}"
