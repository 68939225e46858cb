"""pass@k against published and hand-worked values, and intervals that cover what they should."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from league.evaluation.statistics import estimate, mean_scores, pass_at_k


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"),
    [
        (1, 1, 1, 1.0),
        (4, 1, 1, 0.25),
        (4, 1, 2, 0.5),
        (5, 2, 3, 0.9),
        (5, 0, 5, 0.0),
        (5, 3, 3, 1.0),
        (200, 10, 100, 1 - 0.00073),
    ],
)
def test_hand_worked_values(n: int, c: int, k: int, expected: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(expected, abs=2e-4)


@given(st.integers(1, 7), st.data())
def test_it_is_the_share_of_draws_with_a_right_one(n: int, data: st.DataObject) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    draws = list(combinations([place < c for place in range(n)], k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, draws)) / len(draws))


def test_impossible_counts_are_refused() -> None:
    for n, c, k in ((3, 4, 1), (3, -1, 1), (3, 1, 4), (3, 1, 0)):
        with pytest.raises(ValueError, match="expected 0 <= `c`"):
            pass_at_k(n, c, k)


def test_intervals_shrink_with_questions_and_collapse_where_all_are_alike() -> None:
    rng = np.random.default_rng(0)
    wide, narrow = (estimate((np.arange(size) % 4 == 0).astype(float), rng) for size in (40, 4000))
    assert wide.mean == narrow.mean == 0.25
    assert wide.low < 0.25 < wide.high
    # The standard error of a share: 1.96 sqrt(p (1 - p) / Q).
    assert wide.high - wide.low == pytest.approx(2 * 1.96 * np.sqrt(0.25 * 0.75 / 40), rel=0.15)
    assert narrow.high - narrow.low == pytest.approx(2 * 1.96 * np.sqrt(0.25 * 0.75 / 4000), rel=0.15)
    same = estimate(np.ones(5), rng)
    assert (same.low, same.mean, same.high) == (1, 1, 1)


def test_the_same_generator_gives_the_same_interval() -> None:
    scores = np.array([0.0, 1.0, 1.0, 0.5])
    assert estimate(scores, np.random.default_rng(3)) == estimate(scores, np.random.default_rng(3))


def test_the_population_is_scored_question_by_question() -> None:
    assert mean_scores([np.array([1.0, 0.0]), np.array([0.0, 0.0])]).tolist() == [0.5, 0.0]


def test_no_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="Q >= 1"):
        estimate(np.array([]), np.random.default_rng(0))
