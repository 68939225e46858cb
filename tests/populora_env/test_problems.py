"""Tests of `populora_env.problems`."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from populora_env.config import GameConfig
from populora_env.problems import make_problem, problem_id
from populora_env.types import Proposal, ProposalVerdict, Status, Task, Verdict

OK = Verdict(status=Status.OK)


def test_id_is_the_hash_of_the_parts_with_their_lengths():
    spelled = b"9:deduction22:def f(a):\n    return a0:4:(1,)"
    expected = hashlib.blake2b(spelled, digest_size=8).hexdigest()
    assert problem_id(Task.DEDUCTION, "def f(a):\n    return a", ("(1,)",), "") == expected


@given(
    first=st.tuples(st.text(), st.lists(st.text()), st.text()),
    second=st.tuples(st.text(), st.lists(st.text()), st.text()),
)
def test_id_tells_different_parts_apart(first, second):
    def identify(parts):
        return problem_id(Task.INDUCTION, *parts)

    assert (identify(first) == identify(second)) == (first == second)


def test_parts_cannot_be_shifted_into_each_other():
    ids = {
        problem_id(Task.INDUCTION, "ab", ("c",), ""),
        problem_id(Task.INDUCTION, "a", ("bc",), ""),
        problem_id(Task.INDUCTION, "ab", (), "c"),
        problem_id(Task.INDUCTION, "ab", ("c", ""), ""),
        problem_id(Task.DEDUCTION, "ab", ("c",), ""),
    }
    assert len(ids) == 5


def test_problem_holds_the_canonical_inputs_and_shows_half_of_an_induction_problem():
    proposal = Proposal(task=Task.INDUCTION, program="P", inputs=("( 1, )", "(2,)", "(3,)"), message="hint")
    verdict = ProposalVerdict(verdict=OK, inputs=("(1,)", "(2,)", "(3,)"), outputs=("1", "2", "3"))
    problem = make_problem(proposal, verdict, GameConfig(induction_inputs=3))
    assert problem.inputs == ("(1,)", "(2,)", "(3,)")
    assert problem.n_visible == 2
    assert problem.problem_id == problem_id(Task.INDUCTION, "P", problem.inputs, "hint")


def test_refuses_verdicts_that_are_not_ok_or_do_not_fit():
    proposal = Proposal(task=Task.DEDUCTION, program="P", inputs=("(1,)",))
    with pytest.raises(ValueError, match="must be ok"):
        make_problem(proposal, ProposalVerdict(verdict=Verdict(status=Status.TIMEOUT)), GameConfig())
    with pytest.raises(ValueError, match="1 inputs and outputs, got 1 and 0"):
        make_problem(proposal, ProposalVerdict(verdict=OK, inputs=("(1,)",)), GameConfig())
