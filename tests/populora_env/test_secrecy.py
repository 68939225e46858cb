"""Non-interference: games that differ only in what is hidden look the same from every seat until they are settled."""

import copy

import pytest
from gymnasium.utils.env_checker import data_equivalence
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_judge import ScriptedJudge, answer_text

from populora_env import text_v0
from populora_env.config import GameConfig
from populora_env.prompts import get_style
from populora_env.solo_envs import SolverEnv
from populora_env.text_agents import PROPOSER
from populora_env.types import Proposal, Task
from populora_env.vector import make_vec

SEATS = 3
LITERALS = st.integers(-9, 9).map(repr) | st.text("abc", max_size=3).map(repr)
ARGUMENTS = LITERALS.map(lambda literal: f"({literal},)")
ANSWERS = st.sampled_from(["", "junk", answer_text("'right'"), "\x1b[2J", "```output\n'right'\n```"])


class Hidden:
    """One way to fill what is hidden: the gold outputs, the inputs of abduction and of induction's hidden half."""

    def __init__(self, output, inputs, answers):
        """Keep it."""
        self.output, self.inputs, self.answers = output, inputs, answers

    def __repr__(self):
        """Show it where a test fails."""
        return f"Hidden({self.output!r}, {self.inputs!r}, {self.answers!r})"

    def judge(self, task):
        """Return a judge with this gold output; abduction's output is shown, so it is fixed there."""
        return ScriptedJudge(output="0" if task is Task.ABDUCTION else self.output)

    def proposal(self, task, config):
        """Return a proposal with these hidden inputs."""
        inputs = ("(1,)", "(2,)", *self.inputs) if task is Task.INDUCTION else ("(1,)",)
        if task is Task.ABDUCTION:
            inputs = self.inputs[:1]
        proposal = Proposal(task=task, program="def f(a):\n    return a", inputs=inputs, message="hint")
        return get_style(config.style).write_proposal(proposal)


HIDDEN = st.builds(Hidden, LITERALS, st.tuples(ARGUMENTS, ARGUMENTS), st.tuples(ANSWERS, ANSWERS))
EACH_RULE = [pytest.param(task, style, id=f"{task}-{style}") for task in Task for style in ("compact", "chat")]


def rules(task, style):
    return GameConfig(tasks=(task,), style=style, solver_seats=SEATS, rounds=2, seed_problems=8)


def assert_alike(first, second):
    assert data_equivalence(copy.deepcopy(first), copy.deepcopy(second), exact=True)


def aec_view(env):
    seen = {agent: env.observe(agent) for agent in env.agents}
    flags = [env.rewards, env.terminations, env.truncations, env._cumulative_rewards]
    asked = [env.action_space(agent).asked for agent in env.possible_agents]
    return [env.agent_selection, seen, env.infos, env.state(), env.last()[:4], *flags, asked]


@pytest.mark.parametrize(("task", "style"), EACH_RULE)
@settings(max_examples=25)
@given(first=HIDDEN, second=HIDDEN)
def test_one_agent_after_the_other(task, style, first, second):
    config, envs = rules(task, style), []
    for hidden in (first, second):
        env = text_v0.raw_env(config=config, verifier=hidden.judge(task))
        env.reset(seed=0)
        assert env.agent_selection == PROPOSER
        env.step(hidden.proposal(task, config))
        envs.append(env)
    for seat in range(SEATS):
        assert_alike(*map(aec_view, envs))
        if seat < SEATS - 1:  # the last answer settles the round
            for env, hidden in zip(envs, (first, second), strict=True):
                env.step(hidden.answers[seat])


@pytest.mark.parametrize(("task", "style"), EACH_RULE)
@settings(max_examples=25)
@given(first=HIDDEN, second=HIDDEN)
def test_phase_by_phase(task, style, first, second):
    config, views = rules(task, style), []
    for hidden in (first, second):
        env = text_v0.parallel_env(config=config, verifier=hidden.judge(task))
        start = env.reset(seed=0)
        stepped = env.step({PROPOSER: hidden.proposal(task, config)})
        views.append([start, stepped, env.state(), env.acting])
    assert_alike(*views)


@pytest.mark.parametrize(("task", "style"), EACH_RULE)
@settings(max_examples=25)
@given(first=HIDDEN, second=HIDDEN)
def test_the_solvers_seat_alone(task, style, first, second):
    config, single, many = rules(task, style), [], []
    for hidden in (first, second):

        def propose(_, hidden=hidden):
            return hidden.proposal(task, config)

        def others(_, hidden=hidden):
            return hidden.answers[0]

        arguments = {"proposer": propose, "solvers": others, "config": config, "verifier": hidden.judge(task)}
        env = SolverEnv(**arguments)
        single.append([env.reset(seed=0), env.action_space.asked])
        many.append(make_vec(2, **arguments).reset(seed=0))
    assert_alike(*single)
    for key in many[0][1]:
        assert list(many[0][1][key]) == list(many[1][1][key])
    assert_alike(many[0][0], many[1][0])


def test_the_games_compared_here_do_differ():
    """And settlement tells them apart: the check above is not of equal games."""
    told = []
    for output in ("'right'", "'other'"):
        hidden = Hidden(output, ("(3,)", "(4,)"), ("", ""))
        env = text_v0.raw_env(config=rules(Task.DEDUCTION, "compact"), verifier=hidden.judge(Task.DEDUCTION))
        env.reset(seed=0)
        env.step(hidden.proposal(Task.DEDUCTION, env.config))
        problem = env.game.round.problem
        for _ in range(SEATS):
            env.step("")
        told.append((problem, env.game.results))
    assert told[0] != told[1]
