"""Choosing tokens: uniform numbers keyed by the request, and the inverse of the cumulative distribution.

Owns no model. What a request draws does not depend on the rows beside it.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_KEY_BITS = 128


def uniforms(seed: int, count: int) -> NDArray[np.float64]:
    """Return `count` numbers in [0, 1) from the Philox counter keyed by `seed` (taken modulo 2^128)."""
    return np.random.Generator(np.random.Philox(key=seed % (1 << _KEY_BITS))).random(count)


def choose_tokens(logits: Tensor, temperatures: Tensor, draws: Tensor) -> tuple[Tensor, Tensor]:
    """Draw one token a row by inverse CDF; the most likely one where the temperature is 0.

    R rows, V tokens.

    Args:
        logits: float [R, V].
        temperatures: float32 [R], >= 0.
        draws: float64 [R] in [0, 1).

    Returns:
        int64 [R] tokens, and float32 [R] their log-probabilities under the temperature (under 1 where it is 0).
    """
    greedy = temperatures == 0
    scale = torch.where(greedy, 1.0, temperatures)
    logprobs = torch.log_softmax(logits.float() / scale[:, None], dim=-1)
    cumulative = torch.cumsum(logprobs.exp(), dim=-1, dtype=torch.float64)
    # The last column is the total, which rounding keeps from being 1; `right` never lands on a token of probability 0.
    wanted = draws[:, None] * cumulative[:, -1:]
    tokens = torch.searchsorted(cumulative, wanted, right=True).clamp_(max=logits.shape[-1] - 1).squeeze(1)
    if bool(greedy.any()):
        tokens = torch.where(greedy, logits.argmax(dim=-1), tokens)
    return tokens, logprobs.gather(1, tokens[:, None]).squeeze(1)
