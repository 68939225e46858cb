"""Choosing tokens: uniform numbers keyed by the request, and the inverse of the cumulative distribution.

Owns no model. What a request draws does not depend on the rows beside it.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_KEY_BITS = 128
_BLOCK = 1024
"""Tokens whose weights are summed before they are cumulated: a float64 sum over a whole large vocabulary is slow."""
_LIKELY = (64, 2048)
"""Most likely tokens among which the nucleus is looked for before all of them are sorted, which takes long."""


def uniforms(seed: int, count: int) -> NDArray[np.float64]:
    """Return `count` numbers in [0, 1) from the Philox counter keyed by `seed` (taken modulo 2^128)."""
    return np.random.Generator(np.random.Philox(key=seed % (1 << _KEY_BITS))).random(count)


def choose_tokens(
    logits: Tensor, temperatures: Tensor, draws: Tensor, top_p: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Draw one token a row by inverse CDF; the most likely one where the temperature is 0.

    The log-probabilities are those of the whole distribution at the row's temperature, also where `top_p` cuts it: that
    is what a trainer can compute again from the tokens alone, and what the importance ratio is about.

    R rows, V tokens.

    Args:
        logits: float [R, V].
        temperatures: float32 [R], >= 0.
        draws: float64 [R] in [0, 1).
        top_p: float32 [R] in (0, 1]: draw from the smallest set of most likely tokens that has at least this
            probability, tokens as likely as the last one included. None cuts nothing.

    Returns:
        int64 [R] tokens, and float32 [R] their log-probabilities under the temperature (under 1 where it is 0).
    """
    greedy = temperatures == 0
    scaled = logits.float() / torch.where(greedy, 1.0, temperatures)[:, None]
    highest = scaled.amax(dim=-1, keepdim=True)
    weights = (scaled - highest).exp_()
    total = weights.sum(dim=-1, keepdim=True)
    if top_p is not None:
        weights = torch.where(weights < _least_in_nucleus(weights, total, top_p), 0.0, weights)
    tokens = _inverse_cdf(weights, draws)
    if bool(greedy.any()):
        tokens = torch.where(greedy, logits.argmax(dim=-1), tokens)
    logprobs = scaled.gather(1, tokens[:, None]) - highest - total.log()
    return tokens, logprobs.squeeze(1)


def _least_in_nucleus(weights: Tensor, total: Tensor, top_p: Tensor) -> Tensor:
    """Return [R, 1]: the weight of the least likely token of the nucleus; 0 where `top_p` is 1."""
    least = torch.zeros_like(total)
    left = torch.nonzero(top_p < 1).squeeze(1)
    for size in (*_LIKELY, weights.shape[1]):
        if not len(left):
            break
        some = weights if len(left) == len(weights) else weights[left]
        likely = some.topk(min(size, weights.shape[1]), dim=-1).values
        mass = likely.cumsum(dim=-1, dtype=torch.float64)
        wanted = (top_p[left, None] * total[left]).double()
        last = torch.searchsorted(mass, wanted).clamp_(max=likely.shape[1] - 1)
        least[left] = likely.gather(1, last)
        left = left[(mass[:, -1:] < wanted).squeeze(1)]
    return least


def _inverse_cdf(weights: Tensor, draws: Tensor) -> Tensor:
    """Return the first token of each row whose cumulated weight exceeds its draw's share of the total."""
    tokens = weights.shape[1]
    if tokens <= _BLOCK:
        cumulative = weights.cumsum(dim=-1, dtype=torch.float64)
        return _first_above(cumulative, draws[:, None] * cumulative[:, -1:]).squeeze(1)
    whole = tokens // _BLOCK
    sums = weights[:, : whole * _BLOCK].view(-1, whole, _BLOCK).sum(dim=-1, dtype=torch.float64)
    rest = weights[:, whole * _BLOCK :].sum(dim=-1, keepdim=True, dtype=torch.float64)
    before = torch.cat([sums, rest], dim=1).cumsum(dim=-1)
    wanted = draws[:, None] * before[:, -1:]
    block = _first_above(before, wanted)
    wanted = wanted - torch.where(block > 0, before.gather(1, (block - 1).clamp(min=0)), 0.0)
    columns = block * _BLOCK + torch.arange(_BLOCK, device=weights.device)
    inside = weights.gather(1, columns.clamp(max=tokens - 1)).masked_fill_(columns >= tokens, 0.0)
    within = _first_above(inside.cumsum(dim=-1, dtype=torch.float64), wanted)
    return (block * _BLOCK + within).clamp_(max=tokens - 1).squeeze(1)


def _first_above(cumulative: Tensor, wanted: Tensor) -> Tensor:
    """Return [R, 1]: the first place where `cumulative` [R, N] exceeds `wanted` [R, 1], never one that adds nothing."""
    # Rounding may push `wanted` to the end; the first place that reaches the end is the last one with a weight.
    last = torch.searchsorted(cumulative, cumulative[:, -1:].contiguous())
    # NaN is beyond every end.
    return torch.minimum(torch.searchsorted(cumulative, wanted, right=True), last).clamp_(max=cumulative.shape[1] - 1)
