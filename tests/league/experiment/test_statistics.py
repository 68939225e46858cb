"""The statistics, worked out by hand and on series whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from league.experiment.statistics import interval, late_growth, rise, slow_excess, swings, verdict


def test_students_interval_by_hand() -> None:
    # Mean 3, standard deviation sqrt(2.5), t(4) = 2.776.
    found = interval([1, 2, 3, 4, 5])
    assert (found.mean, found.count) == (3.0, 5)
    assert found.half == pytest.approx(2.776 * math.sqrt(2.5) / math.sqrt(5))
    assert interval([2.0]).half == math.inf
    with pytest.raises(ValueError, match="at least one"):
        interval([])
    with pytest.raises(ValueError, match="finite"):
        interval([1.0, math.nan])


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30), st.floats(-1e3, 1e3))
def test_intervals_move_with_their_values(values: list[float], shift: float) -> None:
    one, other = interval(values), interval([value + shift for value in values])
    assert one.low <= one.mean <= one.high
    assert other.mean == pytest.approx(one.mean + shift, abs=1e-6)
    assert other.half == pytest.approx(one.half, abs=1e-6)


def test_verdicts() -> None:
    above, around = interval([1.0, 1.1, 1.2]), interval([-1.0, 1.0, 0.5])
    assert verdict(above, claimed="above") == "seen"
    assert verdict(above, claimed="below") == "reversed"
    assert verdict(above, claimed="above", than=5.0) == "reversed"
    assert verdict(above, claimed="below", than=5.0) == "seen"
    assert verdict(around, claimed="above") == verdict(around, claimed="below") == "not seen"
    assert verdict(interval([1.0]), claimed="above") == "too few seeds"


def test_rise_is_the_last_quarter_less_the_first() -> None:
    assert rise([0, 2, 9, 9, 9, 9, 4, math.nan]) == 4 - 1
    with pytest.raises(ValueError, match="empty"):
        rise([math.nan, 1, 1, 1])


def test_swings_by_hand() -> None:
    # Up from 0 to 4, down to 1, up to 3, down to 0: turns at 4, 1 and 3.
    series = [0, 1, 2, 3, 4, 3, 2, 1, 2, 3, 2, 1, 0]
    assert swings(series, width=1, least=0.5) == [3, 2]
    assert swings(series, width=1, least=2.5) == []
    assert swings([0.5] * 40) == []
    assert swings(np.linspace(0, 1, 50)) == []
    assert swings([1.0, 0.0]) == []


@given(st.lists(st.floats(0, 1), max_size=60), st.floats(0.01, 0.5))
def test_no_swing_is_smaller_than_the_least(values: list[float], least: float) -> None:
    sizes = swings(values, width=1, least=least)
    assert all(size >= least - 1e-12 for size in sizes)
    assert len(sizes) <= len(values)


def test_a_wave_is_told_from_noise_and_from_a_line() -> None:
    rng = np.random.default_rng(0)
    steps = np.arange(100)
    noise = rng.normal(0, 0.1, 100)
    assert slow_excess(0.5 + 0.3 * np.sin(2 * np.pi * steps / 25) + noise, rng) > 0.5
    flat = [slow_excess(0.01 * steps + rng.normal(0, 0.1, 100), rng, permutations=99) for _ in range(40)]
    assert abs(np.mean(flat)) < 0.05  # what is only a line and noise has neither more nor less
    with pytest.raises(ValueError, match="at least 12"):
        slow_excess([0.0] * 5, rng)
    assert slow_excess([0.5] * 20, rng) == 0.0


def test_growth_in_the_second_half() -> None:
    assert late_growth([1, 2, 3, 4]) == pytest.approx(1 / 4)
    assert late_growth([4, 4, 4, 4]) == 0
    with pytest.raises(ValueError, match="above 0"):
        late_growth([0, 0])
