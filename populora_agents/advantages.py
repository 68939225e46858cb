"""Advantages: how much better than expected each rollout was. Pure numpy.

Owns the estimators. Equal rewards always give exactly zero, and no legal input gives NaN. Groups and batches are named
by any hashable key; keys of different members must differ (`rollout_advantages` sees to it).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from populora_agents.config import EstimatorName
from populora_agents.types import Rollout

Array = NDArray[np.float64]
Estimator = Callable[[ArrayLike, Sequence[Hashable], Sequence[Hashable]], Array]


def reinforce_pp_baseline(
    rewards: ArrayLike, groups: Sequence[Hashable], batches: Sequence[Hashable], *, eps: float = 1e-8
) -> Array:
    """Return REINFORCE++ with baseline: the reward minus its group's mean, divided by the spread in the batch.

    A_i = (r_i - mean of the group) / std over the batch of those differences. A group of one has no baseline of its own
    and takes the mean of its batch. The std is that of the population (ddof 0).

    Source: Hu, REINFORCE++ (2025), with AZR's whitening per (role, task). Deviations: the mean is not subtracted again
    (it is zero), and a batch whose std is at most `eps` gives zeros.

    Args:
        rewards: float [N].
        groups: N keys: rollouts of one prompt.
        batches: N keys: rollouts whitened together, of one member, role and task.
        eps: Smallest std that is divided by.

    Returns:
        float64 [N].

    Raises:
        ValueError: Lengths differ, or a reward is not finite.
    """
    values = _checked(rewards, groups, batches)
    advantages = np.zeros_like(values)
    alone = np.zeros(len(values), dtype=bool)
    for places in _places(groups):
        advantages[places] = _centred(values[places])
        alone[places] = len(places) == 1
    for places in _places(batches):
        single = alone[places]
        advantages[places[single]] = _centred(values[places])[single]
        spread = advantages[places].std()
        advantages[places] = advantages[places] / spread if spread > eps else 0.0
    return advantages


def grpo(rewards: ArrayLike, groups: Sequence[Hashable], batches: Sequence[Hashable], *, eps: float = 1e-4) -> Array:
    """Return GRPO's advantages: (r_i - mean of the group) / (std of the group + eps), std with ddof 1.

    Source: Shao et al., DeepSeekMath (2024), with TRL's ddof and eps. A group of one gets 0.

    Args:
        rewards: float [N].
        groups: N keys: rollouts of one prompt.
        batches: N keys, not used: estimators share one signature.
        eps: Added to the std.

    Returns:
        float64 [N].

    Raises:
        ValueError: Lengths differ, or a reward is not finite.
    """
    values = _checked(rewards, groups, batches)
    advantages = np.zeros_like(values)
    for places in _places(groups):
        if len(places) > 1:
            advantages[places] = _centred(values[places]) / (values[places].std(ddof=1) + eps)
    return advantages


def rloo(rewards: ArrayLike, groups: Sequence[Hashable], batches: Sequence[Hashable]) -> Array:
    """Return RLOO's advantages: the reward minus the mean of the others of its group.

    A_i = r_i - sum of the r_j, j != i, / (n - 1) = n / (n - 1) (r_i - mean of the group). A group of one gets 0.

    Source: Kool et al. (2019), Ahmadian et al., Back to Basics (2024).

    Args:
        rewards: float [N].
        groups: N keys: rollouts of one prompt.
        batches: N keys, not used: estimators share one signature.

    Returns:
        float64 [N].

    Raises:
        ValueError: Lengths differ, or a reward is not finite.
    """
    values = _checked(rewards, groups, batches)
    advantages = np.zeros_like(values)
    for places in _places(groups):
        if len(places) > 1:
            advantages[places] = _centred(values[places]) * (len(places) / (len(places) - 1))
    return advantages


def dr_grpo(rewards: ArrayLike, groups: Sequence[Hashable], batches: Sequence[Hashable]) -> Array:
    """Return Dr. GRPO's advantages: the reward minus the mean of its group, divided by nothing.

    Its other half, sums of tokens divided by a constant, is `TrainerConfig.length`. A group of one gets 0.

    Source: Liu et al., Understanding R1-Zero-Like Training (2025).

    Args:
        rewards: float [N].
        groups: N keys: rollouts of one prompt.
        batches: N keys, not used: estimators share one signature.

    Returns:
        float64 [N].

    Raises:
        ValueError: Lengths differ, or a reward is not finite.
    """
    values = _checked(rewards, groups, batches)
    advantages = np.zeros_like(values)
    for places in _places(groups):
        advantages[places] = _centred(values[places])
    return advantages


ESTIMATORS: Mapping[EstimatorName, Estimator] = {
    "reinforce_pp_baseline": reinforce_pp_baseline,
    "grpo": grpo,
    "rloo": rloo,
    "dr_grpo": dr_grpo,
}
"""Estimators by name."""


def rollout_advantages(rollouts: Sequence[Rollout], estimator: Estimator = reinforce_pp_baseline) -> Array:
    """Return one advantage a rollout; groups and batches of different members are kept apart."""
    return estimator(
        [rollout.reward for rollout in rollouts],
        [(rollout.member_id, rollout.batch, rollout.group_id) for rollout in rollouts],
        [(rollout.member_id, rollout.batch) for rollout in rollouts],
    )


def _checked(rewards: ArrayLike, groups: Sequence[Hashable], batches: Sequence[Hashable]) -> Array:
    values = np.asarray(rewards, dtype=np.float64)
    if values.ndim != 1 or not len(values) == len(groups) == len(batches):
        raise ValueError(
            f"expected as many `groups` and `batches` as `rewards`, got shape {values.shape!r}, "
            f"{len(groups)} and {len(batches)}"
        )
    if not np.isfinite(values).all():
        raise ValueError(f"`rewards` must be finite, got {values[~np.isfinite(values)][0]!r}")
    return values


def _places(keys: Sequence[Hashable]) -> list[NDArray[np.int64]]:
    """Return the places of each key, in the order in which keys first appear."""
    found: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        found.setdefault(key, []).append(place)
    return [np.array(places, dtype=np.int64) for places in found.values()]


def _centred(values: Array) -> Array:
    """Return values minus their mean; exactly zero when all are equal, which rounding would not grant."""
    return values - values.mean() if np.ptp(values) > 0 else np.zeros_like(values)
