"""Suites: answers are judged one a problem, shares are by task and label."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from populora_agents.suites import Item, Suite
from populora_env.config import GameConfig
from populora_env.generator import generate_problem
from populora_env.prompts import get_style
from populora_env.types import Answer, Role, Task
from populora_env.verifier import Verifier

CONFIG = GameConfig(style="compact")


def suite() -> Suite:
    rng = np.random.default_rng(0)
    items = [
        Item(problem=generate_problem(rng, task=task, depth=depth), labels={"depth": str(depth)})
        for task, depth in ((Task.DEDUCTION, 1), (Task.DEDUCTION, 1), (Task.DEDUCTION, 2), (Task.ABDUCTION, 1))
    ]
    return Suite(name="four", items=tuple(items))


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier() as judge:
        yield judge


def test_right_wrong_and_unreadable_answers(verifier: Verifier) -> None:
    four = suite()
    outputs = [item.problem.outputs[0] for item in four.items]
    style = get_style("compact")
    right = style.write_answer(Answer(task=Task.DEDUCTION, text=outputs[1]))
    inputs = style.write_answer(Answer(task=Task.ABDUCTION, text=four.items[3].problem.inputs[0]))
    assert four.judge(["no mark", right, "<answer>\n'never'", inputs], verifier, CONFIG) == [False, True, False, True]


def test_shares_by_task_and_label() -> None:
    assert suite().shares([True, False, True, True]) == {
        "abduction": 1.0,
        "abduction_depth_1": 1.0,
        "deduction": pytest.approx(2 / 3),
        "deduction_depth_1": 0.5,
        "deduction_depth_2": 1.0,
    }


def test_a_solver_sees_the_games_prompt() -> None:
    four = suite()
    seen = four.observations(CONFIG)
    assert [o.prompt for o in seen] == [get_style("compact").solver_prompt(item.problem) for item in four.items]
    assert {o.role for o in seen} == {Role.SOLVER}


def test_the_suite_of_one_task_and_of_none() -> None:
    assert [item.problem.task for item in suite().of_task(Task.ABDUCTION).items] == [Task.ABDUCTION]
    with pytest.raises(ValueError, match="must not be empty"):
        suite().of_task(Task.INDUCTION)


def test_one_text_a_problem(verifier: Verifier) -> None:
    with pytest.raises(ValueError, match="shorter"):
        suite().judge(["<answer>\n1"], verifier, CONFIG)
