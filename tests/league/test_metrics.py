"""Metrics of one step, from rows."""

from __future__ import annotations

from typing import Any

import pytest

from league.metric_table import Metric, named
from league.metrics import step_metrics

TRIPLE = "def f(x):\n    return x * 3"
QUADRUPLE = "def f(x):\n    return x * 4"
NEGATIVE = "def f(x):\n    return x * -7"
OTHER = "def f(x):\n    return x + 3"


def problem(
    task: str, program: str, solve_rate: float | None = 0.5, depth: int | None = 4, teacher: str = "teacher_0"
) -> dict[str, Any]:
    structure = {"ast_depth": depth, "cyclomatic": 1, "lines": 2, "variables": depth}
    return {
        "task": task,
        "program": program,
        "valid": True,
        "solve_rate": solve_rate,
        "repeated": None,
        "teacher_id": teacher,
        **structure,
    }


def invalid(task: str, teacher: str = "teacher_1") -> dict[str, Any]:
    return problem(task, "", None, None, teacher) | {"valid": False, "program": None}


def rollout(
    role: str,
    task: str,
    verdict: str,
    reward: float,
    member: str = "",
    completion: str = "<answer>\n1",
    tokens: int = 3,
) -> dict[str, Any]:
    return {
        "role": role,
        "task": task,
        "verdict": verdict,
        "reward": reward,
        "member_id": member or ("teacher_0" if role == "proposer" else "student_0"),
        "completion": completion,
        "completion_ids": [0] * tokens,
    }


PROBLEMS = [
    problem("deduction", TRIPLE, 1.0, 5),
    problem("deduction", QUADRUPLE, 0.5, 5),
    problem("abduction", NEGATIVE, 0.0, 8, "teacher_1"),
    invalid("abduction"),
    problem("induction", OTHER, 0.5, 20, "teacher_1"),
]
ROLLOUTS = [
    rollout("proposer", "deduction", "ok", 0.0),
    rollout("proposer", "deduction", "ok", 0.5),
    rollout("proposer", "abduction", "error:ValueError", -1.0, "teacher_1"),
    rollout("solver", "deduction", "ok", 1.0, completion="a = 1\n<answer>\n1", tokens=9),
    rollout("solver", "deduction", "wrong", -0.5),
    rollout("solver", "deduction", "format:no block", -1.0, "student_1", "junk"),
    rollout("solver", "induction", "timeout", -0.5, "student_1", "x\n<answer>\ndef f(x): ..."),
]


def of_sides(
    problems: list[dict[str, Any]], rollouts: list[dict[str, Any]], style: Any = "compact"
) -> dict[str, float]:
    return named(one for one in step_metrics(problems, rollouts, style) if one.member_id is None)


def of_member(member_id: str, task: str | None = None) -> dict[str, float]:
    metrics = step_metrics(PROBLEMS, ROLLOUTS, "compact")
    return {one.name: one.value for one in metrics if (one.member_id, one.task) == (member_id, task)}


def test_a_worked_step() -> None:
    metrics = of_sides(PROBLEMS, ROLLOUTS)
    sparse = ("cyclomatic", "lines", "variables", "completion_tokens", "attempts")
    assert {name: value for name, value in metrics.items() if name.split("/")[1] not in sparse} == pytest.approx(
        {
            "teacher/proposals": 5,
            "teacher/proposals/deduction": 2,
            "teacher/proposals/abduction": 2,
            "teacher/proposals/induction": 1,
            "teacher/validity": 0.8,
            "teacher/validity/deduction": 1.0,
            "teacher/validity/abduction": 0.5,
            "teacher/validity/induction": 1.0,
            "teacher/solve_rate": 0.5,
            "teacher/solve_rate/deduction": 0.75,
            "teacher/solve_rate/abduction": 0.0,
            "teacher/solve_rate/induction": 0.5,
            "teacher/ast_depth": 6.0,
            "teacher/ast_depth/deduction": 5.0,
            "teacher/ast_depth/abduction": 8.0,
            "teacher/distinct_programs": 1.0,
            "teacher/distinct_programs/deduction": 1.0,
            "teacher/distinct_programs/abduction": 1.0,
            "teacher/distinct_templates": 1 / 3,
            "teacher/distinct_templates/deduction": 0.5,
            "teacher/distinct_templates/abduction": 1.0,
            "teacher/reward": -1 / 6,
            "teacher/reward/deduction": 0.25,
            "teacher/reward/abduction": -1.0,
            "student/solve_rate": 0.25,
            "student/solve_rate/deduction": 1 / 3,
            "student/solve_rate/induction": 0.0,
            "student/format_failures": 0.25,
            "student/format_failures/deduction": 1 / 3,
            "student/format_failures/induction": 0.0,
            "student/worked": 0.5,
            "student/worked/deduction": 1 / 3,
            "student/worked/induction": 1.0,
            "student/reward": -0.25,
            "student/reward/deduction": -0.5 / 3,
            "student/reward/induction": -0.5,
        }
    )


def test_lengths_counts_and_structure() -> None:
    metrics = of_sides(PROBLEMS, ROLLOUTS)
    assert metrics["teacher/variables"] == 6.0
    assert (metrics["teacher/cyclomatic"], metrics["teacher/lines/abduction"]) == (1.0, 2.0)
    assert (metrics["teacher/completion_tokens"], metrics["student/completion_tokens"]) == (3.0, 4.5)
    assert metrics["student/completion_tokens/deduction"] == 5.0
    assert (metrics["student/attempts"], metrics["student/attempts/induction"]) == (4.0, 1.0)


def test_each_member_is_measured_by_its_own_rows() -> None:
    assert of_member("teacher_1") == pytest.approx(
        {
            "proposals": 3,
            "validity": 2 / 3,
            "solve_rate": 0.25,
            "ast_depth": 8,
            "cyclomatic": 1,
            "lines": 2,
            "variables": 8,
            "distinct_programs": 1,
            "distinct_templates": 1,
            "reward": -1.0,
            "completion_tokens": 3,
        }
    )
    assert of_member("teacher_0")["distinct_templates"] == 0.5
    assert of_member("student_1") == {
        "attempts": 2,
        "solve_rate": 0.0,
        "format_failures": 0.5,
        "worked": 0.5,
        "reward": -0.75,
        "completion_tokens": 3,
    }
    assert of_member("student_0", "deduction")["worked"] == 0.5
    assert of_member("student_0", "induction") == {}


def test_the_order_of_rows_does_not_count() -> None:
    there = list(step_metrics(PROBLEMS, ROLLOUTS, "compact"))
    assert list(step_metrics(PROBLEMS[::-1], ROLLOUTS[::-1], "compact")) == there


def test_repeats_are_a_share_of_the_programs_that_were_compared() -> None:
    again, fresh = ({**problem("deduction", TRIPLE), "repeated": repeated} for repeated in (True, False))
    assert of_sides([again, fresh, fresh, fresh, *PROBLEMS], [])["teacher/repeats"] == 0.25


def test_worked_answers_are_told_in_the_compact_style_alone() -> None:
    assert not [name for name in of_sides(PROBLEMS, ROLLOUTS, "chat") if "worked" in name]


def test_what_did_not_happen_is_not_reported() -> None:
    assert list(step_metrics([], [], "compact")) == []
    assert list(step_metrics([invalid("deduction")], [], "compact")) == [
        Metric("teacher", "proposals", 1.0),
        Metric("teacher", "validity", 0.0),
        Metric("teacher", "proposals", 1.0, task="deduction"),
        Metric("teacher", "validity", 0.0, task="deduction"),
        Metric("teacher", "proposals", 1.0, member_id="teacher_1"),
        Metric("teacher", "validity", 0.0, member_id="teacher_1"),
        Metric("teacher", "proposals", 1.0, task="deduction", member_id="teacher_1"),
        Metric("teacher", "validity", 0.0, task="deduction", member_id="teacher_1"),
    ]


def test_a_text_that_is_no_program_has_no_template_but_counts() -> None:
    metrics = of_sides([problem("deduction", "((("), problem("deduction", ")))")], [])
    assert metrics["teacher/distinct_templates"] == 1.0
