"""Tests of `populora_env.rewards`: the table of docs/paper.md, worked by hand."""

import pytest

from populora_env.config import RewardConfig
from populora_env.rewards import proposer_reward, repeat_key, reward_parts, solve_rate, solver_reward
from populora_env.types import Role, Status, Verdict


def verdicts(*statuses):
    return [Verdict(status=status) for status in statuses]


@pytest.mark.parametrize(
    ("scheme", "rewards"),
    [
        ("paper", (0.0, 0.75, 0.5, 0.25, 0.0)),
        ("linear", (1.0, 0.75, 0.5, 0.25, 0.0)),
        ("azr", (-0.5, 0.75, 0.5, 0.25, -0.5)),
        ("variance", (0.0, 0.75, 1.0, 0.75, 0.0)),
    ],
)
def test_proposer_table(scheme, rewards):
    config = RewardConfig(scheme=scheme)
    assert tuple(proposer_reward(rho, config) for rho in (0.0, 0.25, 0.5, 0.75, 1.0)) == rewards
    assert proposer_reward(None, config) == -1.0


def test_penalty_for_invalid_proposals_is_a_setting():
    assert proposer_reward(None, RewardConfig(invalid=-0.25)) == -0.25


@pytest.mark.parametrize(
    ("config", "rho", "paid"),
    [
        (RewardConfig(repeat_penalty=0.25), 0.5, 0.25),
        (RewardConfig(repeat_penalty=0.25), 1.0, -0.25),
        (RewardConfig(repeat_penalty=5.0), 0.5, -1.0),
        (RewardConfig(repeat_penalty=5.0, invalid=0.0), 0.5, 0.0),
        (RewardConfig(repeat_penalty=5.0, invalid=-0.25, scheme="azr"), 0.0, -0.5),
        (RewardConfig(), 0.5, 0.5),
    ],
)
def test_repeats_are_paid_less_but_not_less_than_invalid_proposals(config, rho, paid):
    assert proposer_reward(rho, config, repeated=True) == paid
    assert proposer_reward(None, config, repeated=False) == config.invalid


def test_programs_are_repeats_by_their_text_or_their_template():
    one, other = "def f(a):\n    return a + 1", "def f(a):\n    return a + 2"
    assert repeat_key(one, "template") == repeat_key(other, "template")
    assert repeat_key(one, "program") != repeat_key(other, "program")
    assert repeat_key(one, "program") == repeat_key(str(one), "program")
    assert len(repeat_key(one, "program")) == len(repeat_key(one, "template")) == 32


@pytest.mark.parametrize("penalty", [-0.1, float("nan"), float("inf")])
def test_a_penalty_out_of_range_is_refused(penalty):
    with pytest.raises(ValueError, match="`repeat_penalty` must be finite and at least 0"):
        RewardConfig(repeat_penalty=penalty)


@pytest.mark.parametrize("rho", [-0.1, 1.1, float("nan")])
def test_proposer_refuses_rates_out_of_range(rho):
    with pytest.raises(ValueError, match="rho"):
        proposer_reward(rho, RewardConfig())


def test_proposer_refuses_an_unknown_scheme():
    with pytest.raises(ValueError, match="scheme"):
        proposer_reward(0.5, RewardConfig(scheme="other"))


@pytest.mark.parametrize("status", list(Status))
def test_solver_table(status):
    expected = {Status.OK: 1.0, Status.FORMAT: -1.0}.get(status, -0.5)
    assert solver_reward(Verdict(status=status), RewardConfig()) == expected


def test_solver_rewards_are_settings():
    config = RewardConfig(correct=2.0, wrong=-3.0, malformed=-4.0)
    got = [solver_reward(verdict, config) for verdict in verdicts(Status.OK, Status.TIMEOUT, Status.FORMAT)]
    assert got == [2.0, -3.0, -4.0]


def test_solve_rate_counts_every_attempt():
    assert solve_rate(verdicts(Status.OK, Status.WRONG, Status.FORMAT, Status.OK)) == 0.5
    with pytest.raises(ValueError, match="at least one"):
        solve_rate([])


@pytest.mark.parametrize(
    ("role", "status", "part"),
    [
        (Role.PROPOSER, Status.OK, "difficulty"),
        (Role.PROPOSER, Status.FORMAT, "validity"),
        (Role.PROPOSER, Status.TIMEOUT, "validity"),
        (Role.SOLVER, Status.OK, "correctness"),
        (Role.SOLVER, Status.ERROR, "correctness"),
        (Role.SOLVER, Status.FORMAT, "format"),
    ],
)
def test_rewards_stand_under_what_they_were_paid_for(role: Role, status: Status, part: str) -> None:
    parts = reward_parts(role, Verdict(status=status), 0.75)
    assert parts[part] == 0.75
    assert sum(parts.values()) == 0.75
