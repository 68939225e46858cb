"""Tests of `populora_env.rendering`."""

from hypothesis import given
from hypothesis import strategies as st
from scripted_judge import ScriptedJudge, answer_text, induction_text, proposal_text

from populora_env.config import GameConfig
from populora_env.game import Round
from populora_env.play import play_round
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
        "  proposer_0  ok  reward +0.00",
        "      def f(a):",
        "          return a",
        "      f(1,) = 0",
        "  solver_0    ok  reward +1.00",
        "      'right'",
        "  solve rate  1.00",
    ]


def test_unfinished_rounds_and_hidden_pairs_are_told():
    assert "proposer_0  format:" in render("nonsense")
    assert "error:ValueError" in render(proposal_text("return invalid"))
    text = render(induction_text(), task=Task.INDUCTION)
    assert text.count("(hidden)") == 2
    assert "message: hint" in text


@given(st.text(alphabet=st.characters(codec=None)))
def test_no_text_steers_a_terminal(text):
    assert all(char.isprintable() or char == "\n" for char in escape(text))


def test_escapes_are_readable_and_long_text_is_cut():
    assert escape("a\x1b[2J\u202e\ud800\r\né") == "a\\x1b[2J\\u202e\\ud800\\r\né"
    assert len(escape("x" * 10_000_000)) == 2003
    assert "\x1b" not in render(proposal_text(), answer_text("\x1b[2J"))
