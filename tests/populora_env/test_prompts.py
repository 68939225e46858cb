"""What the two styles write, word for word where nano's training depends on it."""

from __future__ import annotations

import pytest

from populora_env.config import StyleName
from populora_env.prompts import get_style
from populora_env.types import Answer, Problem, Proposal, Task

PROGRAM = "def f(a):\n    return a + 1"
STYLES: tuple[StyleName, ...] = ("compact", "chat")


def problem(task: Task) -> Problem:
    pairs = [("(3,)", "4"), ("(5,)", "6"), ("(70,)", "71"), ("(80,)", "81")]
    if task is not Task.INDUCTION:
        pairs = pairs[2:3]
    return Problem(
        problem_id="p",
        task=task,
        program=PROGRAM,
        inputs=tuple(i for i, _ in pairs),
        outputs=tuple(o for _, o in pairs),
        message="add" if task is Task.INDUCTION else "",
        n_visible=2 if task is Task.INDUCTION else 0,
    )


def test_compact_solver_prompts_word_for_word() -> None:
    style = get_style("compact")
    assert style.solver_prompt(problem(Task.DEDUCTION)) == f"<deduction>\n<program>\n{PROGRAM}\n<input>\n(70,)\n"
    assert style.solver_prompt(problem(Task.ABDUCTION)) == f"<abduction>\n<program>\n{PROGRAM}\n<output>\n71\n"
    assert style.solver_prompt(problem(Task.INDUCTION)) == (
        "<induction>\n<input>\n(3,)\n<output>\n4\n<input>\n(5,)\n<output>\n6\n<message>\nadd\n"
    )


def test_compact_proposer_prompts_word_for_word() -> None:
    style = get_style("compact")
    references = [problem(Task.DEDUCTION), problem(Task.DEDUCTION)]
    block = f"<program>\n{PROGRAM}\n<input>\n(70,)\n"
    assert style.proposer_prompt(Task.ABDUCTION, references, 4) == f"<propose abduction>\n{block}{block}"
    assert style.proposer_prompt(Task.INDUCTION, references, 4) == f"<propose induction>\n<program>\n{PROGRAM}\n"


def test_compact_players_texts_word_for_word() -> None:
    style = get_style("compact")
    proposal = Proposal(task=Task.DEDUCTION, program=PROGRAM, inputs=("(70,)",))
    assert style.write_proposal(proposal) == f"<answer>\n<program>\n{PROGRAM}\n<input>\n(70,)"
    induction = Proposal(task=Task.INDUCTION, program=PROGRAM, inputs=("(3,)", "(5,)"), message="add")
    assert style.write_proposal(induction) == "<answer>\n<input>\n(3,)\n<input>\n(5,)\n<message>\nadd"
    assert style.write_answer(Answer(task=Task.DEDUCTION, text="71")) == "<answer>\n71"


@pytest.mark.parametrize("name", STYLES)
def test_a_solver_prompt_shows_what_it_must_and_hides_what_is_asked(name: StyleName) -> None:
    style = get_style(name)
    deduction = style.solver_prompt(problem(Task.DEDUCTION))
    assert PROGRAM in deduction
    assert "(70,)" in deduction
    assert "71" not in deduction
    abduction = style.solver_prompt(problem(Task.ABDUCTION))
    assert PROGRAM in abduction
    assert "71" in abduction
    assert "(70,)" not in abduction
    induction = style.solver_prompt(problem(Task.INDUCTION))
    assert all(text in induction for text in ("(3,)", "4", "(5,)", "6", "add"))
    assert not any(text in induction for text in (PROGRAM, "(70,)", "71", "(80,)", "81"))


@pytest.mark.parametrize("name", STYLES)
def test_messages_end_with_the_prompt_as_the_users_words(name: StyleName) -> None:
    last = get_style(name).messages("the prompt")[-1]
    assert (last.role, last.content) == ("user", "the prompt")


def test_braces_in_programs_survive_the_chat_templates() -> None:
    style = get_style("chat")
    odd = "def f(a):\n    return {a: '{x}'}"
    shown = Problem(problem_id="p", task=Task.DEDUCTION, program=odd, inputs=("(1,)",), outputs=("2",))
    assert odd in style.solver_prompt(shown)
    assert odd in style.proposer_prompt(Task.DEDUCTION, [shown], 4)
    assert odd in style.proposer_prompt(Task.INDUCTION, [shown], 4)


def test_unknown_style_is_refused() -> None:
    with pytest.raises(ValueError, match="`style` must be one of"):
        get_style("sonnet")  # type: ignore[arg-type]
