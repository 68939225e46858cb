"""Tests of `populora_env.token_table`: spaces, infos, what is observed, and rendering."""

import copy
import pickle

import numpy as np
import pytest
from faces import make, play
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence
from token_play import PROPOSAL, DigitSum

from populora_env import token_v0
from populora_env.token_grammar import N_TOKENS, Token
from populora_env.token_parallel import TokenParallelEnv
from populora_env.token_table import MALFORMED, RIGHT, UNJUDGED, WRONG, TokenSpace
from populora_env.token_v0 import PROPOSER, TokenEnv
from populora_env.types import Task

FACES = pytest.mark.parametrize("kind", [TokenEnv, TokenParallelEnv])


def test_actions_are_the_tokens():
    env = make(TokenEnv)
    assert all(env.action_space(agent) == spaces.Discrete(N_TOKENS) for agent in env.possible_agents)


def test_infos_are_numbers_under_the_same_keys_and_tell_the_outcome_until_the_agent_acts_again():
    env = make(TokenEnv, DigitSum(), reward_mode="team", tasks=(Task.ABDUCTION,))
    fresh = {"round": 0, "task": 1, "verdict": UNJUDGED, "solve_rate": 0.0, "game_reward": 0.0}

    def told(agent):
        return {key: value for key, value in env.infos[agent].items() if key != "action_mask"}

    assert {agent: told(agent) for agent in env.agents} == dict.fromkeys(env.agents, fresh)
    play(env, [*PROPOSAL, Token.DIGIT_5, Token.NOOP])
    assert told(PROPOSER) == fresh | {"round": 1, "verdict": RIGHT, "solve_rate": 0.5, "game_reward": 0.5}
    assert told("solver_0") == fresh | {"round": 1, "verdict": RIGHT, "solve_rate": 0.5, "game_reward": 1.0}
    assert told("solver_1") == fresh | {"round": 1, "verdict": MALFORMED, "solve_rate": 0.5, "game_reward": -1.0}
    env.step(Token.TAKES_INT)
    assert told(PROPOSER) == fresh | {"round": 1}
    play(env, [*PROPOSAL[1:], Token.DIGIT_1])
    assert told("solver_0") == fresh | {"round": 1}
    assert told("solver_1")["verdict"] == MALFORMED
    env.step(Token.DIGIT_1)
    assert told("solver_1")["verdict"] == WRONG


@pytest.mark.parametrize("action", [None, 1.0, "1", -1, N_TOKENS])
@FACES
def test_what_is_no_token_is_refused_and_changes_nothing(kind, action):
    env = make(kind)
    before = env.state()
    with pytest.raises(ValueError, match="an action of proposer_0 must be"):
        env.step(action if kind is TokenEnv else {PROPOSER: action})
    assert np.array_equal(before, env.state())


def test_observing_is_pure_and_state_is_what_all_observe():
    env = make(TokenEnv, DigitSum(), tasks=tuple(Task), rounds=3)
    rng = np.random.default_rng(1)
    while env.agents:
        seen = {agent: env.observe(agent) for agent in env.possible_agents}
        for agent, observation in seen.items():
            assert env.observation_space(agent).contains(observation)
            on_turn = agent == env.agent_selection and not env.terminations[agent]
            assert observation["action_mask"][0] == (not on_turn)
            assert on_turn or observation["action_mask"].sum() == 1
        assert np.array_equal(env.state(), np.concatenate([each["observation"] for each in seen.values()]))
        kept = copy.deepcopy(seen)
        for observation in seen.values():
            observation["observation"][:] = 0.5
            observation["action_mask"][:] = 1
        for info in env.infos.values():
            info["action_mask"][:] = 1
        again = {agent: env.observe(agent) for agent in env.possible_agents}
        assert data_equivalence(kept, again, exact=True)
        legal = np.flatnonzero(again[env.agent_selection]["action_mask"])
        env.step(None if env.terminations[env.agent_selection] else int(rng.choice(legal)))


def test_samples_without_a_mask_are_legal():
    space = TokenSpace()
    assert 0 <= space.sample() < N_TOKENS
    env = make(TokenEnv)
    assert env.action_space("solver_0").sample() == 0
    mask = env.observe(PROPOSER)["action_mask"]
    assert {int(env.action_space(PROPOSER).sample()) for _ in range(50)} == set(np.flatnonzero(mask).tolist())
    assert space.sample(np.eye(N_TOKENS, dtype=np.int8)[7]) == 7
    assert space.sample(np.zeros(N_TOKENS, dtype=np.int8)) == 0
    assert space.sample(probability=np.eye(N_TOKENS)[3]) == 3
    with pytest.raises(ValueError, match="`mask` must have the shape"):
        space.sample(np.ones(3, dtype=np.int8))
    assert pickle.loads(pickle.dumps(space)) == space


def test_rendering_shows_the_round_and_what_is_written(capsys):
    env = token_v0.raw_env(verifier=DigitSum(), solver_seats=1, rounds=1, tasks=("deduction",), render_mode="ansi")
    env.reset(seed=0)
    play(env, PROPOSAL[:2])
    assert env.render() == "round 1 of 1: deduction, waiting for proposer_0\n  proposer_0 writes: takes_int return"
    play(env, [*PROPOSAL[2:], Token.DIGIT_9])
    assert "def f(x: int):" in env.render()
    assert "game over after 1 round" in env.render()
    human = token_v0.parallel_env(verifier=DigitSum(), render_mode="human")
    human.reset(seed=0)
    human.step({PROPOSER: Token.NOOP})
    assert "round 1: deduction" in capsys.readouterr().out
    assert human.render() is None
