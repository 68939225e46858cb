"""Tests of `populora_env.seats`."""

import ast

import numpy as np
import pytest
from scripted_judge import proposal_text

from populora_env.config import GameConfig
from populora_env.game import Game
from populora_env.generator import generate_problem
from populora_env.parsing import parse_answer, parse_proposal
from populora_env.seats import GeneratorProposer, GuessingSolver, random_answer, random_proposal
from populora_env.types import Answer, Observation, Proposal, Role, Task


@pytest.mark.parametrize("style", ["compact", "chat"])
@pytest.mark.parametrize("task", list(Task))
def test_what_they_write_is_well_formed_and_follows_the_seed(style, task):
    config = GameConfig(style=style)
    references = [generate_problem(np.random.default_rng(0), task=Task.DEDUCTION)]

    def written():
        rng = np.random.default_rng(1)
        return random_proposal(rng, task, config), random_answer(rng, task, config)

    proposal, answer = written()
    assert (proposal, answer) == written()
    assert isinstance(parse_proposal(proposal, task=task, references=references, config=config), Proposal)
    assert isinstance(parse_answer(answer, task=task, config=config), Answer)


@pytest.mark.parametrize("style", ["compact", "chat"])
def test_policies_play_a_game_of_every_task(style):
    game = Game(GameConfig(style=style, rounds=3), 0)
    proposer, solver = GeneratorProposer(game.config, 0), GuessingSolver(game.config, 0)
    for task in game.config.tasks:
        observation = game.round.proposer_observation()
        assert observation.task is task
        assert game.round.propose(proposer(observation)) is not None
        assert isinstance(parse_answer(solver(observation), task=task, config=game.config), Answer)
        game = Game(GameConfig(style=style, rounds=3, tasks=(*game.config.tasks[1:], task)), 0)


def test_induction_inputs_take_after_the_program():
    config = GameConfig()
    proposer = GeneratorProposer(config, 0)
    programs = {
        "def f(a):\n    return a.upper()": str,
        "def f(a):\n    return sorted(a)": list,
        "def f(a):\n    return a + 3": int,
    }
    for program, kind in programs.items():
        prompt = f"<propose induction>\n<program>\n{program}\n"
        observation = Observation(role=Role.PROPOSER, task=Task.INDUCTION, prompt=prompt, messages=())
        inputs = [line for line in proposer(observation).split("\n") if line.startswith("(")]
        values = [ast.literal_eval(given) for given in inputs]
        assert len(values) == config.induction_inputs
        assert all(len(value) == 1 for value in values)
        assert all(type(value[0]) is kind for value in values)


@pytest.mark.parametrize("prompt", ["", "<program>\n(", "<program>\nx = 1", "```python\n\0```", proposal_text()])
def test_a_strange_prompt_is_no_matter(prompt):
    observation = Observation(role=Role.PROPOSER, task=Task.INDUCTION, prompt=prompt, messages=())
    assert GeneratorProposer(GameConfig(), 0)(observation)
