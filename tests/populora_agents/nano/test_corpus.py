"""nano's training texts are what the game itself says and reads."""

from __future__ import annotations

import ast
import itertools
from collections import Counter

import numpy as np
import pytest

from populora_agents.nano.corpus import (
    HABIT,
    N_INPUTS,
    WORKED_SHARE,
    Example,
    examples,
    gold_answer,
    proposer_example,
    solver_example,
    worked_answer,
)
from populora_env.config import GameConfig
from populora_env.generator import generate, generate_problem
from populora_env.generator_families import is_held_out
from populora_env.parsing import is_worked, parse_answer, parse_proposal
from populora_env.prompts import get_style
from populora_env.types import Answer, Proposal, Role, Task
from populora_env.values import format_value

CONFIG = GameConfig(style="compact", induction_inputs=N_INPUTS)


def made(count: int, seed: int = 0) -> list[Example]:
    return list(itertools.islice(examples(np.random.default_rng(seed)), count))


@pytest.mark.parametrize("task", list(Task))
def test_solver_prompts_are_the_games_own_and_the_answers_right(task: Task) -> None:
    style = get_style("compact")
    for seed in range(30):
        problem = generate_problem(np.random.default_rng(seed), task=task, n_inputs=N_INPUTS)
        answer = parse_answer(style.write_answer(gold_answer(problem)), task=task, config=CONFIG)
        assert answer == gold_answer(problem)
        example = solver_example(np.random.default_rng(seed), task)
        assert example.prompt.startswith(f"<{task}>\n")
        assert isinstance(parse_answer(example.completion, task=task, config=CONFIG), Answer)


def test_deduction_prompts_and_answers_belong_together() -> None:
    for example in made(400):
        if (example.role, example.task) != (Role.SOLVER, Task.DEDUCTION):
            continue
        program, given = example.prompt.split("<program>\n")[1].split("\n<input>\n")
        namespace: dict[str, object] = {}
        exec(program, namespace)
        f = namespace["f"]
        assert callable(f)
        parsed = parse_answer(example.completion, task=Task.DEDUCTION, config=CONFIG)
        assert parsed == Answer(task=Task.DEDUCTION, text=format_value(f(*ast.literal_eval(given.strip()))))


def test_a_worked_answer_is_the_lines_then_the_answer() -> None:
    problem = generate(np.random.default_rng(4), task=Task.DEDUCTION, depth=3)
    text = worked_answer(problem)
    assert text == "\n".join([*problem.worked, "<answer>", problem.problem.outputs[0]])
    assert parse_answer(text, task=Task.DEDUCTION, config=CONFIG) == gold_answer(problem.problem)


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
    counts = Counter((text.role, text.task) for text in made(500))
    assert set(counts) == set(itertools.product(Role, Task))


def test_how_to_begin_is_taught_towards_the_habit_though_many_answers_are_worked() -> None:
    texts = [text for text in made(6000) if (text.role, text.task) == (Role.SOLVER, Task.DEDUCTION)]
    worked = [is_worked(text.completion) for text in texts]
    assert sum(worked) / len(worked) == pytest.approx(WORKED_SHARE, abs=0.03)
    taught = [is_worked(text.completion) for text in texts if not text.is_begun]
    assert sum(taught) / len(taught) == pytest.approx(HABIT, abs=0.03)
    assert all(is_worked(text.completion) for text in texts if text.is_begun)


def test_no_text_shows_a_held_out_program() -> None:
    for text in made(600):
        shown = text.prompt + text.completion
        for part in shown.split("<program>\n")[1:]:
            program = part.split("\n<")[0]
            assert not is_held_out(program)


def test_same_seed_gives_the_same_texts() -> None:
    assert made(50, seed=1) == made(50, seed=1)
