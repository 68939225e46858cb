"""Advantages against hand-worked tables, and the cases in which naive formulas give NaN."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from populora_agents.advantages import (
    ESTIMATORS,
    dr_grpo,
    grpo,
    reinforce_pp_baseline,
    rloo,
    rollout_advantages,
)
from populora_agents.config import EstimatorName
from populora_agents.types import Rollout

ROWS = st.lists(st.tuples(st.floats(-1, 1, width=32), st.integers(0, 3), st.integers(0, 1)), max_size=20)


def rollout(member: str, group: str, reward: float, batch: str = "solver/deduction") -> Rollout:
    return Rollout(
        member_id=member, batch=batch, group_id=group, prompt_ids=(1,), token_ids=(2,), logprobs=(-1.0,), reward=reward
    )


def test_reinforce_pp_by_hand() -> None:
    # Groups a: 1, 0 (mean .5); b: 1, 1, -1 (mean 1/3). Differences .5 -.5 2/3 2/3 -4/3; sum of squares .5 + 8/3.
    differences = np.array([0.5, -0.5, 2 / 3, 2 / 3, -4 / 3])
    expected = differences / np.sqrt((0.5 + 8 / 3) / 5)
    result = reinforce_pp_baseline([1, 0, 1, 1, -1], list("aabbb"), ["x"] * 5)
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_a_group_of_one_takes_the_mean_of_its_batch() -> None:
    # The mean of the batch is .5; differences .5 and -.5, std .5.
    np.testing.assert_allclose(reinforce_pp_baseline([1, 0], ["a", "b"], ["x", "x"]), [1, -1], rtol=1e-12)


def test_a_group_of_one_beside_a_larger_group() -> None:
    # a: 1, 0 -> .5, -.5. b: .8 against the batch's mean .6 -> .2; the std is about the differences' own mean, .2 / 3.
    differences = np.array([0.5, -0.5, 0.2])
    result = reinforce_pp_baseline([1, 0, 0.8], list("aab"), ["x"] * 3)
    np.testing.assert_allclose(result, differences / differences.std(), rtol=1e-12)


def test_batches_are_whitened_apart() -> None:
    result = reinforce_pp_baseline([1, 0, 100, 0], list("aabb"), list("xxyy"))
    np.testing.assert_allclose(result, [1, -1, 1, -1], rtol=1e-12)


def test_grpo_by_hand() -> None:
    # Mean .5, std with ddof 1: sqrt(.5).
    expected = np.array([0.5, -0.5]) / (np.sqrt(0.5) + 1e-4)
    np.testing.assert_allclose(grpo([1, 0, 7], list("aab"), ["x"] * 3), [*expected, 0], rtol=1e-12)


def test_rloo_by_hand() -> None:
    # a: 3 against (1 + 2) / 2, 1 against 2.5, 2 against 2; b is alone.
    np.testing.assert_allclose(rloo([3, 1, 2, 7], list("aaab"), ["x"] * 4), [1.5, -1.5, 0, 0], rtol=1e-12)


def test_dr_grpo_by_hand() -> None:
    np.testing.assert_allclose(dr_grpo([3, 1, 2, 7], list("aaab"), ["x"] * 4), [1, -1, 0, 0], rtol=1e-12)


def test_all_invalid_proposals_teach_nothing() -> None:
    rollouts = [rollout("m", str(place // 4), -1.0, "proposer/abduction") for place in range(8)]
    for estimator in ESTIMATORS.values():
        assert not rollout_advantages(rollouts, estimator).any()


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
@pytest.mark.parametrize("reward", [0.1, -1.0, 1 / 3, 1e9])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_equal_rewards_give_exactly_zero(name: EstimatorName, reward: float, size: int) -> None:
    assert not ESTIMATORS[name]([reward] * size, ["a"] * size, ["x"] * size).any()
    assert not ESTIMATORS[name]([reward] * size, list(range(size)), ["x"] * size).any()


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_nothing_gives_nothing(name: EstimatorName) -> None:
    assert ESTIMATORS[name]([], [], []).shape == (0,)


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
@given(rows=ROWS)
def test_never_nan_and_equivariant_to_order(name: EstimatorName, rows: list[tuple[float, int, int]]) -> None:
    rewards, groups, batches = ([row[k] for row in rows] for k in range(3))
    keys = list(zip(groups, batches, strict=True))
    result = ESTIMATORS[name](rewards, keys, batches)
    assert np.isfinite(result).all()
    backwards = ESTIMATORS[name](rewards[::-1], keys[::-1], batches[::-1])
    np.testing.assert_allclose(backwards[::-1], result, rtol=1e-6, atol=1e-6)


@given(rows=ROWS)
def test_reinforce_pp_is_unit_spread_in_each_batch(rows: list[tuple[float, int, int]]) -> None:
    rewards, groups, batches = ([row[k] for row in rows] for k in range(3))
    result = reinforce_pp_baseline(rewards, list(zip(groups, batches, strict=True)), batches)
    for batch in set(batches):
        spread = result[[other == batch for other in batches]].std()
        assert spread == pytest.approx(1) or spread == 0


def test_members_never_share_a_group_or_a_batch() -> None:
    rollouts = [rollout("m", "a", 1), rollout("n", "a", 0), rollout("m", "a", 0), rollout("n", "a", -1)]
    np.testing.assert_allclose(rollout_advantages(rollouts), [1, 1, -1, -1], rtol=1e-12)


def test_misfits_are_refused() -> None:
    with pytest.raises(ValueError, match="as many"):
        reinforce_pp_baseline([1, 2], ["a"], ["x", "x"])
    with pytest.raises(ValueError, match="finite"):
        grpo([1, float("nan")], ["a", "a"], ["x", "x"])
