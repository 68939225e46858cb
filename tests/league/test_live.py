"""The picture on a terminal: what it says of a run in progress, by a clock that is set by hand."""

from __future__ import annotations

import io
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from league.live import LiveView, clock_time, sparkline
from league.types import StepReport


class Clock:
    """A clock that stands."""

    now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def picture(view: LiveView) -> str:
    out = io.StringIO()
    Console(file=out, width=110, force_terminal=False, markup=False, emoji=False, highlight=False).print(view)
    return out.getvalue()


def report(step: int, **tables: Any) -> StepReport:
    metrics = {"teacher/solve_rate": step / 10}
    return StepReport(step=step, results=(), births=(), metrics=metrics, seconds={}, tables=tables)


def rating(member: str, mu: float, event: str = "update") -> dict[str, Any]:
    return {"member_id": member, "mu": mu, "sigma": 2.0, "event": event}


def test_it_tells_the_step_the_time_left_and_the_curve() -> None:
    clock = Clock()
    view = LiveView(10, clock=clock)
    view.committed(StepReport(step=0, results=(), births=(), metrics={}, seconds={}), "")
    for step in (1, 2):
        clock.now += 6.0
        view.committed(report(step), f"valid 0.{step}")
    text = picture(view)
    assert "2/10" in text
    assert "0:12 gone, about 0:48 left" in text
    assert "▂▂  0.20" in text
    assert "valid 0.2" in text


def test_a_phase_is_measured_by_how_long_it_took_the_last_time() -> None:
    clock = Clock()
    view = LiveView(10, clock=clock)
    view.phase("solve", 100, "answers")
    assert "solve 100 answers" in picture(view)
    assert "about" not in picture(view)
    clock.now = 2.0
    view.phase("update", 10, "rollouts")
    view.phase("solve", 200, "answers")
    clock.now = 5.0
    assert "about 75% at 50 answers/s" in picture(view)
    clock.now = 50.0
    assert "about 99%" in picture(view)
    view.phase("solve", 0, "answers")
    assert "solve 0 answers" in picture(view)


def test_leaders_are_those_with_the_highest_means_of_those_still_there() -> None:
    view = LiveView(10)
    births = [rating("teacher_0", 25.0, "birth"), rating("teacher_1", 27.0), rating("student_0", 24.0)]
    view.committed(report(1, ratings=births), "")
    assert "teacher_1 27.0 ± 2.0, teacher_0 25.0 ± 2.0" in picture(view)
    view.committed(report(2, ratings=[rating("teacher_1", 27.0, "retire")]), "")
    assert "teacher_1" not in picture(view)


def test_the_last_problem_is_shown_with_its_answers_and_nothing_hostile_gets_through() -> None:
    problem = {
        "valid": True,
        "proposal_id": "p",
        "teacher_id": "teacher_0",
        "task": "deduction",
        "program": "def f(x):\n    return '\x1b[2J[bold]\u202e'" + "\n    # line" * 20,
    }
    attempts = [
        {"role": "solver", "group_id": "p", "member_id": "student_1", "verdict": verdict}
        for verdict in ("ok", "wrong\x07")
    ]
    view = LiveView(3)
    view.committed(report(1, problems=[problem, {"valid": False}], rollouts=attempts), "")
    text = picture(view)
    assert "teacher_0 asks student_1 (deduction): ok, wrong\\x07" in text
    assert r"\x1b[2J[bold]\u202e" in text
    assert "... 14 more lines" in text
    assert not {"\x1b", "\x07", "\u202e"} & set(text)


@given(st.lists(st.floats(allow_nan=False), max_size=20))
def test_a_sparkline_has_a_block_a_value(values: list[float]) -> None:
    assert len(sparkline(values)) == len(values)
    assert set(sparkline(values)) <= set("▁▂▃▄▅▆▇█")


def test_times_by_hand() -> None:
    assert [clock_time(seconds) for seconds in (0, 59.6, 3599, 3600, 36061)] == [
        "0:00",
        "1:00",
        "59:59",
        "1:00:00",
        "10:01:01",
    ]
