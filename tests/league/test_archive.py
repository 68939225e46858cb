"""Coverage of the tessellation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from league.archive import ARCHIVE_FILE, CELLS, Archive, standard_centroids
from populora_env.features import program_features

SHORT = "def f(x):\n    return x\n"
LONG = "def f(x):\n    y = x\n    for i in range(3):\n        if i % 2:\n            y += i\n    z = y\n    return z\n"


def row(program: str | None, task: str = "deduction", *, valid: bool = True) -> dict[str, Any]:
    return {"program": program, "task": task, "valid": valid, "cell_id": None}


def two_cells() -> Archive:
    return Archive(np.array([program_features(text).scaled() for text in (SHORT, LONG)], dtype=np.float64))


def test_a_program_falls_into_the_cell_of_the_nearest_centroid() -> None:
    archive = two_cells()
    rows = [row(SHORT), row(LONG, "induction"), row(None, valid=False), row("no program (")]
    archive.place(rows)
    assert [one["cell_id"] for one in rows] == [0, 1, None, None]
    assert archive.coverage() == {
        "teacher/coverage": 0.5,
        "teacher/coverage/deduction": 0.5,
        "teacher/coverage/induction": 0.5,
    }
    archive.place([row(SHORT), row(LONG, "abduction")])
    assert archive.coverage()["teacher/coverage"] == 1.0
    assert archive.coverage()["teacher/coverage/deduction"] == 0.5, "seen before"


def test_nothing_placed_is_not_reported() -> None:
    assert two_cells().coverage() == {}


@pytest.mark.parametrize(
    "program", ["", "\0", "\ud800", "(" * 5000, "x=" * 3000 + "1", "-" * 4000 + "1", "def f(x):\n" + "a" * 10**6]
)
def test_hostile_programs_do_not_raise(program: str) -> None:
    rows = [row(program)]
    two_cells().place(rows)
    assert rows[0]["cell_id"] in (None, 0, 1)


def test_standard_centroids_are_distinct_and_in_the_cube() -> None:
    centroids = standard_centroids()
    assert centroids.shape == (CELLS, 4)
    assert (centroids >= 0).all()
    assert (centroids <= 1).all()
    assert len(np.unique(centroids, axis=0)) == CELLS
    standard_centroids.cache_clear()
    assert standard_centroids().tobytes() == centroids.tobytes()


def test_a_saved_archive_comes_back_bit_for_bit(tmp_path: Path) -> None:
    archive = Archive(standard_centroids())
    archive.place([row(SHORT), row(LONG, "abduction")])
    archive.save(tmp_path)
    before = (tmp_path / ARCHIVE_FILE).read_bytes()
    again = Archive.load(tmp_path)
    assert again.coverage() == archive.coverage()
    again.save(tmp_path)
    assert (tmp_path / ARCHIVE_FILE).read_bytes() == before


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        ({"centroids": [[0.0] * 4], "filled": {"deduction": [1]}}, "do not exist"),
        ({"centroids": [[0.0] * 3], "filled": {}}, "finite"),
        ({"centroids": [[float("nan")] * 4], "filled": {}}, "finite"),
        ({"centroids": [[0.0] * 4], "filled": {"nonsense": []}}, "nonsense"),
    ],
)
def test_a_damaged_archive_is_refused(tmp_path: Path, saved: Any, message: str) -> None:
    (tmp_path / ARCHIVE_FILE).write_text(json.dumps(saved))
    with pytest.raises(ValueError, match=message):
        Archive.load(tmp_path)
