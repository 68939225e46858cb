"""Policy-gradient objectives and divergences, per token; whoever calls them reduces. Pure torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor

_LARGEST_LOG_RATIO = 20.0


class Objective(Protocol):
    """What a member minimises, per token."""

    def __call__(
        self, logprobs: Tensor, sampled_logprobs: Tensor, advantages: Tensor, /
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Return the loss [N] and, without gradient, metrics [N] by name; neither is reduced.

        `clipped` is reported as `clip_fraction`; a metric named like one of the report's own numbers is dropped.

        Args:
            logprobs: float [N] of N sampled tokens, with gradient.
            sampled_logprobs: float [N]: the same when they were sampled.
            advantages: float [N]: each token's rollout's.
        """
        ...


def clipped_objective(
    logprobs: Tensor,
    sampled_logprobs: Tensor,
    advantages: Tensor,
    *,
    clip_low: float = 0.2,
    clip_high: float = 0.28,
    max_ratio: float = 10.0,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Return the clipped surrogate loss of every token, -min(rho A, clip(rho, 1 - low, 1 + high) A).

    rho = exp(logprobs - sampled_logprobs), the importance ratio against the sampler, bounded by `max_ratio`: with A < 0
    the minimum has no bound of its own, and one stray token would own the gradient.

    Source: Schulman et al. (2017); clip higher: Yu et al., DAPO (2025). Deviation: the bound on rho.

    Args:
        logprobs: float [N], with gradient.
        sampled_logprobs: float [N].
        advantages: float [N].
        clip_low: Below 1, >= 0.
        clip_high: Above 1, >= 0.
        max_ratio: Largest rho, > 1 + `clip_high`.

    Returns:
        The loss [N] and, without gradient, the metric `clipped` [N] (1 where clipping took the gradient away). Neither
        is reduced.
    """
    gap = logprobs - sampled_logprobs
    # Clamped before exp: an overflow would turn into NaN in the backward, even where the minimum discards it.
    ratio = gap.clamp(-_LARGEST_LOG_RATIO, _LARGEST_LOG_RATIO).exp().clamp(max=max_ratio)
    bounded = ratio.clamp(1 - clip_low, 1 + clip_high)
    loss = -torch.minimum(ratio * advantages, bounded * advantages)
    with torch.no_grad():
        clipped = ((ratio > 1 + clip_high) & (advantages > 0)) | ((ratio < 1 - clip_low) & (advantages < 0))
        clipped |= (ratio >= max_ratio) & (advantages < 0)
    return loss, {"clipped": clipped.to(loss.dtype)}


def kl_k3(logprobs: Tensor, reference_logprobs: Tensor) -> Tensor:
    """Return the k3 estimate of KL(policy || reference) at every token: exp(d) - d - 1, d = reference - policy.

    Never negative; unbiased for tokens that the policy itself has sampled (its gradient is not that of the divergence,
    which would need the importance ratio). d is bounded by 20 either way.

    Source: Schulman, Approximating KL Divergence (2020); Shao et al., DeepSeekMath (2024), equation 4.

    Args:
        logprobs: float [N], with gradient.
        reference_logprobs: float [N].

    Returns:
        float [N], not reduced.
    """
    difference = (reference_logprobs - logprobs).clamp(-_LARGEST_LOG_RATIO, _LARGEST_LOG_RATIO)
    return torch.expm1(difference) - difference
