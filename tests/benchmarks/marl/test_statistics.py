"""Interquartile means and their intervals, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.marl.statistics import bootstrap, interquartile_mean, standing
from league.experiment.statistics import Interval

FINITE = st.floats(-1e6, 1e6)


def test_a_quarter_rounded_down_is_left_out_at_either_end() -> None:
    assert interquartile_mean([7.0]) == 7.0
    assert interquartile_mean([1, 2, 6]) == 3.0  # a quarter of three is none
    assert interquartile_mean([100, 3, -50, 1]) == 2.0
    assert interquartile_mean([[0, 1, 2], [3, 4, 5], [6, 7, 99]]) == pytest.approx(4.0)  # 2 to 6
    with pytest.raises(ValueError, match="at least one score"):
        interquartile_mean([])


@given(st.lists(FINITE, min_size=1, max_size=20))
def test_it_lies_among_the_scores_whatever_their_order(scores: list[float]) -> None:
    found = interquartile_mean(scores)
    assert min(scores) - 1e-6 <= found <= max(scores) + 1e-6
    assert found == pytest.approx(interquartile_mean(scores[::-1]))


def test_draws_stay_within_their_stratum() -> None:
    found = bootstrap([[1.0, 1.0, 1.0], [5.0]], np.random.default_rng(0))
    assert (found.low, found.mean, found.high) == (1.0, 1.0, 1.0)  # of 1, 1, 1, 5 the ends are left out, in every draw


def test_the_interval_of_two_scores_is_that_of_their_draws() -> None:
    # Means 0, 1/2 and 1 have chances 1/4, 1/2 and 1/4: both ends are beyond 2.5 %.
    found = bootstrap([[0.0, 1.0]], np.random.default_rng(0))
    assert (found.low, found.mean, found.high) == (0.0, 0.5, 1.0)
    assert found == bootstrap([[0.0, 1.0]], np.random.default_rng(0))


@pytest.mark.parametrize("strata", [[], [[1.0], []]])
def test_no_scores_are_refused(strata: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="`strata`"):
        bootstrap(strata, np.random.default_rng(0))


def test_an_interval_stands_above_another_only_if_they_are_apart() -> None:
    reference = Interval(mean=0.1, half=0.02, count=3)
    assert standing(Interval(mean=0.2, half=0.05, count=3), reference) == "yes"
    assert standing(Interval(mean=0.2, half=0.09, count=3), reference) == "not shown"
    assert standing(Interval(mean=0.0, half=0.05, count=3), reference) == "below"
    assert standing(Interval(mean=0.5, half=0.0, count=1), reference) == "too few seeds"
