"""The statistics of the table. Pure: scores in, numbers out.

Interquartile means and stratified bootstrap intervals are those of Agarwal et al. 2021 (arXiv 2108.13264). Their
package rliable would bring arch, statsmodels and seaborn for two short functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from league.experiment.statistics import Interval

Standing = Literal["yes", "below", "not shown", "too few seeds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Middle:
    """An interquartile mean with the ends of its bootstrap interval."""

    mean: float
    low: float
    high: float


def interquartile_mean(scores: ArrayLike) -> float:
    """Return the mean of the middle half: a quarter of the scores, rounded down, is left out at either end.

    Raises:
        ValueError: There is no score.
    """
    values = np.sort(np.asarray(scores, dtype=np.float64), axis=None)
    if not len(values):
        raise ValueError("`scores` must hold at least one score, got none")
    cut = len(values) // 4
    return float(values[cut : len(values) - cut].mean())


def bootstrap(strata: Sequence[Sequence[float]], generator: np.random.Generator, *, draws: int = 2000) -> Middle:
    """Return the interquartile mean of all scores, with the 95 % percentile interval of a stratified bootstrap.

    Each draw takes from every stratum as many scores as it has, with replacement.

    Args:
        strata: Scores of the seeds, an environment each.
        generator: Of the draws.
        draws: >= 1.

    Raises:
        ValueError: No stratum, or an empty one.
    """
    own = [np.asarray(stratum, dtype=np.float64) for stratum in strata]
    if not own or not all(map(len, own)):
        raise ValueError(f"`strata` must hold scores, at least one each, got {[list(one) for one in own]!r}")
    drawn = np.concatenate([generator.choice(stratum, size=(draws, len(stratum))) for stratum in own], axis=1)
    low, high = np.quantile([interquartile_mean(row) for row in drawn], (0.025, 0.975))
    return Middle(mean=interquartile_mean(np.concatenate(own)), low=float(low), high=float(high))


def standing(found: Interval, reference: Interval) -> Standing:
    """Return whether an interval lies wholly above ("yes") or below ("below") that of a reference."""
    if min(found.count, reference.count) < 2:
        return "too few seeds"
    return "yes" if found.low > reference.high else "below" if found.high < reference.low else "not shown"
