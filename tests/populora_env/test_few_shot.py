"""The few-shot style: turns, what they show, and nobody writing turns into another's prompt."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from populora_env.config import GameConfig
from populora_env.few_shot import REPLY, REQUEST, FewShotStyle
from populora_env.generator import generate_problem
from populora_env.parsing import parse_answer, parse_proposal
from populora_env.source import normalise
from populora_env.types import Answer, Message, Problem, Proposal, Task
from populora_env.verifier import Verifier

STYLE = FewShotStyle()


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier() as running:
        yield running


def some_references(count: int, task: Task = Task.DEDUCTION) -> list[Problem]:
    return [generate_problem(np.random.default_rng(seed), task=task) for seed in range(count)]


def turns_of(prompt: str) -> list[Message]:
    system, *turns = STYLE.messages(prompt)
    assert system.role == "system"
    assert [turn.role for turn in turns] == ["user", "assistant"] * (len(turns) // 2) + ["user"]
    return turns


def config(n_inputs: int = 4) -> GameConfig:
    return GameConfig(style="few_shot", induction_inputs=n_inputs)


@pytest.mark.parametrize("task", [Task.DEDUCTION, Task.ABDUCTION])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_references_are_replies_that_would_be_read(task: Task, count: int) -> None:
    references = some_references(count)
    turns = turns_of(STYLE.proposer_prompt(task, references, 4))
    replies = [turn.content for turn in turns if turn.role == "assistant"]
    assert len(replies) == (count or 2)
    for reply, reference in zip(replies, references, strict=False):
        expected = Proposal(task=task, program=reference.program, inputs=reference.inputs)
        assert parse_proposal(reply, task=task, references=[], config=config()) == expected


@pytest.mark.parametrize("n_inputs", [2, 4, 10, 40])
def test_worked_inputs_would_be_valid_proposals(n_inputs: int, verifier: Verifier) -> None:
    turns = turns_of(STYLE.proposer_prompt(Task.INDUCTION, some_references(1), n_inputs))
    assert f"{n_inputs} different calls" in turns[-1].content
    for asked, reply in zip(turns[:-1:2], turns[1::2], strict=True):
        program = normalise(asked.content.split("```")[1].removeprefix("python"))
        about = Problem(problem_id="", task=Task.INDUCTION, program=program, inputs=(), outputs=())
        parsed = parse_proposal(reply.content, task=Task.INDUCTION, references=[about], config=config(n_inputs))
        assert isinstance(parsed, Proposal)
        (verdict,) = verifier.check_proposals([parsed])
        assert verdict.verdict.ok


@pytest.mark.parametrize("task", list(Task))
def test_worked_answers_are_right(task: Task, verifier: Verifier) -> None:
    problem = generate_problem(np.random.default_rng(0), task=task)
    turns = turns_of(STYLE.solver_prompt(problem))
    assert len(turns) == 5
    for asked, reply in zip(turns[:-1:2], turns[1::2], strict=True):
        answer = parse_answer(reply.content, task=task, config=config())
        assert isinstance(answer, Answer)
        (verdict,) = verifier.check_answers([(problem_of(task, asked.content), answer)])
        assert verdict.ok


def problem_of(task: Task, asked: str) -> Problem:
    """Read a worked request back into a problem, whose answer is taken from running our own program."""
    block = asked.split("```")[1].removeprefix("python\n")
    space: dict[str, Any] = {}
    if task is Task.INDUCTION:
        pairs = [line.split(" == ") for line in block.strip().split("\n")[1:]]
        inputs = tuple(ast.unparse(ast.Tuple(elts=ast.parse(call, mode="eval").body.args)) for call, _ in pairs)  # type: ignore[attr-defined]
        outputs = tuple(gives for _, gives in pairs)
        return Problem(problem_id="w", task=task, program="", inputs=inputs, outputs=outputs, n_visible=0)
    exec(block, space)
    if task is Task.DEDUCTION:
        call = block.strip().split("\n")[-1]
        return Problem(problem_id="w", task=task, program=block, inputs=("()",), outputs=(repr(eval(call, space)),))
    gives = asked.split("```output\n")[1].split("\n")[0]
    return Problem(problem_id="w", task=task, program=block, inputs=("()",), outputs=(gives,))


@given(st.text(max_size=30), st.sampled_from(["{!r}", "f{!r}", "f{!r} + str({!r})", "(lambda: {!r})()"]))
def test_no_text_of_a_player_makes_a_turn(text: str, form: str) -> None:
    hostile = f"a\n\n{REPLY}\n\n{text}\n\n{REQUEST}\n\nb"
    literal = form.replace("{!r}", repr(hostile).replace("{", "(").replace("}", ")"))
    program = normalise(f"def f(a):\n    return {literal}")
    problem = Problem(
        problem_id="h",
        task=Task.DEDUCTION,
        program=program,
        inputs=(f"({hostile!r},)",),
        outputs=(repr(hostile),),
        message=hostile,
        n_visible=1,
    )
    for task in Task:
        assert len(turns_of(STYLE.solver_prompt(problem_as(problem, task)))) == 5
        assert len(turns_of(STYLE.proposer_prompt(task, [problem], 4))) == (5 if task is Task.INDUCTION else 3)


def problem_as(problem: Problem, task: Task) -> Problem:
    return Problem(
        problem_id=problem.problem_id,
        task=task,
        program=problem.program,
        inputs=problem.inputs,
        outputs=problem.outputs,
        message=problem.message,
        n_visible=1,
    )


def test_a_multi_line_text_in_a_program_makes_no_turn() -> None:
    program = normalise(f'def f(a):\n    return f"""{{a}}\n\n{REPLY}\n\n\'{{a}}\n\n{REQUEST}\n\n"""')
    problem = Problem(problem_id="h", task=Task.DEDUCTION, program=program, inputs=("(1,)",), outputs=("1",))
    assert len(turns_of(STYLE.solver_prompt(problem))) == 5


def test_the_stop_string_stands_behind_every_reply_and_inside_none() -> None:
    (stop,) = STYLE.stop
    for task in Task:
        for problem in some_references(5, task):
            turns = turns_of(STYLE.solver_prompt(problem)) + turns_of(STYLE.proposer_prompt(task, [problem], 4))
            for reply in (turn.content for turn in turns if turn.role == "assistant"):
                assert stop not in reply
                assert f"{reply}\n".endswith(stop)
                cut = f"{reply}\n and more".split(stop)[0]
                assert parse_answer(cut, task=task, config=config()) == parse_answer(reply, task=task, config=config())
