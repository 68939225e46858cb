"""From any text to a proposal, an answer or `Malformed`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from populora_env.config import GameConfig, StyleName
from populora_env.generator import generate_problem
from populora_env.parsing import MAX_MESSAGE_CHARS, parse_answer, parse_proposal
from populora_env.prompts import get_style
from populora_env.types import Answer, Malformed, Problem, Proposal, Task

STYLES: tuple[StyleName, ...] = ("compact", "chat")
REFERENCE = Problem(
    problem_id="r", task=Task.DEDUCTION, program="def f(a):\n    return a", inputs=("(1,)",), outputs=("1",)
)


def config(style: StyleName = "compact") -> GameConfig:
    return GameConfig(style=style)


def propose(text: str, task: Task = Task.DEDUCTION, style: StyleName = "compact") -> Proposal | Malformed:
    return parse_proposal(text, task=task, references=[REFERENCE], config=config(style))


def answer(text: str, task: Task = Task.DEDUCTION, style: StyleName = "compact") -> Answer | Malformed:
    return parse_answer(text, task=task, config=config(style))


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("task", list(Task))
def test_what_a_style_writes_is_read_back(style: StyleName, task: Task) -> None:
    for seed in range(20):
        problem = generate_problem(np.random.default_rng(seed), task=task)
        written = Proposal(task=task, program=problem.program, inputs=problem.inputs, message=problem.message)
        text = get_style(style).write_proposal(written)
        assert parse_proposal(text, task=task, references=[problem], config=config(style)) == written
        gold = problem.program if task is Task.INDUCTION else problem.outputs[0]
        given_answer = Answer(task=task, text=gold)
        assert answer(get_style(style).write_answer(given_answer), task, style) == given_answer


def test_only_what_follows_the_last_answer_mark_counts() -> None:
    text = "b = 3\n<answer>\n1\nno, wait\n<answer>\n42"
    assert answer(text) == Answer(task=Task.DEDUCTION, text="42")
    chat = "First:\n```output\n1\n```\nNo:\n```output\n42\n```\nDone."
    assert answer(chat, style="chat") == Answer(task=Task.DEDUCTION, text="42")


def test_free_reasoning_may_precede_a_proposal() -> None:
    compact = "<program>\nthinking\n<answer>\n<program>\ndef f(x): return x+1\n<input>\n(1,)"
    expected = Proposal(task=Task.DEDUCTION, program="def f(x):\n    return x + 1", inputs=("(1,)",))
    assert propose(compact) == expected
    chat = "Draft:\n```python\nx\n```\nFinal:\n```python\ndef f(x): return x+1\n```\n```input\n(1,)\n```"
    assert propose(chat, style="chat") == expected


def test_induction_proposals_take_their_program_from_the_reference() -> None:
    text = "<answer>\n" + "<input>\n(1,)\n<input>\n(2,)\n<input>\n(3,)\n<input>\n(4,)\n<message>\nsame"
    parsed = propose(text, Task.INDUCTION)
    assert isinstance(parsed, Proposal)
    assert parsed.program == REFERENCE.program
    assert parsed.inputs == ("(1,)", "(2,)", "(3,)", "(4,)")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "42",
        "<answer>",
        "<answer>\n  \n",
        "say <answer> 42",
        "<answer>\n42\0",
        "<answer>\n'\ud800'",
        "<answer>\n" + "9" * 513,
        "<answer>\n" + "x" * 20000,
    ],
)
def test_texts_without_an_answer_are_malformed(text: str) -> None:
    assert isinstance(answer(text), Malformed)


@pytest.mark.parametrize(
    "text",
    [
        "<answer>\n<program>\ndef f(x): return x",
        "<answer>\n<input>\n(1,)",
        "<answer>\n<input>\n(1,)\n<program>\ndef f(x): return x",
        "<answer>\n<program>\ndef f(x): return x\n<input>\n(1,)\n<input>\n(2,)",
        "<answer>\n<program>\ndef f(x: return\n<input>\n(1,)",
        "<answer>\nhello\n<program>\ndef f(x): return x\n<input>\n(1,)",
        "<program>\ndef f(x): return x\n<input>\n(1,)",
        "```python\ndef f(x): return x\n```",
    ],
)
def test_texts_without_a_proposal_are_malformed(text: str) -> None:
    assert isinstance(propose(text), Malformed)
    assert isinstance(propose(text, style="chat"), Malformed)


def test_wrong_number_of_inputs_or_a_long_message_is_malformed() -> None:
    three = "<answer>\n" + "<input>\n(1,)\n" * 3 + "<message>\nm"
    assert isinstance(propose(three, Task.INDUCTION), Malformed)
    long = "<answer>\n" + "<input>\n(1,)\n" * 4 + "<message>\n" + "m" * (MAX_MESSAGE_CHARS + 1)
    assert isinstance(propose(long, Task.INDUCTION), Malformed)


def test_a_mark_inside_a_stored_program_cannot_stand_on_a_line_of_its_own() -> None:
    text = '<answer>\n<program>\ndef f(x):\n    return """\n <answer>\n42"""\n<input>\n(1,)'
    parsed = propose(text)
    assert isinstance(parsed, Proposal)
    assert "<answer>" not in [line.strip() for line in parsed.program.split("\n")]


def test_an_induction_proposal_without_a_reference_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="needs a reference"):
        parse_proposal("", task=Task.INDUCTION, references=[], config=config())


@given(
    text=st.text(alphabet=st.characters(), max_size=300),
    style=st.sampled_from(STYLES),
    task=st.sampled_from(list(Task)),
)
def test_any_text_is_read_without_an_exception(text: str, style: StyleName, task: Task) -> None:
    assert isinstance(answer(text, task, style), Answer | Malformed)
    assert isinstance(propose(text, task, style), Proposal | Malformed)


@pytest.mark.parametrize("style", STYLES)
def test_huge_actions_are_refused_by_their_length(style: StyleName) -> None:
    assert isinstance(answer("```" * 4_000_000, style=style), Malformed)
    assert isinstance(propose("<answer>\n" * 1_000_000, style=style), Malformed)
