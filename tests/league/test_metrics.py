"""Metrics of one step, from rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league.metrics import step_metrics, template
from populora_env.source import SourceError

PURE = settings(deadline=None)


def problem(task: str, program: str, solve_rate: float | None = 0.5, depth: int | None = 4) -> dict[str, Any]:
    return {"task": task, "program": program, "valid": True, "solve_rate": solve_rate, "ast_depth": depth}


def invalid(task: str) -> dict[str, Any]:
    return {"task": task, "program": None, "valid": False, "solve_rate": None, "ast_depth": None}


def rollout(role: str, task: str, verdict: str, reward: float) -> dict[str, Any]:
    return {"role": role, "task": task, "verdict": verdict, "reward": reward}


TRIPLE = "def f(x):\n    return x * 3\n"
QUADRUPLE = "def f(x):\n    return x * 4\n"
NEGATIVE = "def f(x):\n    # the same, but below zero\n    return x * -7\n"
OTHER = "def f(x):\n    return x + 3\n"


def test_a_worked_step() -> None:
    problems = [
        problem("deduction", TRIPLE, 1.0, 5),
        problem("deduction", QUADRUPLE, 0.5, 5),
        problem("abduction", NEGATIVE, 0.0, 8),
        invalid("abduction"),
        problem("induction", OTHER, 0.5, 20),
    ]
    rollouts = [
        rollout("proposer", "deduction", "ok", 0.0),
        rollout("proposer", "deduction", "ok", 0.5),
        rollout("proposer", "abduction", "error:ValueError", -1.0),
        rollout("solver", "deduction", "ok", 1.0),
        rollout("solver", "deduction", "wrong", -0.5),
        rollout("solver", "deduction", "format:no block", -1.0),
        rollout("solver", "induction", "timeout", -0.5),
    ]
    metrics = step_metrics(problems, rollouts)
    assert metrics == pytest.approx(
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
            "student/reward": -0.25,
            "student/reward/deduction": -0.5 / 3,
            "student/reward/induction": -0.5,
        }
    )


def test_what_did_not_happen_is_not_reported() -> None:
    assert step_metrics([], []) == {}
    assert step_metrics([invalid("deduction")], []) == {
        "teacher/proposals": 1.0,
        "teacher/proposals/deduction": 1.0,
        "teacher/validity": 0.0,
        "teacher/validity/deduction": 0.0,
    }


def test_a_template_is_blind_to_constants_and_to_nothing_else() -> None:
    assert template(TRIPLE) == template(QUADRUPLE) == template(NEGATIVE)
    assert template(TRIPLE) != template(OTHER)
    assert template(TRIPLE) != template("def f(x):\n    return x * 3.0\n"), "the type is kept"
    assert template("def f(x):\n    return 'a' + x") == template('def f(x):\n    """Doc."""\n    return "bc" + x')
    assert template("def f(x):\n    return f'{x}a'") == template("def f(x):\n    return f'{x}b'")
    assert template("def f(x):\n    return -x") != template("def f(x):\n    return x")


@PURE
@given(st.integers(), st.integers())
def test_every_number_has_one_template(one: int, other: int) -> None:
    assert template(f"def f(x):\n    return x * {one}") == template(f"def f(x):\n    return x * {other}")


def test_a_text_that_is_no_program_has_no_template_but_counts() -> None:
    with pytest.raises(SourceError):
        template("not python at all")
    metrics = step_metrics([problem("deduction", "((("), problem("deduction", ")))")], [])
    assert metrics["teacher/distinct_templates"] == 1.0
