"""What becomes a problem: every rule both ways, ordinary programs that must, and unfair ones that must not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ordinary_programs import ORDINARY
from unfair_programs import UNFAIR, body, f

from populora_env.admission import RULES
from populora_env.config import VerifierConfig
from populora_env.types import Proposal, ProposalVerdict, Task
from populora_env.values import encode, format_value, parse_literal
from populora_env.verifier import Verifier

BOTH_WAYS: dict[str, tuple[Proposal, Proposal]] = {}
"""For each rule of `RULES` a proposal that breaks it, and a near neighbour that does not."""


def deduction(program: str, literal: str = "(1,)") -> Proposal:
    return Proposal(task=Task.DEDUCTION, program=program, inputs=(literal,))


def both_ways(rule: str, refused: str, admitted: str) -> None:
    BOTH_WAYS[rule] = deduction(refused), deduction(admitted)


both_ways("import", f("math.pi", "from math import *\n"), f("math.pi", "import math\n"))
both_ways(
    "typing",
    f("List[int]", "from typing import List\n"),
    "from typing import List\ndef f(x: List[int]):\n    return x\n",
)
both_ways("module", f("[math][0].pi", "import math\n"), f("[math.pi][0]", "import math\n"))
both_ways("builtin", f("id(x) > 0"), "def f(id):\n    return id > 0\n")
both_ways(
    "attribute", body("g = (y for y in [x])\nreturn g.gi_frame"), body("g = (y for y in [x])\nreturn g.send(None)")
)
both_ways("format", f("'{0.real}'.format(x)"), f("'{0}'.format(x.real)"))
both_ways(
    "dunder",
    "class A:\n    def __getattr__(self, n):\n        return 1\n" + f("A().a"),
    "class A:\n    def __getitem__(self, n):\n        return 1\n" + f("A()['a']"),
)
both_ways("call", f("type('A', (), {}) is None"), f("type(x) is int"))
both_ways("identity", f("x is x is x"), f("x is not None and x == x"))
both_ways("async", "async def g(x):\n    return x\n" + f("x"), "def g(x):\n    yield x\n" + f("[*g(x)]"))
both_ways(
    "class",
    "class A(dict, total=False):\n    pass\n" + f("x"),
    "from abc import ABCMeta\nclass A(dict, metaclass=ABCMeta):\n    pass\n" + f("x"),
)
both_ways("scope", "def g():\n    nonlocal y\n" + f("x"), "def g():\n    global y\n" + f("x"))
both_ways("unanswerable", f("'a' * 300"), f("'a' * 200"))
BOTH_WAYS["duplicate_inputs"] = (
    Proposal(task=Task.INDUCTION, program=f("x"), inputs=("(1,)", "(1, )", "(2,)", "(3,)")),
    Proposal(task=Task.INDUCTION, program=f("x"), inputs=("(1,)", "(1.0,)", "(True,)", "(3,)")),
)


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(VerifierConfig(cache_size=0)) as shared:
        yield shared


@pytest.fixture(scope="module")
def ordinary(verifier: Verifier) -> dict[str, ProposalVerdict]:
    proposals = [deduction(program, literal) for program, literal, _ in ORDINARY.values()]
    return dict(zip(ORDINARY, verifier.check_proposals(proposals), strict=True))


@pytest.fixture(scope="module")
def unfair(verifier: Verifier) -> dict[str, ProposalVerdict]:
    proposals = [deduction(program) for program, _ in UNFAIR.values()]
    return dict(zip(UNFAIR, verifier.check_proposals(proposals), strict=True))


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_refuses_what_breaks_it_and_admits_a_near_neighbour(verifier: Verifier, rule: str) -> None:
    refused, admitted = verifier.check_proposals(BOTH_WAYS[rule])
    assert str(refused.verdict) == f"inadmissible:{rule}"
    assert str(admitted.verdict) == "ok"


def test_no_proposal_is_kept_for_a_rule_that_is_gone() -> None:
    assert BOTH_WAYS.keys() == RULES.keys()


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_program_is_valid_and_gives_its_value(ordinary: dict[str, ProposalVerdict], name: str) -> None:
    judged, value = ordinary[name], ORDINARY[name][2]
    assert str(judged.verdict) == "ok"
    assert value is None or judged.outputs == (format_value(value),)


@pytest.mark.parametrize("name", UNFAIR)
def test_an_unfair_program_is_no_problem(unfair: dict[str, ProposalVerdict], name: str) -> None:
    verdict = unfair[name].verdict
    assert not verdict.ok
    assert {str(verdict), str(verdict.status)} & set(UNFAIR[name][1].split("|")), str(verdict)


def test_a_value_must_read_back_to_its_own_bytes_within_half_of_the_answer_budget(verifier: Verifier) -> None:
    half = verifier.config.max_answer_chars // 2
    programs = [f(f"'a' * {half - 2}"), f(f"'a' * {half - 1}"), f("float('nan')"), f("-0.0"), f("1e400j")]
    judged = verifier.check_proposals([deduction(program) for program in programs])
    assert [str(one.verdict) for one in judged] == ["ok", "inadmissible:unanswerable", "ok", "ok", "ok"]
    for one, value in zip(judged[2:], (float("nan"), -0.0, complex(0, float("inf"))), strict=True):
        assert encode(parse_literal(one.outputs[0], max_chars=half)) == encode(value)


def test_a_proposal_has_a_quarter_of_the_time_of_an_answer() -> None:
    spin = body("n = 0\nwhile n < x:\n    n += 1\nreturn n")
    with Verifier(VerifierConfig(cache_size=0, cpu_s=2.0)) as patient, Verifier(VerifierConfig(cpu_s=0.004)) as hasty:
        assert [str(v.check_proposals([deduction(spin, "(200000,)")])[0].verdict) for v in (patient, hasty)] == [
            "ok",
            "timeout",
        ]
