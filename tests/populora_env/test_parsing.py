"""From any text to a proposal, an answer or `Malformed`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from populora_env.config import GameConfig, StyleName
from populora_env.generator import generate_problem
from populora_env.parsing import MAX_MESSAGE_CHARS, is_worked, parse_answer, parse_proposal
from populora_env.prompts import get_style
from populora_env.types import Answer, Malformed, Problem, Proposal, Task

STYLES: tuple[StyleName, ...] = ("compact", "chat", "few_shot")
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
        gold = {Task.DEDUCTION: problem.outputs[0], Task.ABDUCTION: problem.inputs[0], Task.INDUCTION: problem.program}[
            task
        ]
        given_answer = Answer(task=task, text=gold)
        assert answer(get_style(style).write_answer(given_answer), task, style) == given_answer


def test_only_what_follows_the_last_answer_mark_counts() -> None:
    text = "b = 3\n<answer>\n1\nno, wait\n<answer>\n42"
    assert answer(text) == Answer(task=Task.DEDUCTION, text="42")
    chat = "First:\n```output\n1\n```\nNo:\n```output\n42\n```\nDone."
    assert answer(chat, style="chat") == Answer(task=Task.DEDUCTION, text="42")


@pytest.mark.parametrize(
    ("text", "worked"),
    [
        ("<answer>\n3", False),
        ("\n<answer>\n3", False),
        ("a = 3\n<answer>\n3", True),
        ("a = 3\n<answer> \n3", True),
        ("<answer>\n1\n<answer>\n3", True),
        ("<answer>\n1 <answer>\n3", False),
        ("a <answer>\n3", False),
        ("a = 3", False),
        ("", False),
    ],
)
def test_an_answer_is_worked_when_something_stands_before_its_last_mark(text: str, worked: bool) -> None:
    assert is_worked(text) == worked


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
    assert isinstance(propose(text, style="few_shot"), Malformed)


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


PROGRAM = "def f(a, b):\n    return a + b"


@pytest.mark.parametrize(
    "text",
    [
        f"```python\n{PROGRAM}\n\nf('x', 'y')\n```",
        f"Sure:\n\n```py\n{PROGRAM}\n\nprint(f('x', 'y'))  # xy\n```\nDone.",
        f"```python\nold\n```\n```python\n{PROGRAM}\nf('x', 'y')\nf(1, 2)\n```",
        f"```python\n{PROGRAM}\nf('x', 'y')",
    ],
    ids=["plain", "printed", "last block, first call", "cut by a stop string"],
)
def test_a_block_with_a_call_is_a_proposal(text: str) -> None:
    expected = Proposal(task=Task.DEDUCTION, program=PROGRAM, inputs=("('x', 'y')",))
    assert propose(text, style="few_shot") == expected


@pytest.mark.parametrize(
    "text",
    [
        PROGRAM + "\nf(1, 2)",
        f"```python\n{PROGRAM}\n```",
        f"```python\n{PROGRAM}\nf(1, 2)\nx = 1\n```",
        f"```python\n{PROGRAM}\ng(1, 2)\n```",
        f"```python\n{PROGRAM}\nf(a=1, b=2)\n```",
        f"```python\n{PROGRAM}\nf(*(1, 2))\n```",
        f"```python\n{PROGRAM}\nf(1,\n```",
        "```python\nf(1)\n" + "(" * 5000 + "\n```",
    ],
)
def test_blocks_without_a_call_of_literals_by_position_are_malformed(text: str) -> None:
    assert isinstance(propose(text, style="few_shot"), Malformed)


def test_arguments_that_are_no_literals_are_read_and_left_to_the_verifier() -> None:
    parsed = propose(f"```python\n{PROGRAM}\nf(open('x'), 1)\n```", style="few_shot")
    assert isinstance(parsed, Proposal)
    assert parsed.inputs == ("(open('x'), 1)",)


def test_an_induction_proposal_of_calls() -> None:
    calls = "\n".join(f"f({number})" for number in range(6))
    parsed = propose(f"```python\n# gives\n#  it back\n{calls}\n```", Task.INDUCTION, "few_shot")
    assert parsed == Proposal(
        task=Task.INDUCTION,
        program=REFERENCE.program,
        inputs=("(0,)", "(1,)", "(2,)", "(3,)"),
        message="gives it back",
    )
    for text in (calls, f"# {'m' * 513}\n{calls}", "# hint\nf(1)\nf(2)\nf(3)"):
        assert isinstance(propose(f"```python\n{text}\n```", Task.INDUCTION, "few_shot"), Malformed)


def test_answers_as_calls_and_blocks() -> None:
    def read(text: str, task: Task) -> str | None:
        parsed = answer(text, task, "few_shot")
        return parsed.text if isinstance(parsed, Answer) else None

    assert read("```output\n[1, 2]\n```", Task.DEDUCTION) == "[1, 2]"
    assert read("```python\nf([1], 2)\n```", Task.ABDUCTION) == "([1], 2)"
    assert read("```python\nf()\n```", Task.ABDUCTION) == "()"
    assert read(f"```python\n{PROGRAM}\n\nprint(f(1, 2))\n```", Task.INDUCTION) == PROGRAM
    assert read("```python\n([1], 2)\n```", Task.ABDUCTION) is None
    assert read("```python\nf(1)\n```", Task.DEDUCTION) is None
    assert read("```python\nf(1)\n```", Task.INDUCTION) is None


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
