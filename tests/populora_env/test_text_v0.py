"""Tests of `populora_env.text_v0`: PettingZoo's own checks, rewards, secrecy and determinism."""

import copy
import hashlib
import json
import os
import pickle
import subprocess
import sys
from collections import Counter, defaultdict

import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from pettingzoo.test import api_test, seed_test
from scripted_judge import ScriptedJudge, answer_text, induction_text, proposal_text

import populora_env
from populora_env import text_v0
from populora_env.config import GameConfig, RewardConfig
from populora_env.text_v0 import PROPOSER, VECTOR_SIZE, TextEnv, as_observation
from populora_env.types import Task
from populora_env.verifier import Verifier

DEDUCTION = (Task.DEDUCTION,)
ROUNDS = 60
CHECKS = pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo.test.api_test")


@pytest.fixture(scope="module")
def verifier():
    with Verifier() as shared:
        yield shared


def make(judge=None, *, seed=0, **rules):
    env = TextEnv(config=GameConfig(**{"solver_seats": 2, "tasks": DEDUCTION, "rounds": 2} | rules), verifier=judge)
    env.reset(seed=seed)
    return env


def seed_actions(env, seed=0):
    for place, agent in enumerate(env.possible_agents):
        env.action_space(agent).seed(seed + place)


def play(env, actions):
    """Step through the actions; return (agent, reward, terminated) as `last()` gave them before each."""
    seen = []
    for action in actions:
        _, reward, terminated, truncated, _ = env.last()
        assert not truncated
        seen.append((env.agent_selection, reward, terminated))
        env.step(action)
    return seen


# PettingZoo's own checks, with the real verifier


@CHECKS
@pytest.mark.parametrize("actions", range(12))
def test_the_default_environment_reaches_the_solvers_in_either_check(actions, verifier):
    results = []

    def default():
        env = TextEnv(config=GameConfig(), verifier=verifier, on_settled=results.append)
        seed_actions(env, seed=100 * actions)
        return env

    api_test(default())
    assert reached(results) >= 0.2
    results.clear()
    seed_test(default)
    assert reached(results) >= 0.2


@CHECKS
@pytest.mark.parametrize("style", ["compact", "chat"])
def test_api_and_seed_tests_pass_and_random_play_reaches_the_solvers(style, verifier):
    config, results = GameConfig(rounds=ROUNDS, style=style), []

    def raw():
        env = TextEnv(config=config, verifier=verifier, on_settled=results.append)
        seed_actions(env)
        return env

    api_test(raw())
    assert len(results) >= ROUNDS
    assert reached(results) >= 0.2
    results.clear()
    seed_test(raw)
    assert len(results) == 2 * ROUNDS
    assert reached(results) >= 0.2
    by_task = Counter(result.task for result in results if result.problem is not None)
    assert set(by_task) == set(Task)
    statuses = {verdict.status for result in results for verdict in result.attempt_verdicts}
    assert {"ok", "wrong", "format"} <= statuses


def reached(results):
    return sum(result.problem is not None for result in results) / len(results)


@CHECKS
@pytest.mark.parametrize("make_env", [populora_env.env, populora_env.raw_env])
def test_default_environments_pass(make_env):
    assert make_env in (text_v0.env, text_v0.raw_env)
    env = make_env()
    api_test(env, num_cycles=20)
    env.close()
    seed_test(lambda: make_env(max_cycles=4), num_cycles=20)


# Turn order and rewards


def test_rewards_come_at_the_next_turn_and_the_last_ones_at_the_dead_step():
    env = make(ScriptedJudge())
    right, wrong = answer_text("'right'"), answer_text("3")
    seen = play(env, [proposal_text(), right, wrong, "nonsense", None, None, None])
    assert seen == [
        (PROPOSER, 0.0, False),
        ("solver_0", 0.0, False),
        ("solver_1", 0.0, False),
        (PROPOSER, 0.5, False),
        (PROPOSER, -1.0, True),
        ("solver_0", 1.0, True),
        ("solver_1", -0.5, True),
    ]
    assert env.agents == []


def test_solvers_are_skipped_after_an_invalid_proposal():
    env = make(ScriptedJudge(), rounds=4)
    seen = play(env, ["nonsense", proposal_text("return invalid"), proposal_text(), "", "", ""])
    assert [agent for agent, _, _ in seen] == [PROPOSER, PROPOSER, PROPOSER, "solver_0", "solver_1", PROPOSER]
    assert [reward for agent, reward, _ in seen if agent == PROPOSER] == [0.0, -1.0, -1.0, 0.0]
    assert env.infos["solver_1"]["outcome"]["verdict"].startswith("format")


def test_every_reward_is_told_once_with_its_parts():
    env = make(ScriptedJudge(), rounds=5)
    told, paid = defaultdict(float), defaultdict(float)
    script = iter([proposal_text(), answer_text("'right'"), "", "nonsense"] * 5)
    for agent in env.agent_iter():
        _, reward, terminated, _, info = env.last()
        told[agent] += reward
        assert info["outcome"].get("reward", 0.0) == sum(info["reward_parts"].values()) == reward
        env.step(None if terminated else next(script))
    for result in env.game.results:
        paid[PROPOSER] += result.proposer_reward
        for seat, reward in enumerate(result.solver_rewards):
            paid[f"solver_{seat}"] += reward
    assert told == paid
    assert len(env.game.results) == 5


def test_outcomes_are_dropped_when_the_agent_acts_again():
    env = make(ScriptedJudge(), rounds=3)
    play(env, [proposal_text(), "", ""])
    assert env.infos[PROPOSER]["outcome"]["solve_rate"] == 0.0
    env.step(proposal_text())
    assert env.infos[PROPOSER]["outcome"] == {}
    assert env.infos["solver_0"]["outcome"]["reward"] == -1.0
    env.step("")
    assert env.infos["solver_0"]["outcome"] == {}
    assert env.infos["solver_1"]["outcome"]["reward"] == -1.0


def test_answers_are_judged_together_at_the_last_step():
    judge = ScriptedJudge()
    env = make(judge, solver_seats=3)
    play(env, [proposal_text(), answer_text("1"), answer_text("2")])
    assert judge.calls == [("proposals", 1)]
    play(env, [answer_text("3")])
    assert judge.calls == [("proposals", 1), ("answers", 3)]


@pytest.mark.parametrize("action", [None, 3, b"x"])
def test_what_is_no_text_is_refused_and_changes_nothing(action):
    env = make(ScriptedJudge())
    with pytest.raises(ValueError, match="must be a str"):
        env.step(action)
    assert env.agent_selection == PROPOSER
    play(env, [proposal_text()])
    assert env.agent_selection == "solver_0"


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "x" * 10_000_000, "\x1b[2J", "(" * 16_000], ids=range(6))
def test_any_text_is_an_action_of_any_seat(text, verifier):
    env = make(verifier, rounds=2)
    play(env, [text, proposal_text(), text, text])
    assert env.rewards == {PROPOSER: 0.0, "solver_0": -1.0, "solver_1": -1.0}


# What is seen


def all_seen(env):
    """Everything that agents can get at: observations, infos, and whose turn it is."""
    observations = {agent: env.observe(agent) for agent in env.agents}
    return copy.deepcopy([env.agent_selection, observations, env.infos, env.rewards, env.terminations])


@pytest.mark.parametrize("task", list(Task))
def test_what_is_hidden_changes_nothing_until_settlement(task):
    """Two games that differ only in hidden outputs; those of induction's hidden half, or deduction's one."""
    envs = [make(ScriptedJudge(output=gold), tasks=(task,)) for gold in ("111", "222")]
    if task is Task.ABDUCTION:  # its output is shown; its input is hidden
        envs = [make(ScriptedJudge(), tasks=(task,)) for _ in range(2)]
    inputs = ("(1,)", "(2,)") if task is Task.ABDUCTION else ("(1,)", "(1,)")
    for env, given in zip(envs, inputs, strict=True):
        env.step(induction_text() if task is Task.INDUCTION else proposal_text(given=given))
    assert envs[0].game.round.problem != envs[1].game.round.problem
    for _ in range(2):
        assert data_equivalence(all_seen(envs[0]), all_seen(envs[1]), exact=True)
        for env in envs:
            env.step(answer_text("111"))
    assert envs[0].infos[PROPOSER]["outcome"]["verdict"] == "ok"


def test_observing_is_pure_valid_for_every_agent_in_every_phase_and_in_its_space():
    env = make(ScriptedJudge(), rounds=3, tasks=tuple(Task))
    script = iter([proposal_text(), "", "", "nonsense", induction_text(), "", ""])
    for _ in env.agent_iter():
        before = all_seen(env)
        for agent in env.agents:
            observation = env.observe(agent)
            assert env.observation_space(agent).contains(observation)
            observation["observation"][:] = 0.5
        assert data_equivalence(before, all_seen(env), exact=True)
        env.step(None if env.last()[2] else next(script))
    assert next(script, None) is None


def test_prompts_and_messages_go_to_those_who_have_to_act():
    env = make(ScriptedJudge())

    def prompted():
        texts = {agent: env.observe(agent)["prompt"] for agent in env.agents}
        assert all(bool(texts[agent]) == bool(env.infos[agent]["messages"]) for agent in env.agents)
        return [agent for agent, text in texts.items() if text]

    assert prompted() == [PROPOSER]
    env.step(proposal_text())
    assert prompted() == ["solver_0", "solver_1"]
    assert env.infos["solver_0"]["messages"][-1]["content"] == env.observe("solver_0")["prompt"]
    env.step("")
    assert prompted() == ["solver_1"]
    play(env, ["", "nonsense"])
    assert prompted() == []


def test_policies_can_take_seats():
    env = make(ScriptedJudge())
    seen, _, _, _, info = env.last()
    assert as_observation(seen, info) == env.game.round.proposer_observation()
    env.step(proposal_text())
    seen, _, _, _, info = env.last()
    assert as_observation(seen, info) == env.game.round.solver_observation()


def test_the_vector_tells_role_task_turn_progress_and_program():
    env = make(ScriptedJudge(), tasks=(Task.ABDUCTION,))
    first = env.observe(PROPOSER)["observation"]
    assert first[:7].tolist() == [1, 0, 0, 1, 0, 1, 0]
    assert (first[7:] > 0).all()
    play(env, [proposal_text(), "", ""])
    later = env.observe("solver_1")["observation"]
    assert later.tolist() == [0, 1, 0, 1, 0, 0, 0.5, 0, 0, 0, 0]
    assert later.shape == (VECTOR_SIZE,)


# Determinism and copies


def trace(env, seed, steps=200):
    """Play random actions for some steps over episodes; return a digest of all that was seen."""
    digest = hashlib.sha256()
    seed_actions(env, seed)
    env.reset(seed=seed)
    for _ in range(steps):
        if not env.agents:
            env.reset()
        agent = env.agent_selection
        observation, reward, terminated, _, info = env.last()
        seen = [agent, observation["observation"].tolist(), observation["prompt"], reward, terminated, info]
        digest.update(json.dumps(seen).encode())
        env.step(None if terminated else env.action_space(agent).sample())
    return digest.hexdigest()


def main():
    with Verifier() as verifier:
        sys.stdout.write(trace(TextEnv(config=GameConfig(), verifier=verifier), 7))


def test_processes_with_different_hash_seeds_agree_over_many_steps():
    digests = set()
    for hash_seed in ("0", "1"):
        command = [sys.executable, "-c", "import test_text_v0; test_text_v0.main()"]
        path = os.pathsep.join([os.path.dirname(__file__), *sys.path])
        environ = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": path}
        digests.add(subprocess.run(command, env=environ, check=True, capture_output=True, text=True).stdout)
    assert len(digests) == 1
    assert len(digests.pop()) == 64


def test_seeds_matter_and_resets_without_one_go_on():
    def first_prompts(seed):
        env = make(ScriptedJudge(), seed=seed)
        prompts = [env.observe(PROPOSER)["prompt"]]
        env.reset()
        return [*prompts, env.observe(PROPOSER)["prompt"]]

    assert first_prompts(1) == first_prompts(1)
    assert first_prompts(1) != first_prompts(2)
    assert len(set(first_prompts(1))) == 2


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("wrap", [text_v0.env, text_v0.raw_env])
def test_copies_go_on_as_the_original(duplicate, wrap):
    env = wrap(config=GameConfig(solver_seats=2, tasks=DEDUCTION))
    env.reset(seed=0)
    env.step(proposal_text())
    other = duplicate(env)
    try:
        for _ in range(2):
            assert data_equivalence(all_seen(env), all_seen(other), exact=True)
            for each in (env, other):
                each.step(answer_text("1"))
        assert data_equivalence(all_seen(env), all_seen(other), exact=True)
        assert other.infos["solver_0"]["outcome"]["verdict"] == "ok"
    finally:
        env.close()
        other.close()


# Verifier, spaces, rendering


def test_a_shared_verifier_is_left_open_and_an_own_one_is_closed_and_can_be_used_again():
    judge = ScriptedJudge()
    env = make(judge)
    play(env, [proposal_text()])
    env.close()
    assert judge.closed == 0
    own = make()
    play(own, [proposal_text()])
    own.close()
    own.close()
    own.reset(seed=0)
    play(own, [proposal_text()])
    assert own.agent_selection == "solver_0"
    own.close()


def test_spaces_are_the_same_objects_at_every_call():
    env = text_v0.env()
    for agent in env.possible_agents:
        assert env.action_space(agent) is env.action_space(agent)
        assert env.observation_space(agent) is env.observation_space(agent)
        assert env.observation_space(agent) == env.observation_space(PROPOSER)
        assert env.observation_space(agent).contains(env.observation_space(agent).sample())
    assert len({id(env.action_space(agent)) for agent in env.possible_agents}) == len(env.possible_agents)


def test_names_and_settings():
    env = text_v0.env(max_cycles=7, config=GameConfig(solver_seats=2))
    assert env.possible_agents == ["proposer_0", "solver_0", "solver_1"]
    assert env.unwrapped.config.rounds == 7
    assert str(env) == "populora_text_v0"
    plain = text_v0.raw_env(solver_seats=2, rounds=5, tasks=("deduction",), references=1, reward="linear")
    assert plain.config == GameConfig(
        solver_seats=2, rounds=5, tasks=DEDUCTION, references=1, rewards=RewardConfig(scheme="linear")
    )
    with pytest.raises(TypeError, match="expected rules among"):
        text_v0.env(solvers=2)
    with pytest.raises(ValueError, match="render_mode"):
        text_v0.env(render_mode="rgb_array")
    with pytest.raises(ValueError, match="rounds"):
        text_v0.env(max_cycles=0)


def test_terminations_are_python_bools_and_rewards_floats():
    env = make(ScriptedJudge(), rounds=1)
    play(env, [proposal_text(), "", answer_text("'right'")])
    assert {type(flag) for flag in (*env.terminations.values(), *env.truncations.values())} == {bool}
    assert {type(reward) for reward in env.rewards.values()} == {float}
    assert env.observe(PROPOSER)["observation"].dtype == np.float32


def test_rendering_is_escaped(capsys):
    env = text_v0.raw_env(config=GameConfig(solver_seats=1, tasks=DEDUCTION, rounds=1), verifier=ScriptedJudge())
    env.render_mode = "ansi"
    env.reset(seed=0)
    assert env.render() == "round 1 of 1: deduction, waiting for proposer_0"
    play(env, [proposal_text(), answer_text("\x1b[2J")])
    assert "\\x1b[2J" in env.render()
    assert "\x1b" not in env.render()
    human = text_v0.raw_env(verifier=ScriptedJudge(), render_mode="human")
    human.reset(seed=0)
    play(human, ["nonsense"])
    written = capsys.readouterr().out
    assert "round 1: deduction" in written
    assert "round 2 of 3: abduction, waiting for proposer_0" in written


def test_rendering_without_a_mode_warns():
    env = make(ScriptedJudge())
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None
