"""Tests of `populora_env.text_agents`: what agents see, and what they are told."""

import pytest
from faces import all_seen, make, play
from gymnasium.utils.env_checker import data_equivalence
from scripted_judge import ScriptedJudge, answer_text, induction_text, proposal_text

from populora_env.text_agents import PROPOSER, VECTOR_SIZE, as_observation
from populora_env.text_v0 import TextEnv
from populora_env.types import Task


@pytest.mark.parametrize("task", list(Task))
def test_what_is_hidden_changes_nothing_until_settlement(task):
    """Two games that differ only in hidden outputs; those of induction's hidden half, or deduction's one."""
    envs = [make(TextEnv, ScriptedJudge(output=gold), tasks=(task,)) for gold in ("111", "222")]
    if task is Task.ABDUCTION:  # its output is shown; its input is hidden
        envs = [make(TextEnv, tasks=(task,)) for _ in range(2)]
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
    env = make(TextEnv, rounds=3, tasks=tuple(Task))
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
    env = make(TextEnv)

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
    env = make(TextEnv)
    seen, _, _, _, info = env.last()
    assert as_observation(seen, info) == env.game.round.proposer_observation()
    env.step(proposal_text())
    seen, _, _, _, info = env.last()
    assert as_observation(seen, info) == env.game.round.solver_observation()


def test_the_vector_tells_role_task_turn_progress_and_program():
    env = make(TextEnv, tasks=(Task.ABDUCTION,))
    first = env.observe(PROPOSER)["observation"]
    assert first[:7].tolist() == [1, 0, 0, 1, 0, 1, 0]
    assert (first[7:] > 0).all()
    play(env, [proposal_text(), "", ""])
    later = env.observe("solver_1")["observation"]
    assert later.tolist() == [0, 1, 0, 1, 0, 0, 0.5, 0, 0, 0, 0]
    assert later.shape == (VECTOR_SIZE,)
