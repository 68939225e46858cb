"""pass@k and how sure it is: pure functions of counts.

Symbols: n samples of a question, c of them right, k <= n draws; Q questions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 2000
"""Bootstrap resamples of the questions."""
LEVEL = 0.95
"""Share of resamples that an interval holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A mean over questions with its interval."""

    mean: float
    low: float
    high: float


def pass_at_k(n: int, c: int, k: int) -> float:
    """Return the unbiased estimate 1 - C(n - c, k) / C(n, k) that one of k samples is right.

    Source: Chen et al. 2021 (arXiv 2107.03374), equation 1.

    Raises:
        ValueError: Not 0 <= c <= n and 1 <= k <= n.
    """
    if not 0 <= c <= n or not 1 <= k <= n:
        raise ValueError(f"expected 0 <= `c` <= `n` and 1 <= `k` <= `n`, got n={n}, c={c}, k={k}")
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def estimate(scores: NDArray[np.float64], generator: np.random.Generator) -> Estimate:
    """Return the mean of scores [Q] with a percentile bootstrap interval over questions.

    Questions are drawn again, not samples: what is asked is how the mean would be on other questions of the same kind.

    Raises:
        ValueError: No scores.
    """
    if scores.ndim != 1 or not scores.size:
        raise ValueError(f"`scores` must be [Q] with Q >= 1, got shape {scores.shape}")
    drawn = generator.integers(scores.size, size=(RESAMPLES, scores.size))
    means = scores[drawn].mean(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(mean=float(scores.mean()), low=float(low), high=float(high))


def mean_scores(scores: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the mean [Q] over players of their scores [Q]."""
    return np.asarray(np.mean(np.stack(scores), axis=0), dtype=np.float64)
