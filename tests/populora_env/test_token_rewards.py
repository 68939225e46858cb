"""Tests of `populora_env.token_rewards`: the three ways to share out what a round paid."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from populora_env.config import RewardConfig
from populora_env.game import RoundResult
from populora_env.rewards import proposer_reward, solve_rate, solver_reward
from populora_env.token_rewards import shared_rewards
from populora_env.types import Status, Task, Verdict

STATUSES = st.sampled_from([Status.OK, Status.WRONG, Status.FORMAT])
NUMBERS = st.floats(-5, 5)


def settled(statuses, rewards=RewardConfig()):  # noqa: B008  (frozen)
    """Return a round in which the solvers got these statuses; none at all after an invalid proposal."""
    verdicts = tuple(Verdict(status=status) for status in statuses)
    rho = solve_rate(verdicts) if verdicts else None
    return RoundResult(
        task=Task.DEDUCTION,
        problem=None,
        proposal=None,
        proposal_verdict=Verdict(status=Status.OK if verdicts else Status.FORMAT),
        answers=(None,) * len(verdicts),
        attempt_verdicts=verdicts,
        solve_rate=rho,
        proposer_reward=proposer_reward(rho, rewards),
        solver_rewards=tuple(solver_reward(verdict, rewards) for verdict in verdicts),
    )


HALF = settled([Status.OK, Status.WRONG])
INVALID = settled([])


def test_individual_is_what_the_game_pays():
    assert shared_rewards(HALF, "individual", 2) == (0.5, 1.0, -0.5)
    assert shared_rewards(INVALID, "individual", 2) == (-1.0, 0.0, 0.0)


def test_team_is_the_mean_for_all():
    assert shared_rewards(HALF, "team", 2) == (1 / 3, 1 / 3, 1 / 3)
    assert shared_rewards(INVALID, "team", 2) == (-1 / 3, -1 / 3, -1 / 3)


def test_zero_sum_sets_the_solvers_against_the_proposer():
    assert shared_rewards(HALF, "zero_sum", 2) == (-0.25, 0.5, -0.25)
    assert shared_rewards(settled([Status.OK] * 4), "zero_sum", 4) == (-1.0, 0.25, 0.25, 0.25, 0.25)
    assert shared_rewards(settled([Status.WRONG] * 4), "zero_sum", 4) == (0.5, *(-0.125,) * 4)
    assert shared_rewards(INVALID, "zero_sum", 4) == (-1.0, 0.25, 0.25, 0.25, 0.25)


@given(statuses=st.lists(STATUSES, min_size=1, max_size=8), numbers=st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS))
def test_zero_sum_adds_up_to_exactly_0_in_any_order(statuses, numbers):
    invalid, correct, wrong, malformed = numbers
    rewards = RewardConfig(invalid=invalid, correct=correct, wrong=wrong, malformed=malformed)
    for result in (settled(statuses, rewards), settled([], rewards)):
        shares = shared_rewards(result, "zero_sum", len(statuses))
        assert len(shares) == 1 + len(statuses)
        for order in itertools.islice(itertools.permutations(shares), 24):
            assert sum(order) == 0.0
        exact = result.solver_rewards or (-invalid,) * len(statuses)
        assert all(
            math.isclose(share, reward / len(statuses), abs_tol=1e-6)
            for share, reward in zip(shares[1:], exact, strict=True)
        )


def test_an_invalid_proposal_is_never_better_than_the_worst_valid_one_by_default():
    """In `team` it may be: there the solvers' failures count as the proposer's."""
    outcomes = list(itertools.product([Status.OK, Status.WRONG, Status.FORMAT], repeat=3))
    for mode in ("individual", "zero_sum"):
        worst = min(shared_rewards(settled(statuses), mode, 3)[0] for statuses in outcomes)
        assert shared_rewards(INVALID, mode, 3)[0] <= worst


def test_unknown_modes_are_refused():
    with pytest.raises(ValueError, match="`reward_mode` must be one of"):
        shared_rewards(HALF, "mean", 2)
