"""Non-interference: token games that differ only in what is hidden look the same from every seat until they settle."""

import copy

import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_judge import ScriptedJudge
from token_play import ADD_ONE, input_tokens

from populora_env import token_v0
from populora_env.config import GameConfig
from populora_env.token_grammar import DIGITS, Token
from populora_env.token_v0 import PROPOSER
from populora_env.types import Task

SEATS = 3
VALUES = {
    "int": st.integers(10, 999),
    "list": st.lists(st.integers(10, 30), min_size=1, max_size=3),
    "str": st.text("abc", min_size=2, max_size=5),
}
SHOWN = {"int": (1, 2), "list": ([], [1]), "str": ("", "a")}
EITHER = st.sampled_from(["0", "'right'", "[1, 2]", "-17", "shown"])
PICKS = st.lists(st.integers(0, 60), min_size=SEATS * 24, max_size=SEATS * 24)


class Hidden:
    """One way to fill what is hidden: gold outputs, inputs of abduction and of induction's hidden half, answers."""

    def __init__(self, task, together, output, picks):
        """Make the game, with proposals still to be written."""
        config = GameConfig(tasks=(task,), solver_seats=SEATS, rounds=2, seed_problems=8)
        make = token_v0.parallel_env if together else token_v0.raw_env
        judge = ScriptedJudge(output="0" if task is Task.ABDUCTION else output)
        self.env = make(config=config, verifier=judge)
        self.env.reset(seed=0)
        self.picks = picks
        self.stepped = None

    def propose(self, tokens):
        """Write a proposal."""
        for token in tokens:
            self.stepped = self.env.step(token if self.is_aec else {PROPOSER: token})

    @property
    def is_aec(self):
        """Whether agents act one after the other."""
        return hasattr(self.env, "agent_selection")

    def choose(self, agent):
        """Return what a solver chooses next."""
        legal = np.flatnonzero(self.env.observe(agent)["action_mask"])
        return int(legal[self.picks.pop() % len(legal)])

    def seen(self):
        """Return all that agents can get at."""
        env = self.env
        observations = {agent: env.observe(agent) for agent in env.possible_agents}
        legal = [env.action_space(agent).legal for agent in env.possible_agents]
        turns = [env.agent_selection, env.last(), env._cumulative_rewards] if self.is_aec else [self.stepped]
        return copy.deepcopy(
            [observations, env.state(), env.infos, env.rewards, env.terminations, env.truncations, legal, *turns]
        )


def assert_alike(first, second):
    assert data_equivalence(first.seen(), second.seen(), exact=True)


def proposals(task, env, data):
    """Return the tokens of two proposals that differ in what is hidden alone."""
    if task is Task.DEDUCTION:
        return [(*ADD_ONE, *input_tokens(4))] * 2
    if task is Task.ABDUCTION:
        return [(*ADD_ONE, *input_tokens(data.draw(VALUES["int"]))) for _ in range(2)]
    kind = env.rules.seeds.programs[env.game.round.references[0].program].takes
    both = [data.draw(st.lists(VALUES[kind], min_size=2, max_size=2, unique_by=repr)) for _ in range(2)]
    return [(*input_tokens(*SHOWN[kind], *hidden), DIGITS[0]) for hidden in both]


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("task", Task)
@settings(max_examples=30)
@given(data=st.data(), outputs=st.tuples(EITHER, EITHER), picks=st.tuples(PICKS, PICKS))
def test_what_is_hidden_changes_nothing_until_settlement(task, together, data, outputs, picks):
    games = [Hidden(task, together, output, pick) for output, pick in zip(outputs, picks, strict=True)]
    for game, tokens in zip(games, proposals(task, games[0].env, data), strict=True):
        game.propose(tokens)
        assert game.env.game.round.problem is not None
    assert_alike(*games)
    if together:
        return
    for seat in range(SEATS - 1):  # the last answer settles the round
        for game in games:
            while game.env.agent_selection == f"solver_{seat}":
                game.env.step(game.choose(f"solver_{seat}"))
        assert_alike(*games)


@settings(max_examples=30)
@given(picks=st.tuples(PICKS, PICKS), task=st.sampled_from([Task.DEDUCTION, Task.ABDUCTION]))
def test_solvers_who_write_together_do_not_see_each_other(picks, task):
    games = [Hidden(task, True, "0", pick) for pick in picks]
    for game in games:
        game.propose((*ADD_ONE, *input_tokens(4)))
    for own in (Token.MORE, Token.DIGIT_1) * 11:  # a number of eleven digits and more to come
        for game in games:
            writing = {game.env.possible_agents[place] for place in game.env.table.writing} - {"solver_0"}
            game.env.step({"solver_0": own} | {agent: game.choose(agent) for agent in sorted(writing)})
        seen = [
            [game.env.observe("solver_0"), game.env.observe(PROPOSER), game.env.infos["solver_0"]] for game in games
        ]
        assert data_equivalence(*seen, exact=True)


def test_the_games_compared_here_do_differ():
    """And settlement tells them apart: the check above is not of equal games."""
    told = []
    for output in ("'right'", "'other'"):
        game = Hidden(Task.DEDUCTION, False, output, [0] * 99)
        game.propose((*ADD_ONE, *input_tokens(4)))
        problem = game.env.game.round.problem
        while not game.env.game.results:
            game.env.step(game.choose(game.env.agent_selection))
        told.append((problem, game.env.game.results))
    assert told[0] != told[1]
