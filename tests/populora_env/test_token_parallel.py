"""Tests of `populora_env.token_parallel`: whose tokens are read, and what each step returns."""

import pickle

import numpy as np
import pytest
from faces import make, play
from gymnasium.utils.env_checker import data_equivalence
from token_play import PROPOSAL, DigitSum

from populora_env.token_grammar import Token
from populora_env.token_parallel import TokenParallelEnv
from populora_env.token_v0 import PROPOSER, TokenEnv


@pytest.mark.parametrize("reward_mode", ["individual", "team", "zero_sum"])
def test_both_faces_pay_the_same_for_the_same_tokens(reward_mode):
    env, other = (make(kind, DigitSum(), reward_mode=reward_mode, rounds=2) for kind in (TokenEnv, TokenParallelEnv))
    answers = {"solver_0": [Token.NEGATIVE, Token.DIGIT_6], "solver_1": [Token.DIGIT_3]}
    for _ in range(2):
        play(env, [*PROPOSAL, *answers["solver_0"], *answers["solver_1"]])
        for token in PROPOSAL:
            other.step({PROPOSER: token})
        other.step({agent: tokens[0] for agent, tokens in answers.items()})
        rewards = other.step({"solver_0": answers["solver_0"][1]})[1]
        assert rewards == env.rewards
        assert any(rewards.values())
    assert env.game.results == other.game.results


def test_parallel_steps_read_those_who_write():
    env = make(TokenParallelEnv, DigitSum())
    with pytest.raises(ValueError, match="must be a token"):
        env.step({"solver_0": 1})
    for token in PROPOSAL:
        seen, rewards, terminations, _, infos = env.step({PROPOSER: token, "solver_0": 3})
    assert [int(seen[agent]["action_mask"].sum()) for agent in env.agents] == [1, 12, 12]
    assert rewards == dict.fromkeys(env.agents, 0.0)
    assert {type(flag) for flag in terminations.values()} == {bool}
    assert np.array_equal(infos["solver_0"]["action_mask"], seen["solver_0"]["action_mask"])
    env.step(dict.fromkeys(env.agents, Token.DIGIT_7))
    *_, terminations, truncations, _ = env.step({PROPOSER: Token.NOOP})
    assert all(terminations.values())
    assert not any(truncations.values())
    assert env.agents == []
    with pytest.raises(ValueError, match="the episode is over"):
        env.step({})


def test_parallel_copies_go_on_as_the_original():
    env = make(TokenParallelEnv, DigitSum())
    env.step({PROPOSER: Token.TAKES_INT})
    other = pickle.loads(pickle.dumps(env))
    for token in PROPOSAL[1:]:
        assert data_equivalence(env.step({PROPOSER: token}), other.step({PROPOSER: token}), exact=True)
