"""The statistics behind the claims. Pure: series and samples in, numbers out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Series = NDArray[np.float64]

Verdict = Literal["seen", "not seen", "reversed", "too few seeds"]

_T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""0.975 quantiles of Student's t at 1, 2, ... degrees of freedom (any table of it)."""
_NORMAL_975 = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean over seeds with its 95 % interval; half-width infinite for a single seed."""

    mean: float
    half: float
    count: int

    @property
    def low(self) -> float:
        """Lower end."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """Upper end."""
        return self.mean + self.half


def interval(values: Sequence[float]) -> Interval:
    """Return the mean of independent values with Student's 95 % interval.

    Raises:
        ValueError: No value, or one that is not finite.
    """
    sample = np.asarray(values, dtype=np.float64)
    if not len(sample) or not np.isfinite(sample).all():
        raise ValueError(f"expected finite values, at least one, got {list(values)!r}")
    if len(sample) == 1:
        return Interval(mean=float(sample[0]), half=math.inf, count=1)
    freedom = len(sample) - 1
    quantile = _T_975[freedom - 1] if freedom <= len(_T_975) else _NORMAL_975
    return Interval(
        mean=float(sample.mean()),
        half=float(quantile * sample.std(ddof=1) / math.sqrt(len(sample))),
        count=len(sample),
    )


def verdict(found: Interval, *, claimed: Literal["above", "below"], than: float = 0.0) -> Verdict:
    """Return what an interval says of a claim that the mean lies above or below a number."""
    if found.count < 2:
        return "too few seeds"
    low, high = (found.low, found.high) if claimed == "above" else (-found.high, -found.low)
    border = than if claimed == "above" else -than
    return "seen" if low > border else "reversed" if high < border else "not seen"


def rise(series: ArrayLike) -> float:
    """Return the mean of the last quarter less that of the first; gaps (NaN) are left out.

    Raises:
        ValueError: A quarter holds nothing.
    """
    values = np.asarray(series, dtype=np.float64)
    quarter = max(1, len(values) // 4)
    first, last = values[:quarter], values[-quarter:]
    if np.isnan(first).all() or np.isnan(last).all():
        raise ValueError("the first or the last quarter of the series is empty")
    return float(np.nanmean(last) - np.nanmean(first))


def swings(series: ArrayLike, *, width: int = 5, least: float = 0.05) -> list[float]:
    """Return the sizes of a series' swings: how far it goes between two turning points.

    The series is smoothed by a moving mean first; a turn counts once it has gone `least` the other way, and the way
    from the beginning to the first turn and that after the last one do not.

    Args:
        series: Of one run, [steps]; gaps (NaN) are left out.
        width: Steps of the moving mean, >= 1.
        least: Smallest swing, > 0.
    """
    values = np.asarray(series, dtype=np.float64)
    values = values[~np.isnan(values)]
    if len(values) < width + 2:
        return []
    smooth = np.convolve(values, np.ones(width) / width, mode="valid")
    turns = _turning_points(smooth, least)
    return [abs(after - before) for before, after in pairwise(turns)]


def _turning_points(values: Series, least: float) -> list[float]:
    turns: list[float] = []
    low = high = extreme = float(values[0])
    direction = 0
    for value in map(float, values[1:]):
        if direction == 0:
            low, high = min(low, value), max(high, value)
            if value - low >= least or high - value >= least:
                direction = 1 if value - low >= least else -1
                extreme = value
        elif direction * (value - extreme) > 0:
            extreme = value
        elif direction * (extreme - value) >= least:
            turns.append(extreme)
            direction, extreme = -direction, value
    return turns


def slow_excess(series: ArrayLike, generator: np.random.Generator, *, permutations: int = 999) -> float:
    """Return how much more of its power a series has in slow waves than its permutations have on average.

    That is around 0 where nothing oscillates: the power of the periods from a tenth of the series (or 4 steps) to half
    of it, as a share of all, of the series less its straight line: a trend is no oscillation.

    Args:
        series: Of one run, [steps >= 12]; gaps (NaN) are filled by a straight line between neighbours.
        generator: Of the permutations.
        permutations: >= 1.

    Raises:
        ValueError: The series is too short.
    """
    values = np.asarray(series, dtype=np.float64)
    if len(values) < 12 or np.isnan(values).all():
        raise ValueError(f"expected a series of at least 12 steps, got {len(values)}")
    places = np.arange(len(values))
    there = ~np.isnan(values)
    filled = np.interp(places, places[there], values[there])
    slope, start = np.polyfit(places, filled, 1)
    rest = filled - (slope * places + start)
    if np.abs(rest).max() < 1e-9:
        return 0.0
    permuted = [_slow_share(generator.permutation(rest)) for _ in range(permutations)]
    return _slow_share(rest) - sum(permuted) / permutations


def _slow_share(values: Series) -> float:
    power = np.abs(np.fft.rfft(values)) ** 2
    power[0] = 0.0
    total = float(power.sum())
    waves = np.arange(len(power))
    fastest = min(10, len(values) // 4)
    return float(power[(waves >= 2) & (waves <= fastest)].sum()) / total


def late_growth(series: ArrayLike) -> float:
    """Return which share of what a growing series has at its end came in its second half.

    Raises:
        ValueError: It ends at 0 or has no number.
    """
    values = np.asarray(series, dtype=np.float64)
    values = values[~np.isnan(values)]
    if not len(values) or values[-1] <= 0:
        raise ValueError("expected a series that ends above 0")
    return float((values[-1] - values[len(values) // 2]) / values[-1])
