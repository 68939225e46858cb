"""Our own problems: valid, varied, reproducible, in normal form."""

from __future__ import annotations

import ast
from collections import Counter

import numpy as np
import pytest

from populora_env.generator import MAX_DEPTH, TAGS, generate_problem
from populora_env.source import normalise
from populora_env.types import Problem, Task


def problems(task: Task, count: int, depth: int | None = None) -> list[Problem]:
    rng = np.random.default_rng(7)
    return [generate_problem(rng, task=task, depth=depth) for _ in range(count)]


@pytest.mark.parametrize("task", list(Task))
def test_outputs_are_what_the_printed_program_gives(task: Task) -> None:
    for problem in problems(task, 200):
        namespace: dict[str, object] = {}
        exec(problem.program, namespace)  # our own programs, never a model's
        f = namespace["f"]
        assert callable(f)
        for given, gives in zip(problem.inputs, problem.outputs, strict=True):
            assert repr(f(*ast.literal_eval(given))) == gives


@pytest.mark.parametrize("task", list(Task))
def test_programs_stand_in_normal_form(task: Task) -> None:
    assert all(normalise(problem.program) == problem.program for problem in problems(task, 200))


@pytest.mark.parametrize("depth", range(1, MAX_DEPTH + 1))
def test_depth_is_the_number_of_statements(depth: int) -> None:
    for problem in problems(Task.DEDUCTION, 50, depth):
        (function,) = ast.parse(problem.program).body
        assert isinstance(function, ast.FunctionDef)
        assert len(function.body) == depth


def test_induction_problems_have_distinct_inputs_half_of_them_hidden() -> None:
    for problem in problems(Task.INDUCTION, 100):
        assert len(set(problem.inputs)) == 4
        assert problem.n_visible == 2
        assert all(tag in TAGS for tag in problem.message.split(", "))


def test_the_other_tasks_have_one_input_and_no_message() -> None:
    for problem in problems(Task.ABDUCTION, 50):
        assert (len(problem.inputs), problem.n_visible, problem.message) == (1, 0, "")


def test_same_seed_gives_the_same_problems() -> None:
    assert problems(Task.DEDUCTION, 50) == problems(Task.DEDUCTION, 50)


def test_problems_are_varied() -> None:
    made = problems(Task.DEDUCTION, 1000)
    assert len({problem.program for problem in made}) > 800
    kinds = Counter(type(ast.literal_eval(problem.outputs[0])).__name__ for problem in made)
    assert set(kinds) == {"int", "str", "list"}
    assert min(kinds.values()) > 100


@pytest.mark.parametrize("arguments", [{"depth": 0}, {"depth": MAX_DEPTH + 1}, {"n_inputs": 0}])
def test_arguments_out_of_range_are_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be"):
        generate_problem(np.random.default_rng(0), task=Task.INDUCTION, **arguments)
