"""Tests of `populora_env.buffer`."""

import json
from collections import Counter

import numpy as np
import pytest

from populora_env import buffer as buffer_module
from populora_env.buffer import ProblemBuffer
from populora_env.types import Problem, Task

TASKS = tuple(Task)


def problem(name, task=Task.DEDUCTION):
    return Problem(problem_id=name, task=task, program=f"# {name}", inputs=("(1,)",), outputs=("1",))


def filled(*names, size=10, task=Task.DEDUCTION, tasks=TASKS):
    buffer = ProblemBuffer(tasks, size)
    for name in names:
        buffer.add(problem(name, task))
    return buffer


def names(problems):
    return [problem.problem_id for problem in problems]


def test_keeps_each_problem_once_and_the_newest_when_full():
    buffer = filled("a", "b", "c", size=3)
    assert not buffer.add(problem("b"))
    assert buffer.add(problem("d"))
    assert names(buffer.problems(Task.DEDUCTION)) == ["b", "c", "d"]
    assert buffer.add(problem("a"))
    assert names(buffer.problems(Task.DEDUCTION)) == ["c", "d", "a"]


def test_tasks_are_kept_apart():
    buffer = filled("a")
    assert buffer.add(problem("a", Task.ABDUCTION))
    assert (len(buffer), buffer.tasks) == (2, TASKS)
    with pytest.raises(ValueError, match="task"):
        filled(tasks=(Task.ABDUCTION,)).add(problem("a"))


def test_draws_are_distinct_uniform_and_repeatable():
    buffer = filled(*"abcde")
    rng = np.random.default_rng(0)
    draws = [names(buffer.draw(Task.DEDUCTION, 2, rng)) for _ in range(2000)]
    assert all(len(set(draw)) == 2 for draw in draws)
    counts = Counter(name for draw in draws for name in draw)
    assert set(counts) == set("abcde")
    # 4000 drawn, 800 expected of each, standard deviation sqrt(2000 * 0.4 * 0.6) = 21.9
    assert all(abs(count - 800) < 110 for count in counts.values())
    again = np.random.default_rng(0)
    assert draws == [names(buffer.draw(Task.DEDUCTION, 2, again)) for _ in range(2000)]


def test_draws_what_there_is():
    rng = np.random.default_rng(0)
    assert sorted(names(filled("a", "b").draw(Task.DEDUCTION, 5, rng))) == ["a", "b"]
    assert filled("a").draw(Task.DEDUCTION, 0, rng) == ()
    assert filled("a").draw(Task.ABDUCTION, 2, rng) == ()


def test_induction_takes_programs_of_deduction_and_abduction():
    buffer = filled("d")
    buffer.add(problem("a", Task.ABDUCTION))
    buffer.add(problem("i", Task.INDUCTION))
    drawn = buffer.draw(Task.INDUCTION, 5, np.random.default_rng(0))
    assert sorted(names(drawn)) == ["a", "d"]
    alone = filled("i", task=Task.INDUCTION, tasks=(Task.INDUCTION,))
    assert names(alone.draw(Task.INDUCTION, 1, np.random.default_rng(0))) == ["i"]


def test_seeding_fills_every_task_with_valid_shapes():
    buffer = ProblemBuffer(TASKS, 64)
    buffer.seed(np.random.default_rng(1), 20, 6)
    for task in TASKS:
        problems = buffer.problems(task)
        assert len({each.problem_id for each in problems}) == 20
        assert all(len(each.inputs) == (6 if task is Task.INDUCTION else 1) for each in problems)


def test_seeding_gives_up_on_a_generator_that_repeats_itself(monkeypatch):
    monkeypatch.setattr(buffer_module, "generate_problem", lambda _, **asked: problem("same", asked["task"]))
    with pytest.raises(ValueError, match="only 1 different"):
        ProblemBuffer(TASKS, 4).seed(np.random.default_rng(0), 2, 4)


def test_a_buffer_from_rows_is_the_same_and_draws_the_same():
    buffer = ProblemBuffer(TASKS, 30)
    buffer.seed(np.random.default_rng(1), 40, 4)
    rows = json.loads(json.dumps(buffer.rows()))
    again = ProblemBuffer.from_rows(rows, tasks=TASKS, size=30)
    for task in TASKS:
        assert again.problems(task) == buffer.problems(task)
        draws = [each.draw(task, 6, np.random.default_rng(5)) for each in (buffer, again)]
        assert draws[0] == draws[1]


def test_a_copy_grows_apart():
    buffer = filled("a")
    copy = buffer.copy()
    copy.add(problem("b"))
    buffer.add(problem("c"))
    assert names(buffer.problems(Task.DEDUCTION)) == ["a", "c"]
    assert names(copy.problems(Task.DEDUCTION)) == ["a", "b"]


def test_refuses_an_empty_shape():
    with pytest.raises(ValueError, match="size"):
        ProblemBuffer(TASKS, 0)
    with pytest.raises(ValueError, match="tasks"):
        ProblemBuffer((), 4)
