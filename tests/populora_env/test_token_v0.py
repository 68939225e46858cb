"""Tests of `populora_env.token_v0` and its parallel face: PettingZoo's own checks, rewards, copies and determinism."""

import copy
import hashlib
import json
import os
import pickle
import subprocess
import sys
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence
from pettingzoo.test import api_test, max_cycles_test, parallel_api_test, parallel_seed_test, render_test, seed_test
from pettingzoo.test.state_test import state_test
from scripted_judge import ScriptedJudge
from token_play import ADD_ONE, input_tokens, random_episode

from populora_env import token_v0
from populora_env.config import GameConfig
from populora_env.token_grammar import N_TOKENS, Token
from populora_env.token_table import MALFORMED, RIGHT, UNJUDGED, WRONG
from populora_env.token_v0 import PROPOSER, TokenEnv, TokenParallelEnv, TokenSpace
from populora_env.types import Task
from populora_env.verifier import Verifier

DEDUCTION = (Task.DEDUCTION,)
PROPOSAL = (*ADD_ONE, Token.DIGIT_2)
FACES = pytest.mark.parametrize("kind", [TokenEnv, TokenParallelEnv])

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo.test.api_test"),
    pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo.test.state_test"),
]


@pytest.fixture(scope="module")
def verifier():
    with Verifier() as shared:
        yield shared


class Maker:
    """Makes environments with seeded samples, and counts the rounds that reach the solvers."""

    def __init__(self, kind, verifier, **rules):
        """Make environments of this class."""
        self.kind, self.verifier, self.config, self.results = kind, verifier, GameConfig(**rules), []

    def __call__(self, render_mode=None):
        """Make one."""
        env = self.kind(
            config=self.config, verifier=self.verifier, render_mode=render_mode, on_settled=self.results.append
        )
        for place, agent in enumerate(env.possible_agents):
            env.action_space(agent).seed(place)
        return env

    def reached(self):
        """Return the share of rounds with a valid problem."""
        return sum(result.problem is not None for result in self.results) / len(self.results)


def make(kind=TokenEnv, judge=None, *, reward_mode="individual", seed=0, **rules):
    config = GameConfig(**{"solver_seats": 2, "tasks": DEDUCTION, "rounds": 2} | rules)
    env = kind(config=config, verifier=judge or ScriptedJudge(), reward_mode=reward_mode)
    env.reset(seed=seed)
    return env


def play(env, actions):
    """Step through the actions; return (agent, reward, terminated) as `last()` gave them before each."""
    seen = []
    for action in actions:
        _, reward, terminated, truncated, _ = env.last()
        assert not truncated
        seen.append((env.agent_selection, reward, terminated))
        env.step(action)
    return seen


class Numbers:
    """A judge by the sum of the answer's digits: what is at least 5 is right."""

    check_proposals = ScriptedJudge.check_proposals
    _proposal = ScriptedJudge._proposal
    output = "0"

    def __init__(self):
        """Keep the calls."""
        self.calls = []
        self.owners = []

    def check_answers(self, attempts, *, owners=None):
        """Judge by the digits."""
        self.owners.append(owners)
        judged = ScriptedJudge()
        answers = [("right" if sum(map(int, filter(str.isdigit, answer.text))) >= 5 else "") for _, answer in attempts]
        return judged.check_answers([(None, SimpleNamespace(text=text)) for text in answers])


# PettingZoo's own checks, with the real verifier


@pytest.mark.parametrize("task", Task)
def test_aec_checks_pass_and_random_play_reaches_the_solvers(task, verifier):
    maker = Maker(TokenEnv, verifier, tasks=(task,), rounds=20, solver_seats=2)
    api_test(maker(), num_cycles=150)
    seed_test(maker, num_cycles=100)
    assert len(maker.results) >= 40
    assert maker.reached() >= 0.95
    assert {verdict.status for result in maker.results for verdict in result.attempt_verdicts} == {"ok", "wrong"}


@pytest.mark.filterwarnings("error::UserWarning:pettingzoo")
def test_parallel_checks_pass_and_random_play_reaches_the_solvers(verifier):
    maker = Maker(TokenParallelEnv, verifier, rounds=6)
    parallel_api_test(maker(), num_cycles=200)
    assert len(maker.results) == 12
    assert maker.reached() >= 0.95
    parallel_seed_test(maker, num_cycles=300)  # looks at one step; more are looked at below
    assert {result.task for result in maker.results} == set(Task)


def test_default_environments_pass():
    api_test(token_v0.env(rounds=4), num_cycles=20)
    seed_test(lambda: token_v0.env(rounds=4), num_cycles=20)
    parallel_api_test(token_v0.parallel_env(rounds=4), num_cycles=60)


def test_state_check_passes(verifier):
    state_test(Maker(TokenEnv, verifier)(), Maker(TokenParallelEnv, verifier)())


def test_render_check_passes(capsys):
    render_test(Maker(TokenEnv, ScriptedJudge(), rounds=30, solver_seats=1))
    assert "proposer_0 writes: " in capsys.readouterr().out


def test_max_cycles_check_passes_where_every_agent_writes_as_many_tokens():
    """The check asks for one action of each agent in each cycle; here a round of four tokens each is four cycles.

    In the parallel face a round of malformed proposals is one step.
    """

    def scripted(env, script):
        for agent in env.possible_agents:
            tokens = iter(script[agent == PROPOSER] * 99)
            env.action_space(agent).sample = lambda tokens=tokens: next(tokens)
        return env

    answer = [Token.NEGATIVE, Token.MORE, Token.DIGIT_1, Token.DIGIT_2]
    proposal = [Token.TAKES_INT, Token.RETURN, Token.ABSOLUTE, Token.DIGIT_1]
    rules = {"verifier": ScriptedJudge(), "tasks": ("deduction",)}
    face = SimpleNamespace(
        env=lambda max_cycles: scripted(token_v0.env(max_cycles=max_cycles // 4, **rules), [answer, proposal]),
        parallel_env=lambda max_cycles: scripted(token_v0.parallel_env(max_cycles=max_cycles, **rules), [[0], [0]]),
    )
    max_cycles_test(face)


# Turns and rewards


def test_rewards_come_at_the_next_turn_and_the_last_ones_at_the_dead_step():
    env = make(judge=Numbers())
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
    env = make(judge=Numbers(), reward_mode=reward_mode, tasks=tuple(Task), rounds=12)
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


@pytest.mark.parametrize("reward_mode", ["individual", "team", "zero_sum"])
def test_both_faces_pay_the_same_for_the_same_tokens(reward_mode):
    env, other = (make(kind, Numbers(), reward_mode=reward_mode, rounds=2) for kind in (TokenEnv, TokenParallelEnv))
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


def test_infos_are_numbers_under_the_same_keys_and_tell_the_outcome_until_the_agent_acts_again():
    env = make(judge=Numbers(), reward_mode="team", tasks=(Task.ABDUCTION,))
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


def test_parallel_steps_read_those_who_write():
    env = make(TokenParallelEnv, Numbers())
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


# Spaces and observations


@FACES
def test_spaces_are_the_same_objects_and_alike_for_all(kind):
    env = make(kind)
    for agent in env.possible_agents:
        assert env.action_space(agent) is env.action_space(agent)
        assert env.observation_space(agent) is env.observation_space(agent)
        assert env.observation_space(agent) == env.observation_space(PROPOSER)
        assert env.action_space(agent) == spaces.Discrete(N_TOKENS)
    assert env.state_space.contains(env.state())
    assert env.state_space.shape == (3 * env.observation_space(PROPOSER)["observation"].shape[0],)


def test_observing_is_pure_and_state_is_what_all_observe():
    env = make(judge=Numbers(), tasks=tuple(Task), rounds=3)
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
    env = make()
    assert env.action_space("solver_0").sample() == 0
    mask = env.observe(PROPOSER)["action_mask"]
    assert {int(env.action_space(PROPOSER).sample()) for _ in range(50)} == set(np.flatnonzero(mask).tolist())
    assert space.sample(np.eye(N_TOKENS, dtype=np.int8)[7]) == 7
    assert space.sample(np.zeros(N_TOKENS, dtype=np.int8)) == 0
    assert space.sample(probability=np.eye(N_TOKENS)[3]) == 3
    with pytest.raises(ValueError, match="`mask` must have the shape"):
        space.sample(np.ones(3, dtype=np.int8))
    assert pickle.loads(pickle.dumps(space)) == space


# Random play


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
    assert len(maker.results) == 150
    assert maker.reached() >= 0.95
    attempts = [verdict.status for result in maker.results for verdict in result.attempt_verdicts]
    assert "format" not in attempts
    assert set(attempts) == {"ok", "wrong"}


# Determinism and copies


def trace(kind, seed, verifier, steps=150):
    """Play random tokens over episodes; return a digest of all that was seen."""

    def plain(value):
        return value.tolist()

    env, digest = kind(config=GameConfig(rounds=4), verifier=verifier), hashlib.sha256()
    for place, agent in enumerate(env.possible_agents):
        env.action_space(agent).seed(seed + place)
    seen = [env.reset(seed=seed)]
    for _ in range(steps):
        if not env.agents:
            env.reset()
        if kind is TokenEnv:
            agent = env.agent_selection
            seen = [agent, env.last(), env.rewards]
            env.step(None if env.terminations[agent] else int(env.action_space(agent).sample()))
        else:
            seen = env.step({agent: env.action_space(agent).sample() for agent in env.agents})
        digest.update(json.dumps([seen, env.state()], default=plain, allow_nan=False).encode())
    return digest.hexdigest()


def main():
    with Verifier() as verifier:
        sys.stdout.write(" ".join(trace(kind, 7, verifier) for kind in (TokenEnv, TokenParallelEnv)))


def test_processes_with_different_hash_seeds_agree_over_many_steps():
    digests = set()
    for hash_seed in ("0", "1"):
        command = [sys.executable, "-c", "import test_token_v0; test_token_v0.main()"]
        path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
        environ = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
        digests.add(subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout)
    assert len(digests) == 1
    assert len(digests.pop()) == 2 * 64 + 1


def test_seeds_matter_and_resets_without_one_go_on():
    def references(seed):
        env = make(seed=seed)
        first = env.game.round.references
        env.reset()
        return first, env.game.round.references

    assert references(1) == references(1)
    assert references(1) != references(2)
    assert len(set(references(1))) == 2


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


def test_parallel_copies_go_on_as_the_original():
    env = make(TokenParallelEnv, Numbers())
    env.step({PROPOSER: Token.TAKES_INT})
    other = pickle.loads(pickle.dumps(env))
    for token in PROPOSAL[1:]:
        assert data_equivalence(env.step({PROPOSER: token}), other.step({PROPOSER: token}), exact=True)


def all_seen(env):
    """Everything that agents can get at: observations, state, infos, rewards and whose turn it is."""
    observations = {agent: env.observe(agent) for agent in env.possible_agents}
    flags = [env.agent_selection, env.rewards, env.terminations, env._cumulative_rewards]
    return copy.deepcopy([observations, env.state(), env.infos, *flags])


# Settings and rendering


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


def test_an_own_verifier_is_closed_and_can_be_used_again():
    env = token_v0.raw_env(tasks=("deduction",), solver_seats=1)
    for _ in range(2):
        env.reset(seed=0)
        play(env, [*PROPOSAL, *input_tokens(3)])
        assert env.rewards["solver_0"] == 1.0
        env.close()
    judge = ScriptedJudge()
    make(judge=judge).close()
    assert judge.closed == 0


def test_rendering_shows_the_round_and_what_is_written(capsys):
    env = token_v0.raw_env(verifier=Numbers(), solver_seats=1, rounds=1, tasks=("deduction",), render_mode="ansi")
    env.reset(seed=0)
    play(env, PROPOSAL[:2])
    assert env.render() == "round 1 of 1: deduction\n  proposer_0 writes: takes_int return"
    play(env, [*PROPOSAL[2:], Token.DIGIT_9])
    assert "def f(x: int):" in env.render()
    assert "game over after 1 rounds" in env.render()
    human = token_v0.parallel_env(verifier=Numbers(), render_mode="human")
    human.reset(seed=0)
    human.step({PROPOSER: Token.NOOP})
    assert "round 1: deduction" in capsys.readouterr().out
    assert human.render() is None


def test_rendering_without_a_mode_warns():
    env = make()
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None
