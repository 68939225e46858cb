"""What of the problems gets into a report, and that nothing unprintable does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_run import write_run

from league.report.browser import MAX_CHARS, chosen, colours, cut, shown
from league.report.embedding import embedded
from league.report.source import read_attempts, read_run


def test_problems_are_spread_evenly_and_come_with_their_attempts(tmp_path: Path) -> None:
    run = read_run(write_run(tmp_path / "run", steps=4, members=2, proposals=6, attempts=2))
    few = chosen(run.proposals, 12)
    assert few.num_rows == 12
    assert few["step"].to_pylist()[0] == 1
    assert few["step"].to_pylist()[-1] == 4
    assert {few["step"].to_pylist().count(step) for step in range(1, 5)} == {3}
    found = shown(few, read_attempts(run.path, few["proposal_id"].to_pylist()), total=run.proposals.num_rows)
    assert found.total == 48
    for entry, row in zip(found.rows, few.to_pylist(), strict=True):
        assert (entry["program"], entry["rate"]) == (row["program"], row["solve_rate"])
        assert len(entry["attempts"]) == (2 if row["valid"] else 0)
        solved = [attempt[1] for attempt in entry["attempts"]].count("ok")
        assert not row["valid"] or solved / 2 == row["solve_rate"]
    assert chosen(run.proposals, 100).equals(run.proposals)
    assert chosen(run.proposals, 0).num_rows == 0
    with pytest.raises(ValueError, match="`limit` must be at least 0, got -1"):
        chosen(run.proposals, -1)


def test_what_would_take_too_much_room_is_thinned_evenly(tmp_path: Path) -> None:
    hostile = "def f(x):\n    return '" + "<" * 5000 + "'"
    run = read_run(write_run(tmp_path / "run", steps=3, members=2, program=hostile))
    attempts = read_attempts(run.path, run.proposals["proposal_id"].to_pylist())
    found = shown(run.proposals, attempts, total=run.proposals.num_rows, max_bytes=200_000)
    assert 1 < len(found.rows) < run.proposals.num_rows
    assert sum(len(embedded(row).encode()) + 1 for row in found.rows) <= 200_000
    assert {row["step"] for row in found.rows} == {1, 2, 3}
    assert shown(run.proposals, attempts, total=1, max_bytes=0).rows == []


@given(st.text(st.characters(), max_size=60), st.integers(1, 40))
def test_texts_are_cut_and_printable(text: str, limit: int) -> None:
    found = cut(text, limit)
    assert len(found) <= limit + 1
    assert all(char.isprintable() or char == "\n" for char in found)


@given(st.text(st.characters(codec="utf-8"), max_size=80))
def test_colours_cover_the_text_whatever_it_is(text: str) -> None:
    assert sum(int(length) for length in re.findall(r"[a-z-](\d+)", colours(text))) == len(text)


def test_colours_by_hand() -> None:
    assert colours("def f(x):\n    return 'a' # b") == "k3-1f1-9k6-1s3-1c3"


def test_a_long_program_says_that_it_was_cut() -> None:
    assert cut("x" * (MAX_CHARS + 1)) == "x" * MAX_CHARS + "\u2026"
