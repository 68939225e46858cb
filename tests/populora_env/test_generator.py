"""Our own problems: valid, varied, reproducible, in normal form, of the family, depth and split that was asked for."""

from __future__ import annotations

import ast
import itertools
import sys
from collections import Counter
from types import FrameType

import numpy as np
import pytest

from populora_env.generator import MAX_DEPTH, TAGS, Generated, generate, generate_problem
from populora_env.generator_families import Family, family_of, is_held_out
from populora_env.source import normalise
from populora_env.types import Problem, Task
from populora_env.values import format_value, parse_literal


def problems(task: Task, count: int, depth: int | None = None) -> list[Problem]:
    rng = np.random.default_rng(7)
    return [generate_problem(rng, task=task, depth=depth) for _ in range(count)]


def of_every_cell(each: int) -> list[Generated]:
    rng = np.random.default_rng(11)
    cells = itertools.product(Family, range(1, MAX_DEPTH + 1), range(each))
    return [generate(rng, task=Task.DEDUCTION, family=family, depth=depth) for family, depth, _ in cells]


@pytest.mark.parametrize("task", list(Task))
def test_outputs_are_what_the_printed_program_gives(task: Task) -> None:
    for problem in problems(task, 300):
        namespace: dict[str, object] = {}
        exec(problem.program, namespace)  # our own programs, never a model's
        f = namespace["f"]
        assert callable(f)
        for given, gives in zip(problem.inputs, problem.outputs, strict=True):
            assert format_value(f(*parse_literal(given, max_chars=200))) == gives
            assert format_value(parse_literal(given, max_chars=200)) == given


@pytest.mark.parametrize("task", list(Task))
def test_programs_stand_in_normal_form(task: Task) -> None:
    assert all(normalise(problem.program) == problem.program for problem in problems(task, 300))


def test_every_family_comes_at_every_depth() -> None:
    for made in of_every_cell(4):
        assert family_of(made.problem.program, made.problem.inputs[0]) is made.family
        assert normalise(made.problem.program) == made.problem.program


def new_values(program: str) -> int:
    """Count what depth counts: names that `f` binds outside of loops' heads, and the value of a last expression."""
    *_, function = ast.parse(program).body
    assert isinstance(function, ast.FunctionDef)
    arguments = {argument.arg for argument in function.args.args}
    nodes = [
        node
        for statement in function.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id != "i"
    ]
    last = function.body[-1]
    assert isinstance(last, ast.Return)
    bound = {node.id for node in nodes} - arguments
    returns_a_name = isinstance(last.value, ast.Name) and last.value.id in bound
    return len(bound) + (not returns_a_name)


def test_depth_is_the_number_of_values_made_one_from_another() -> None:
    for made in of_every_cell(4):
        assert new_values(made.problem.program) == made.depth


def run_with_values(program: str, given: str) -> tuple[str, ...]:
    """Run a program line by line; return its variables' values after each line that changed one of them."""
    namespace: dict[str, object] = {}
    exec(compile(program, "ours", "exec"), namespace)
    f = namespace["f"]
    assert callable(f)
    seen: dict[str, str] = {}
    lines: list[str] = []

    def look(frame: FrameType, event: str, _: object) -> object:
        if frame.f_code.co_name != "f":
            return None
        if event in ("line", "return"):
            for name, value in frame.f_locals.items():
                if name != "i" and not name.startswith(".") and seen.get(name) != repr(value):
                    seen[name] = repr(value)
                    lines.append(f"{name} = {value!r}")
        return look

    before = sys.gettrace()
    sys.settrace(look)  # type: ignore[arg-type]
    try:
        f(*ast.literal_eval(given))
    finally:
        sys.settrace(before)
    return tuple(lines)


def test_worked_lines_are_the_values_after_each_line() -> None:
    for made in of_every_cell(4):
        changes = [line for line, _ in itertools.groupby(made.worked)]
        expected = run_with_values(made.problem.program, made.problem.inputs[0])
        # A line that gives a variable the value that it has is written by us, and not seen by the tracer.
        assert Counter(expected) - Counter(changes) == Counter()
        assert set(changes) == set(expected)


def test_worked_lines_begin_with_the_arguments() -> None:
    for made in of_every_cell(4):
        assert all(line.split(" = ")[0] in "abcdehkm" for line in made.worked)
        assert made.worked[0].startswith("a = ")


def test_training_and_held_out_programs_share_nothing() -> None:
    rng = np.random.default_rng(5)
    for split in ("train", "held_out"):
        for task in Task:
            made = [generate(rng, task=task, split=split).problem for _ in range(60)]  # type: ignore[arg-type]
            assert all(is_held_out(problem.program) == (split == "held_out") for problem in made)


def test_what_the_environment_is_seeded_with_is_never_held_out() -> None:
    assert not any(is_held_out(problem.program) for task in Task for problem in problems(task, 100))


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
    assert set(kinds) == {"int", "str", "list", "tuple", "dict", "bool"}
    assert min(kinds[kind] for kind in ("int", "str", "list")) > 100
    assert kinds["bool"] < 100


def test_families_are_equally_frequent() -> None:
    rng = np.random.default_rng(2)
    counts = Counter(generate(rng, task=Task.DEDUCTION).family for _ in range(800))
    assert set(counts) == set(Family)
    assert min(counts.values()) > 60


@pytest.mark.parametrize("arguments", [{"depth": 0}, {"depth": MAX_DEPTH + 1}, {"n_inputs": 0}])
def test_arguments_out_of_range_are_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be"):
        generate_problem(np.random.default_rng(0), task=Task.INDUCTION, **arguments)
