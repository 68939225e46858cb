"""Tests of `populora_env.token_v0`: who is paid when, one agent after the other; random play, copies and settings."""

import copy
import pickle
from collections import defaultdict

import numpy as np
import pytest
from faces import DEDUCTION, Maker, all_seen, make, play
from gymnasium.utils.env_checker import data_equivalence
from scripted_judge import ScriptedJudge
from token_play import PROPOSAL, DigitSum, random_episode

from populora_env import token_v0
from populora_env.config import GameConfig
from populora_env.token_grammar import Token
from populora_env.token_table import RIGHT
from populora_env.token_v0 import PROPOSER, TokenEnv
from populora_env.types import Task
from populora_env.verifier import Verifier


@pytest.fixture(scope="module")
def verifier():
    with Verifier() as shared:
        yield shared


def test_rewards_come_at_the_next_turn_and_the_last_ones_at_the_dead_step():
    env = make(TokenEnv, DigitSum())
    seen = play(env, [*PROPOSAL, Token.DIGIT_5, Token.DIGIT_1, Token.NOOP, None, None, None])
    assert seen == [
        *[(PROPOSER, 0.0, False)] * 5,
        ("solver_0", 0.0, False),
        ("solver_1", 0.0, False),
        (PROPOSER, 0.5, False),
        (PROPOSER, -1.0, True),
        ("solver_0", 1.0, True),
        ("solver_1", -0.5, True),
    ]
    assert env.agents == []


@pytest.mark.parametrize("reward_mode", ["individual", "team", "zero_sum"])
def test_a_plain_loop_is_told_every_reward_once(reward_mode):
    env = make(TokenEnv, DigitSum(), reward_mode=reward_mode, tasks=tuple(Task), rounds=12)
    told, paid = defaultdict(float), defaultdict(float)
    rng = np.random.default_rng(0)
    for agent in env.agent_iter():
        observation, reward, terminated, _, _ = env.last()
        told[agent] += reward
        legal = np.flatnonzero(observation["action_mask"])
        token = Token.NOOP if rng.random() < 0.02 else int(rng.choice(legal))  # now and then what is not legal
        env.step(None if terminated else token)
    for result in env.game.results:
        solvers = result.solver_rewards or (0.0, 0.0)
        mean = (result.proposer_reward + sum(solvers)) / 3
        zero = [r / 2 for r in result.solver_rewards] or [-result.proposer_reward / 2] * 2
        shares = {
            "individual": [result.proposer_reward, *solvers],
            "team": [mean] * 3,
            "zero_sum": [-sum(zero), *zero],
        }[reward_mode]
        for agent, share in zip(env.possible_agents, shares, strict=True):
            paid[agent] += share
    assert told == pytest.approx(paid)
    assert len(env.game.results) == 12
    assert {result.proposal_verdict.ok for result in env.game.results} == {True, False}
    assert {verdict.ok for result in env.game.results for verdict in result.attempt_verdicts} == {True, False}
    if reward_mode == "zero_sum":
        assert sum(told.values()) == 0.0


@pytest.mark.parametrize("episodes", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_mask_is_empty_and_every_derivation_ends(episodes):
    results = []
    env = TokenEnv(config=GameConfig(), verifier=ScriptedJudge(), on_settled=results.append)
    rng, limit = np.random.default_rng(0), env.rules.max_tokens
    env.reset(seed=0)
    for _ in range(episodes):
        length = 0
        while not env.terminations[PROPOSER]:
            agent = env.agent_selection
            legal = np.flatnonzero(env.table.seats[env.possible_agents.index(agent)].mask)
            assert legal.size
            assert legal[0] != 0
            env.step(int(legal[rng.integers(legal.size)]))
            length = length + 1 if env.agent_selection == agent else 0
            assert length <= 2 * limit  # the proposer may write twice in a row: never here, where all is valid
        env.reset()
    assert len(results) == 3 * episodes
    assert all(result.problem is not None and None not in result.answers for result in results)


def test_what_random_play_writes_is_valid(verifier):
    maker = Maker(TokenEnv, verifier, rounds=150, solver_seats=1)
    env = maker()
    env.reset(seed=5)
    random_episode(env, np.random.default_rng(5))
    maker.assert_reached(0.95, rounds=150)
    assert maker.statuses() == {"ok", "wrong"}


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("written", [0, 3, 5, 6])
def test_copies_go_on_as_the_original(duplicate, written):
    script = [*PROPOSAL, Token.DIGIT_3, Token.DIGIT_1, Token.TAKES_LIST, Token.LET]
    for wrap in (token_v0.env, token_v0.raw_env):
        env = wrap(config=GameConfig(solver_seats=2, tasks=DEDUCTION))
        env.reset(seed=0)
        play(env, script[:written])
        other = duplicate(env)
        try:
            for token in script[written:]:
                for each in (env, other):
                    each.step(token)
                assert data_equivalence(all_seen(env), all_seen(other), exact=True)
            assert other.infos["solver_0"]["verdict"] == RIGHT
        finally:
            env.close()
            other.close()


def test_settings_reach_the_game():
    env = token_v0.env(rounds=7, solver_seats=2, tasks=("abduction",), max_tokens=12, reward_mode="team")
    assert env.possible_agents == ["proposer_0", "solver_0", "solver_1"]
    assert env.unwrapped.config.rounds == 7
    assert (env.unwrapped.rules.max_tokens, env.unwrapped.reward_mode) == (12, "team")
    assert token_v0.parallel_env(max_cycles=5).config.rounds == 5
    assert str(env) == str(token_v0.parallel_env()) == "populora_token_v0"
    assert env.observation_space(PROPOSER)["observation"].shape < (1222,)
    assert token_v0.env().observation_space(PROPOSER)["observation"].shape == (1222,)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"render_mode": "rgb_array"}, "render_mode"),
        ({"reward_mode": "mean"}, "`reward_mode` must be one of"),
        ({"max_tokens": 6}, "`max_tokens` must be at least 8"),
        ({"max_cycles": 0}, "rounds"),
    ],
)
def test_settings_out_of_range_are_refused(rules, message):
    with pytest.raises(ValueError, match=message):
        token_v0.raw_env(**rules)
