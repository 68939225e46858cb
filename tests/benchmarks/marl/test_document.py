"""The document: a row a comparison, with numbers that follow from the records."""

from __future__ import annotations

import itertools
from importlib.util import find_spec
from pathlib import Path

import pytest
from marl_records import make_record

from benchmarks.marl.document import SOLVER_ROW, document, draw, make_rows
from benchmarks.marl.words import CONSTANT

TOKEN_MODES = ("token-individual", "token-team", "token-zero_sum")
RECORDS = [
    make_record(mode, algorithm, seed, score=level + 0.01 * seed + 0.1 * place)
    for (place, mode), (algorithm, level), seed in itertools.product(
        enumerate(TOKEN_MODES), (("random", 0.1), ("first", 0.4), ("iql", 0.4)), (1, 2, 3)
    )
]
RECORDS += [make_record("token-team", "vdn", 1, score=0.9)]


def test_a_row_has_mean_interval_and_standing() -> None:
    text = document(RECORDS, "curves.svg")
    # Student's interval of 0.51, 0.52, 0.53: 4.303 * 0.01 / sqrt(3) = 0.025 to either side of 0.52
    cells = "0.52, 0.50 to 0.54 | 0.52, 0.51 to 0.53 | yes | not shown | 10 | 0.51 0.52 0.53"
    assert f"| `token-team` | IQL | 3 | {cells} |" in text
    assert "| `token-team` | VDN | 1 | 0.90 | 0.90, 0.90 to 0.90 | too few seeds | too few seeds | 10 | 0.90 |" in text
    assert (
        "| `token-team` | random play | 3 | 0.22, 0.20 to 0.24 | 0.22, 0.21 to 0.23 |  |  | 10 | 0.21 0.22 0.23 |"
        in text
    )
    standings = (
        "above random play? IQL: yes; VDN: too few seeds. above first legal action? IQL: not shown; VDN: too few seeds."
    )
    assert f"- `token-team`: {standings}" in text
    assert "the mean of 64 episodes" in text
    assert "2 batches of 32 steps of 32 games" in text
    assert "![learning curves of all runs](curves.svg)" in text


def test_modes_that_measure_the_solvers_alone_are_taken_together_where_both_were_played() -> None:
    together = {row.algorithm: row for row in make_rows(RECORDS) if row.environment == SOLVER_ROW}
    assert together.keys() == {"random", "first", "iql"}
    row = together["iql"]
    assert row.scores == pytest.approx((0.51, 0.52, 0.53))
    assert row.mean.mean == pytest.approx(0.52)
    # 0.41 0.42 0.43 0.61 0.62 0.63: the middle four are 0.42 to 0.62
    assert row.middle.mean == pytest.approx((0.42 + 0.43 + 0.61 + 0.62) / 4)
    assert row.middle.low < row.middle.mean < row.middle.high


def test_it_says_so_where_nothing_beats_the_constant_answer() -> None:
    assert CONSTANT in document(RECORDS, "curves.svg")
    better = [make_record("token-team", "qmix", seed, score=0.9 + 0.001 * seed) for seed in (1, 2, 3)]
    assert CONSTANT not in document([*RECORDS, *better], "curves.svg")
    assert CONSTANT not in document(better, "curves.svg")  # nothing to compare with


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="needs matplotlib")
def test_the_picture_is_drawn(tmp_path: Path) -> None:
    draw(RECORDS, tmp_path / "curves.svg")
    assert (tmp_path / "curves.svg").read_text().startswith("<?xml")
