"""What is printed: plain lines, the closing table, and no control characters of anybody's."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest

from league.display import Display, complain
from league.standings import standings
from league.storage import read_rows
from league.types import StepReport


class Terminal(io.StringIO):
    """Text that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def test_a_league_off_a_terminal_prints_a_line_a_step_and_the_run_folder_last(make_league: Any) -> None:
    out = io.StringIO()
    with Display(7, stream=out) as display:
        league, run = make_league(watcher=display)
        league.run()
    tables = [read_rows(run.path, name) for name in ("ratings", "matches", "lineage")]
    display.closing(standings(*tables, caution=3.0), caution=3.0, run=run.path)
    lines = out.getvalue().splitlines()
    assert [line.split()[1] for line in lines if line.startswith("step")] == [f"{step}/7" for step in range(1, 8)]
    assert sum("evolution:" in line for line in lines) == 4
    assert lines[-1] == str(run.path)
    assert "\x1b" not in out.getvalue()
    for member in league.members:
        rating = league.ratings[member.member_id]
        (line,) = [line for line in lines if re.search(rf"[│|] {member.member_id} ", line)]
        numbers = re.findall(r"-?\d+\.\d\d", line)
        bound = rating.mu - 3 * rating.sigma
        assert numbers[:3] == [f"{rating.mu:.2f}", f"{rating.sigma:.2f}", f"{bound:.2f}"]


def test_on_a_terminal_there_is_a_picture_and_births_are_told(
    make_league: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    with Display(7, stream=out) as display:
        league, _ = make_league(watcher=display)
        league.run()
    assert "7/7" in out.getvalue()
    assert "evolution:" in out.getvalue()
    assert "step 1/7" not in out.getvalue()


def test_a_terminal_that_cannot_draw_gets_a_line_a_step(make_league: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    with Display(7, stream=out) as display:
        league, _ = make_league(watcher=display)
        league.run()
    assert sum(line.startswith("step ") for line in out.getvalue().splitlines()) == 7


def test_quiet_only_the_last_line_is_printed(make_league: Any) -> None:
    out = io.StringIO()
    with Display(7, stream=out, quiet=True) as display:
        league, run = make_league(watcher=display)
        league.run()
    display.closing([], caution=3.0, run=run.path)
    display.last("runs/first/report.html\x1b")
    assert out.getvalue() == "runs/first/report.html\\x1b\n"


def test_hostile_samples_are_shown_spelt_out() -> None:
    out = io.StringIO()
    problem = {
        "teacher_id": "teacher_0",
        "step": 1,
        "task": "deduction",
        "solve_rate": 0.5,
        "program": "def f(x):\n    return '\x1b[2J[bold red]\u202e'",
        "inputs": ["('\x07',)"],
    }
    Display(1, stream=out).sample(problem)
    text = out.getvalue()
    assert r"\x1b[2J[bold red]\u202e" in text
    assert r"\x07" in text
    assert not {"\x1b", "\x07", "\u202e"} & set(text)


def test_metrics_that_are_missing_are_left_out() -> None:
    out = io.StringIO()
    report = StepReport(step=1, results=(), births=(), metrics={"teacher/validity": 0.5}, seconds={"play": 1.0})
    Display(3, stream=out).committed(report)
    assert out.getvalue() == "step 1/3  valid 0.50  1.0 s\n"


def test_errors_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    complain("two\nlines \x1b[31m")
    assert capsys.readouterr().err == "error: two lines \\x1b[31m\n"


def test_the_run_folder_is_printed_on_one_line_however_long() -> None:
    out = io.StringIO()
    run = Path("runs") / ("x" * 300)
    Display(1, stream=out).closing([], caution=3.0, run=run)
    assert out.getvalue().splitlines()[-1] == str(run)
