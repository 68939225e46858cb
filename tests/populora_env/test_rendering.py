"""Tests of `populora_env.rendering`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_judge import ScriptedJudge, answer_text, induction_text, proposal_text

from populora_env.config import GameConfig
from populora_env.game import Round
from populora_env.judging import play_round
from populora_env.rendering import escape, render_round
from populora_env.types import Problem, Task

CONFIG = GameConfig(solver_seats=1)
REFERENCE = Problem(
    problem_id="r", task=Task.DEDUCTION, program="def f(a):\n    return a", inputs=("(1,)",), outputs=("1",)
)


def render(proposal, answer="", task=Task.DEDUCTION):
    item = Round(task=task, references=(REFERENCE,), config=CONFIG)
    result = play_round(item, proposer=lambda _: proposal, solvers=[lambda _: answer], judge=ScriptedJudge())
    return render_round(result, number=7)


def test_a_round_reads_as_it_went():
    assert render(proposal_text(), answer_text("'right'")).split("\n") == [
        "round 7: deduction",
        "  proposer_0  a valid problem, reward +0.00",
        "      def f(a):",
        "          return a",
        "      f(1) == 0    <- the output is asked for",
        "  solver_0    correct, reward +1.00",
        "      'right'",
        "  1 of 1 solved it",
    ]


def test_each_task_says_what_is_asked_and_what_is_hidden():
    assert "f('a', 2) == 0    <- an input that gives" in render(proposal_text(given="('a', 2)"), task=Task.ABDUCTION)
    text = render(induction_text(), task=Task.INDUCTION)
    assert (text.count("<- shown"), text.count("<- hidden")) == (2, 2)
    assert "      hint: hint\n      the program is asked for" in text


CALLS = {"(1,)": "f(1)", "()": "f()", "((1,),)": "f((1,))", "(1, 2)": "f(1, 2)", "('a,)',)": "f('a,)')"}


@pytest.mark.parametrize(("given", "call"), CALLS.items())
def test_inputs_are_shown_as_calls(given, call):
    assert f"      {call} == 0" in render(proposal_text(given=given))


def test_verdicts_are_told_in_words():
    assert "proposer_0  no readable proposal (format:expected these blocks: program, input), reward -1.00" in render("")
    invalid = render(proposal_text("return invalid"))
    assert "proposer_0  an invalid problem (error:ValueError), reward -1.00" in invalid
    assert "      input (1,)" in invalid
    text = render(proposal_text(), answer_text("3"))
    assert "solver_0    wrong, reward -0.50" in text
    assert "0 of 1 solved it" in text
    assert "solver_0    no readable answer (format:no answer), reward -1.00" in render(proposal_text())


@given(st.text(alphabet=st.characters(codec=None)))
def test_no_text_steers_a_terminal(text):
    assert all(char.isprintable() or char == "\n" for char in escape(text))


def test_escapes_are_readable_and_long_text_is_cut():
    assert escape("a\x1b[2J\u202e\ud800\r\né") == "a\\x1b[2J\\u202e\\ud800\\r\né"
    assert len(escape("x" * 10_000_000)) == 2003
    assert "\x1b" not in render(proposal_text(), answer_text("\x1b[2J"))
