"""The command: what it writes from a summary, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from marl_records import make_record

from benchmarks.marl.__main__ import main
from benchmarks.marl.summary import append_record


def test_the_document_is_written_from_the_summary_alone(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    places = [f"--{name}={tmp_path / file}" for name, file in (("summary", "s.jsonl"), ("picture", "p.svg"))]
    places.append(f"--document={tmp_path / 'd.md'}")
    assert main([*places, "--from-summary"]) == 1  # there is no run yet
    append_record(tmp_path / "s.jsonl", make_record("token-team", "qmix", 1, score=0.25))
    assert main([*places, "--from-summary"]) == 0
    assert "| `token-team` | QMIX | 1 | 0.25 |" in (tmp_path / "d.md").read_text()
    assert (tmp_path / "p.svg").exists()


def test_an_unknown_environment_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([f"--summary={tmp_path / 's.jsonl'}", "--environments", "chess"]) == 2
    assert "`environments` must be among token-individual" in capsys.readouterr().err


def test_the_committed_page_is_that_of_the_committed_summary(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    docs = Path(__file__).parents[3] / "docs"
    written = tmp_path / "marl.md"
    places = [f"--summary={docs / 'marl.jsonl'}", f"--document={written}", f"--picture={tmp_path / 'marl.svg'}"]
    assert main([*places, "--from-summary"]) == 0
    assert written.read_text() == (docs / "marl.md").read_text()
