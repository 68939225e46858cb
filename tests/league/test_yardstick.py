"""The frozen base on the members' problems: drawn evenly, judged as answers are, and nobody is the wiser."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted import ScriptedBackend

from league.metric_table import Metric
from league.options import PlayOptions
from league.rounds import PlayedRound, Room, Sampling, judge_answers, judge_proposals, open_rounds, propose, solve
from league.run import main
from league.schemas import SCHEMAS, TIME_COLUMNS
from league.storage import read_table
from league.types import Match, Member, Side
from league.yardstick import Tried, try_base, yardstick_metrics
from populora_agents.types import Completion, Request
from populora_env.config import GameConfig
from populora_env.game import seeded_buffer
from populora_env.types import Task

GAME = GameConfig(seed_problems=24, solver_seats=2)
OWN = {"run_id", *TIME_COLUMNS}
"""Columns in which two runs differ."""
SAMPLING = Sampling(seed=3, proposal_tokens=400, answer_tokens=200, temperature=0.9, top_p=0.95, stop=("never said",))


class Knowing:
    """A base that is told the right answers, and gives every third one of them."""

    name = "knowing"

    def __init__(self, rounds: Sequence[PlayedRound]) -> None:
        """Learn the answers by what is shown."""
        self.asked: list[Request] = []
        self.right = {}
        for one in rounds:
            if one.round.problem is not None:
                problem = one.round.problem
                gold = {
                    Task.DEDUCTION: problem.outputs[0],
                    Task.ABDUCTION: problem.inputs[0],
                    Task.INDUCTION: problem.program,
                }
                self.right[one.round.solver_observation().messages] = f"<answer>\n{gold[problem.task]}"

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Answer: right, wrong, malformed, right, ..."""
        self.asked += requests
        said = [(self.right[one.messages], "<answer>\n'?'", "?")[n % 3] for n, one in enumerate(requests)]
        return [
            Completion(request=one, prompt_ids=(), token_ids=(), logprobs=(), text=text, finish_reason="stop")
            for one, text in zip(requests, said, strict=True)
        ]

    def close(self) -> None:
        """Hold nothing."""


@pytest.fixture(scope="module")
def rounds(verifier: Any) -> list[PlayedRound]:
    matches = [
        Match(
            match_id=number,
            step=1,
            teacher=Member(member_id=f"teacher_{number}", side=Side.TEACHER, slot=number),
            student=Member(member_id=f"student_{number}", side=Side.STUDENT, slot=number),
            expected=0.5,
        )
        for number in (0, 1)
    ]
    backend = ScriptedBackend(GAME)
    room = Room(None, backend.prompt_ids, SAMPLING)
    played = open_rounds(matches, seeded_buffer(GAME), GAME, PlayOptions(groups=2, proposals=4), room, seed=3)
    propose(played, backend, SAMPLING)
    judge_proposals(played, verifier, room)
    solve(played, backend, SAMPLING)
    judge_answers(played, verifier)
    return played


def test_the_base_is_asked_without_adapter_as_members_are(rounds: list[PlayedRound], verifier: Any) -> None:
    base = Knowing(rounds)
    tried = try_base(rounds, 9, base, verifier, SAMPLING, step=1)
    assert len(tried) == len(base.asked) == 9
    assert [one.solved for one in tried] == [True, False, False] * 3
    assert {(one.adapter, one.max_new_tokens, one.temperature, one.top_p, one.stop) for one in base.asked} == {
        (None, 200, 0.9, 0.95, ("never said",))
    }
    assert len({one.seed for one in base.asked}) == 9


def test_problems_are_drawn_evenly_without_repetition_by_seed_and_step(
    rounds: list[PlayedRound], verifier: Any
) -> None:
    def drawn(count: int, step: int) -> list[str]:
        tried = try_base(rounds, count, Knowing(rounds), verifier, SAMPLING, step=step)
        return [one.played.proposal_id for one in tried]

    valid = [played.proposal_id for played in rounds if played.round.problem is not None]
    assert drawn(1000, 1) == valid
    assert drawn(5, 1) == drawn(5, 1) != drawn(5, 2)
    counts = [sum(name in drawn(5, step) for step in range(60)) for name in valid]
    assert len(set(drawn(5, 3))) == 5
    assert min(counts) > 0
    assert np.std(counts) < 3 * np.sqrt(60 * 5 / len(valid))


def test_nothing_valid_asks_nothing(rounds: list[PlayedRound], verifier: Any) -> None:
    invalid = [played for played in rounds if played.round.problem is None]
    assert invalid
    base = Knowing(rounds)
    assert try_base(invalid, 9, base, verifier, SAMPLING, step=1) == []
    assert base.asked == []
    assert list(yardstick_metrics([])) == []


def test_measures_are_of_the_same_problems(rounds: list[PlayedRound]) -> None:
    one, other = (
        next(
            played
            for played in rounds
            if played.round.problem is not None
            and (played.round.task, played.match.teacher.member_id) == (task, f"teacher_{number}")
        )
        for number, task in enumerate((Task.DEDUCTION, Task.ABDUCTION))
    )
    solved = {played.proposal_id: played.round.result().solve_rate or 0.0 for played in (one, other)}
    metrics = list(yardstick_metrics([Tried(played=one, solved=True), Tried(played=other, solved=False)]))
    mean = (solved[one.proposal_id] + solved[other.proposal_id]) / 2
    assert metrics == [
        Metric("base", "problems", 2.0),
        Metric("base", "solve_rate", 0.5),
        Metric("base", "student_solve_rate", mean),
        Metric("base", "problems", 1.0, task="deduction"),
        Metric("base", "solve_rate", 1.0, task="deduction"),
        Metric("base", "student_solve_rate", solved[one.proposal_id], task="deduction"),
        Metric("base", "problems", 1.0, task="abduction"),
        Metric("base", "solve_rate", 0.0, task="abduction"),
        Metric("base", "student_solve_rate", solved[other.proposal_id], task="abduction"),
        Metric("teacher", "base_solve_rate", 1.0, member_id="teacher_0"),
        Metric("teacher", "base_solve_rate", 0.0, member_id="teacher_1"),
        Metric("student", "base_solve_rate", 1.0, member_id="student_0"),
        Metric("student", "base_solve_rate", 0.0, member_id="student_1"),
    ]


@pytest.mark.slow
def test_no_number_of_a_run_depends_on_it(tmp_path: Path) -> None:
    tables = []
    for count in ("0", "6"):
        run = tmp_path / count
        flags = f"--teachers 1 --students 1 --steps 2 --groups 2 --game.seed-problems 24 --yardstick {count}"
        assert main([*flags.split(), "--out", str(run)]) == 0
        columns = {name: [one for one in schema.names if one not in OWN] for name, schema in SCHEMAS.items()}
        tables.append({name: read_table(run, name, columns[name]) for name in SCHEMAS})
    without, along = (one.pop("metrics").to_pylist() for one in tables)
    assert tables[0] == tables[1]
    measured = [row for row in along if "base" in (row["scope"], row["name"].partition("_")[0])]
    assert [row for row in along if row not in measured] == without
    assert {row["value"] for row in measured if row["name"] == "problems" and row["task"] is None} == {6.0}
