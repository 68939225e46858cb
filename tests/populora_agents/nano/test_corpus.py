"""nano's training texts are what the game itself says and reads."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from populora_agents.nano.corpus import N_INPUTS, examples, proposer_example, solver_example
from populora_env.config import GameConfig
from populora_env.generator import generate_problem
from populora_env.parsing import parse_answer, parse_proposal
from populora_env.prompts import get_style
from populora_env.types import Answer, Proposal, Role, Task

CONFIG = GameConfig(style="compact", induction_inputs=N_INPUTS)


@pytest.mark.parametrize("task", list(Task))
def test_solver_prompts_are_the_games_own(task: Task) -> None:
    problem = generate_problem(np.random.default_rng(3), task=task, n_inputs=N_INPUTS)
    example = solver_example(np.random.default_rng(3), task)
    assert example.prompt == get_style("compact").solver_prompt(problem)
    assert isinstance(parse_answer(example.completion, task=task, config=CONFIG), Answer)


@pytest.mark.parametrize("task", list(Task))
def test_proposer_completions_are_proposals(task: Task) -> None:
    reference = generate_problem(np.random.default_rng(0), task=Task.DEDUCTION)
    for seed in range(20):
        example = proposer_example(np.random.default_rng(seed), task)
        assert example.prompt.startswith(f"<propose {task}>\n")
        parsed = parse_proposal(example.completion, task=task, references=[reference], config=CONFIG)
        assert isinstance(parsed, Proposal)


def test_an_induction_proposers_prompt_shows_the_program_its_inputs_are_for() -> None:
    example = proposer_example(np.random.default_rng(5), Task.INDUCTION)
    problem = generate_problem(np.random.default_rng(5), task=Task.INDUCTION, n_inputs=N_INPUTS)
    assert problem.program in example.prompt
    assert all(given in example.completion for given in problem.inputs)


def test_the_mixture_holds_every_role_and_task() -> None:
    texts = itertools.islice(examples(np.random.default_rng(0)), 500)
    counts = Counter((text.role, text.task) for text in texts)
    assert set(counts) == set(itertools.product(Role, Task))


def test_same_seed_gives_the_same_texts() -> None:
    one, other = (list(itertools.islice(examples(np.random.default_rng(1)), 50)) for _ in range(2))
    assert one == other
