"""The summary: records survive their file, and what is no summary is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from finished_runs import STEPS, make_record

from league.experiment.summary import append_record, read_summary


def test_records_survive_their_file(tmp_path: Path) -> None:
    path = tmp_path / "docs" / "summary.jsonl"
    assert read_summary(path) == []
    records = [make_record("4T+4S", 1), make_record("4T+4S", 2)]
    for record in records:
        append_record(path, record)
    assert read_summary(path) == records
    assert np.isnan(records[0].numbers("distinct_templates")).all()
    assert records[0].numbers("tokens").shape == (STEPS,)
    assert records[0].scores() == [0.5, pytest.approx(0.2)]


def test_what_is_no_summary_is_refused_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "summary.jsonl"
    append_record(path, make_record("4T+4S", 1))
    append_record(path, replace(make_record("4T+4S", 1), steps=9))
    with pytest.raises(ValueError, match="two records are of the same run"):
        read_summary(path)
    path.write_text('{"arm": "4T+4S"}\n')
    with pytest.raises(ValueError, match="line 1 is no record"):
        read_summary(path)


def test_those_born_after_the_last_step_are_the_newest_of_each_side() -> None:
    ids = [(side, number) for side in ("student", "teacher") for number in (3, 9, 10, 8)]
    shares = {f"{side}_{number}": {"deduction": number / 100} for side, number in ids}
    settings = {"single_agent": False, "evolve.evolution": True, "evolve.evolve_every": 5, "evolve.fraction": 0.25}
    record = make_record("4T+4S", 1, heldout=shares, settings=settings)
    assert record.newborn() == {"student_10", "teacher_10"}
    assert record.scores(teachers=False, newborn=False) == [0.03, 0.09, 0.08]
    assert replace(record, settings=settings | {"evolve.fraction": 0.5}).newborn() == {
        "student_9",
        "student_10",
        "teacher_9",
        "teacher_10",
    }
    for changed in ({"evolve.evolution": False}, {"single_agent": True}, {"evolve.evolve_every": 7}):
        assert replace(record, settings=settings | changed).newborn() == frozenset()
