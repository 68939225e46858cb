"""The closing table, worked out by hand."""

from __future__ import annotations

from typing import Any

from league.standings import standings
from league.types import Side


def test_standings_by_hand() -> None:
    def rating(name: str, mu: float, event: str) -> dict[str, Any]:
        return {"member_id": name, "mu": mu, "sigma": 2.0, "event": event}

    def match(outcome: str, observed: float | None, kind: str = "train", teacher: str = "teacher_0") -> dict[str, Any]:
        return {
            "kind": kind,
            "teacher_id": teacher,
            "student_id": "student_0",
            "outcome": outcome,
            "observed": observed,
        }

    def birth(name: str, step: int, operator: str, *parents: str) -> dict[str, Any]:
        return {"child_id": name, "step": step, "operator": operator, "parents": list(parents)}

    names = ("teacher_0", "teacher_1", "student_0")
    found = standings(
        [
            *(rating(name, 25.0, "birth") for name in names),
            rating("teacher_0", 20.0, "update"),
            rating("student_0", 30.0, "update"),
            rating("teacher_1", 25.0, "retire"),
            rating("teacher_2", 25.0, "birth"),
        ],
        [match("student", 1.0), match("draw", 0.5), match("student", None), match("teacher", 0.0, "frozen")],
        [*(birth(name, 0, "founder") for name in names), birth("teacher_2", 5, "mix", "teacher_0", "teacher_1")],
        caution=3.0,
    )
    assert [one.member_id for one in found] == ["teacher_2", "teacher_0", "student_0"]
    child, teacher, student = found
    assert (child.bound, child.born, child.operator, child.parents) == (19.0, 5, "mix", ("teacher_0", "teacher_1"))
    assert (child.won, child.drawn, child.lost, child.solve_rate) == (0, 0, 0, None)
    assert (teacher.bound, teacher.won, teacher.drawn, teacher.lost, teacher.solve_rate) == (14.0, 0, 1, 2, 0.75)
    assert (student.won, student.drawn, student.lost, student.solve_rate) == (2, 1, 0, 0.75)


def test_a_single_agent_has_a_solve_rate_and_no_score() -> None:
    rating = {"mu": 25.0, "sigma": 8.0, "member_id": "agent_0", "event": "birth", "step": 0}
    birth = {"child_id": "agent_0", "step": 0, "operator": "founder", "parents": []}
    match = {"kind": "self_play", "teacher_id": "agent_0", "student_id": "agent_0", "outcome": "teacher"}
    (one,) = standings([rating], [match | {"observed": 0.25}, match | {"observed": 0.75}], [birth], caution=1.0)
    assert (one.side, one.won, one.drawn, one.lost, one.solve_rate) == (Side.AGENT, 0, 0, 0, 0.5)
