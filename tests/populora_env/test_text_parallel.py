"""Tests of `populora_env.text_parallel`: phases, who is read, who is paid when."""

import copy
import pickle
from collections import defaultdict

import numpy as np
import pytest
from faces import paid_by
from gymnasium.utils.env_checker import data_equivalence
from scripted_judge import ScriptedJudge, answer_text, induction_text, proposal_text

from populora_env import text_v0
from populora_env.config import GameConfig
from populora_env.text_agents import PROPOSER, VECTOR_SIZE
from populora_env.text_parallel import TextParallelEnv
from populora_env.types import Task

SOLVERS = ("solver_0", "solver_1")


def make(judge=None, **rules):
    env = text_v0.parallel_env(verifier=judge, **({"solver_seats": 2, "tasks": "deduction", "rounds": 2} | rules))
    env.reset(seed=0)
    return env


def actions(proposal="", first="", second=""):
    return {PROPOSER: proposal, "solver_0": first, "solver_1": second}


def test_a_round_has_two_phases_and_is_paid_at_the_second():
    env = make(ScriptedJudge())
    assert env.acting == [PROPOSER]
    _, rewards, *_ = env.step(actions(proposal_text()))
    assert rewards == {PROPOSER: 0.0, "solver_0": 0.0, "solver_1": 0.0}
    assert env.acting == [*SOLVERS]
    _, rewards, terminations, truncations, infos = env.step(actions("", answer_text("'right'"), "junk"))
    assert rewards == {PROPOSER: 0.5, "solver_0": 1.0, "solver_1": -1.0}
    assert not any(terminations.values())
    assert not any(truncations.values())
    assert infos["solver_0"]["outcome"]["verdict"] == "ok"
    assert infos[PROPOSER]["reward_parts"]["difficulty"] == 0.5
    assert env.acting == [PROPOSER]


def test_an_invalid_proposal_skips_the_solvers_and_all_live_to_the_end():
    env = make(ScriptedJudge(), rounds=3)
    for proposal, over in (("nonsense", False), (proposal_text("return invalid"), False), ("", True)):
        _, rewards, terminations, _, infos = env.step(actions(proposal))
        assert rewards == {PROPOSER: -1.0, "solver_0": 0.0, "solver_1": 0.0}
        assert set(terminations.values()) == {over}
        assert infos["solver_0"]["outcome"] == {}
    assert env.agents == []
    assert env.acting == []
    with pytest.raises(ValueError, match="over"):
        env.step(actions())


def test_what_waiting_agents_say_is_not_read():
    env = make(ScriptedJudge())
    env.step({PROPOSER: proposal_text(), "solver_0": proposal_text(), "solver_1": None})
    _, rewards, *_ = env.step({"solver_0": answer_text("'right'"), "solver_1": ""})
    assert rewards == {PROPOSER: 0.5, "solver_0": 1.0, "solver_1": -1.0}


@pytest.mark.parametrize("missing", [{}, {PROPOSER: None}, {PROPOSER: 3}])
def test_who_has_to_act_must_and_nothing_changes_otherwise(missing):
    env = make(ScriptedJudge())
    with pytest.raises(ValueError, match="proposer_0 must be a str"):
        env.step(missing)
    env.step(actions(proposal_text()))
    with pytest.raises(ValueError, match="solver_1 must be a str"):
        env.step({"solver_0": answer_text("1")})
    assert env.acting == [*SOLVERS]
    assert env.game.round.seat == 0


def test_answers_are_judged_in_one_call():
    judge = ScriptedJudge()
    env = make(judge, solver_seats=5)
    env.step({PROPOSER: proposal_text()})
    env.step(dict.fromkeys(env.possible_agents, answer_text("1")))
    assert judge.calls == [("proposals", 1), ("answers", 5)]


def test_rewards_add_up_to_those_of_the_rounds():
    env = make(ScriptedJudge(), rounds=5)
    told = defaultdict(float)
    script = iter([proposal_text(), "", "nonsense", proposal_text("return 2"), ""] * 5)
    while env.agents:
        text = next(script)
        _, rewards, _, _, infos = env.step(actions(text, answer_text("'right'"), text))
        for agent, reward in rewards.items():
            told[agent] += reward
            assert infos[agent]["outcome"].get("reward", 0.0) == sum(infos[agent]["reward_parts"].values()) == reward
    assert told == paid_by(env.game.results)
    assert len(env.game.results) == 5


def test_it_pays_what_the_aec_face_pays_for_the_same_actions():
    rules = {"rounds": 3, "tasks": ("deduction", "abduction", "induction"), "solver_seats": 2}
    parallel, aec = make(ScriptedJudge(), **rules), text_v0.raw_env(verifier=ScriptedJudge(), **rules)
    aec.reset(seed=0)
    right = answer_text("'right'")
    for texts in (actions(proposal_text(), right, "x"), actions("junk"), actions(induction_text(), "", right)):
        parallel.step(texts)
        if parallel.acting == [*SOLVERS]:
            parallel.step(texts)
        aec.step(texts[PROPOSER])
        while aec.agent_selection != PROPOSER:
            aec.step(texts[aec.agent_selection])
    assert parallel.game.results == aec.game.results
    assert [result.solve_rate for result in aec.game.results] == [0.5, None, 0.5]


def test_prompts_go_to_those_who_have_to_act():
    env = make(ScriptedJudge())
    seen, infos = env.reset(seed=1)
    assert [agent for agent in env.agents if seen[agent]["prompt"]] == [PROPOSER]
    assert text_v0.as_observation(seen[PROPOSER], infos[PROPOSER]) == env.game.round.proposer_observation()
    seen, _, _, _, infos = env.step(actions(proposal_text()))
    assert [agent for agent in env.agents if seen[agent]["prompt"]] == [*SOLVERS]
    assert [bool(infos[agent]["messages"]) for agent in env.possible_agents] == [False, True, True]
    assert [seen[agent]["observation"][5] for agent in env.possible_agents] == [0, 1, 1]
    for agent in env.agents:
        assert env.observation_space(agent).contains(seen[agent])


def test_the_state_holds_every_agents_vector():
    env = make(ScriptedJudge())
    seen, *_ = env.step(actions(proposal_text()))
    vectors = [seen[agent]["observation"] for agent in env.possible_agents]
    assert np.array_equal(env.state(), np.concatenate(vectors))
    assert env.state().shape == env.state_space.shape == (3 * VECTOR_SIZE,)
    assert env.state_space.contains(env.state())


def test_samples_fit_what_is_asked():
    env = make(ScriptedJudge(), tasks=("abduction",))
    assert env.action_space(PROPOSER).asked == env.game.round.proposer_observation()
    env.step(actions(proposal_text()))
    assert env.action_space("solver_1").asked == env.game.round.solver_observation()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_go_on_as_the_original(duplicate):
    env = make(solver_seats=2)
    env.step(actions(proposal_text()))
    other = duplicate(env)
    try:
        for texts in (actions("", answer_text("1"), ""), actions("junk")):
            assert data_equivalence(env.step(texts), other.step(texts), exact=True)
        assert other.game.results[0].attempt_verdicts[0].ok
    finally:
        env.close()
        other.close()


def test_seeds_matter_and_resets_without_one_go_on():
    def prompts(seed):
        env = TextParallelEnv(config=GameConfig(), verifier=ScriptedJudge())
        return [env.reset(seed=each)[0][PROPOSER]["prompt"] for each in (seed, None)]

    assert prompts(1) == prompts(1)
    assert prompts(1) != prompts(2)
    assert len(set(prompts(1))) == 2


def test_rendering(capsys):
    env = make(ScriptedJudge(), render_mode="ansi")
    assert env.render() == "round 1 of 2: deduction, waiting for proposer_0"
    env.step(actions(proposal_text()))
    assert env.render() == "round 1 of 2: deduction, waiting for solver_0 and solver_1"
    env.step(actions("", answer_text("\x1b[2J")))
    assert "\\x1b[2J" in env.render()
    human = make(ScriptedJudge(), render_mode="human", rounds=1)
    human.step(actions("nonsense"))
    assert "game over after 1 round\n" in capsys.readouterr().out
    with pytest.raises(ValueError, match="render_mode"):
        make(render_mode="rgb_array")
    with pytest.warns(UserWarning, match="render_mode"):
        assert make(ScriptedJudge()).render() is None


def test_every_task_is_played():
    env = make(ScriptedJudge(), tasks=tuple(Task), rounds=3)
    for text in (proposal_text(), proposal_text(), induction_text()):
        env.step(actions(text))
        env.step(actions("", answer_text("'right'"), ""))
    assert [result.solve_rate for result in env.game.results] == [0.5, 0.5, 0.5]
