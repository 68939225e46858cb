"""Tests of `populora_env.text_v0`: whose turn it is and who is paid when, one agent after the other."""

import copy
import pickle
from collections import defaultdict

import pytest
from faces import DEDUCTION, all_seen, make, paid_by, play
from gymnasium.utils.env_checker import data_equivalence
from scripted_judge import ScriptedJudge, answer_text, proposal_text

from populora_env import text_v0
from populora_env.config import GameConfig, RewardConfig
from populora_env.text_v0 import PROPOSER, TextEnv
from populora_env.verifier import Verifier


@pytest.fixture(scope="module")
def verifier():
    with Verifier() as shared:
        yield shared


# Turn order and rewards


def test_rewards_come_at_the_next_turn_and_the_last_ones_at_the_dead_step():
    env = make(TextEnv)
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
    env = make(TextEnv, rounds=4)
    seen = play(env, ["nonsense", proposal_text("return invalid"), proposal_text(), "", "", ""])
    assert [agent for agent, _, _ in seen] == [PROPOSER, PROPOSER, PROPOSER, "solver_0", "solver_1", PROPOSER]
    assert [reward for agent, reward, _ in seen if agent == PROPOSER] == [0.0, -1.0, -1.0, 0.0]
    assert env.infos["solver_1"]["outcome"]["verdict"].startswith("format")


def test_every_reward_is_told_once_with_its_parts():
    env = make(TextEnv, rounds=5)
    told = defaultdict(float)
    script = iter([proposal_text(), answer_text("'right'"), "", "nonsense"] * 5)
    for agent in env.agent_iter():
        _, reward, terminated, _, info = env.last()
        told[agent] += reward
        assert info["outcome"].get("reward", 0.0) == sum(info["reward_parts"].values()) == reward
        env.step(None if terminated else next(script))
    assert told == paid_by(env.game.results)
    assert len(env.game.results) == 5


def test_outcomes_are_dropped_when_the_agent_acts_again():
    env = make(TextEnv, rounds=3)
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
    env = make(TextEnv, judge, solver_seats=3)
    play(env, [proposal_text(), answer_text("1"), answer_text("2")])
    assert judge.calls == [("proposals", 1)]
    play(env, [answer_text("3")])
    assert judge.calls == [("proposals", 1), ("answers", 3)]


@pytest.mark.parametrize("action", [None, 3, b"x"])
def test_what_is_no_text_is_refused_and_changes_nothing(action):
    env = make(TextEnv)
    with pytest.raises(ValueError, match="must be a str"):
        env.step(action)
    assert env.agent_selection == PROPOSER
    play(env, [proposal_text()])
    assert env.agent_selection == "solver_0"


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "x" * 10_000_000, "\x1b[2J", "(" * 16_000], ids=range(6))
def test_any_text_is_an_action_of_any_seat(text, verifier):
    env = make(TextEnv, verifier, rounds=2)
    play(env, [text, proposal_text(), text, text])
    assert env.rewards == {PROPOSER: 0.0, "solver_0": -1.0, "solver_1": -1.0}


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


def test_rules_reach_the_game():
    env = text_v0.raw_env(solver_seats=2, rounds=5, tasks=("deduction",), references=1, reward="linear")
    assert env.config == GameConfig(
        solver_seats=2, rounds=5, tasks=DEDUCTION, references=1, rewards=RewardConfig(scheme="linear")
    )


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
