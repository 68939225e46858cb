"""Names of metrics and rows of their table."""

from __future__ import annotations

import pytest

from league.metric_table import Metric, metric_rows, named, unnamed
from league.schemas import to_table


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("teacher/validity", Metric("teacher", "validity", 0.5)),
        ("student/solve_rate/induction", Metric("student", "solve_rate", 0.5, task="induction")),
        ("base/solve_rate/deduction", Metric("base", "solve_rate", 0.5, task="deduction")),
        ("league/cyclic_share", Metric("league", "cyclic_share", 0.5)),
        ("league/nash_support/student", Metric("student", "nash_support", 0.5)),
        ("league/alpha_rank/teacher_12", Metric("teacher", "alpha_rank", 0.5, member_id="teacher_12")),
        ("games", Metric("league", "games", 0.5)),
        ("custom/surprise/of_kind", Metric("custom", "surprise/of_kind", 0.5)),
    ],
)
def test_what_a_name_says(name: str, metric: Metric) -> None:
    assert list(unnamed({name: 0.5})) == [metric]


def test_names_and_rows_of_a_side_say_the_same() -> None:
    metrics = [Metric("teacher", "reward", 0.25), Metric("teacher", "reward", 0.5, task="abduction")]
    assert named(metrics) == {"teacher/reward": 0.25, "teacher/reward/abduction": 0.5}
    assert list(unnamed(named(metrics))) == metrics


def test_rows_fit_the_table() -> None:
    metrics = [
        Metric("student", "entropy", 1.5, member_id="student_3"),
        Metric("student", "solve_rate", 0.5, task="deduction", member_id="student_3"),
        Metric("league", "cyclic_share", 0.125),
    ]
    rows = to_table("metrics", metric_rows(7, metrics), "r").drop_columns("run_id").to_pylist()
    assert rows[0] == {
        "step": 7,
        "scope": "student",
        "name": "entropy",
        "value": 1.5,
        "member_id": "student_3",
        "task": None,
    }
    assert [Metric(**{name: row[name] for name in Metric._fields}) for row in rows] == metrics
