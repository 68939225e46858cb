"""The summary: records survive their file, and what is no summary is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from marl_records import make_record

from benchmarks.marl.summary import append_record, read_summary


def test_records_survive_their_file(tmp_path: Path) -> None:
    path = tmp_path / "docs" / "marl.jsonl"
    assert read_summary(path) == []
    records = [make_record("token-team", "vdn", seed, score=0.5) for seed in (1, 2)]
    for record in records:
        append_record(path, record)
    assert read_summary(path) == records


def test_what_is_no_summary_is_refused_with_the_line(tmp_path: Path) -> None:
    path = tmp_path / "marl.jsonl"
    record = make_record("token-team", "vdn", 1, score=0.5)
    append_record(path, record)
    append_record(path, replace(record, score=0.6))
    with pytest.raises(ValueError, match="two records are of the same run"):
        read_summary(path)
    path.unlink()
    append_record(path, replace(record, environment="nowhere"))
    with pytest.raises(ValueError, match="no environment 'nowhere'"):
        read_summary(path)
    path.write_text('{"environment": "token-team"}\n')
    with pytest.raises(ValueError, match="line 1 is no record"):
        read_summary(path)
