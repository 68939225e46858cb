"""Operators of one's own, by dotted path."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

from league.operators import apply
from league.operators.own import is_path, load_operator
from populora_agents.lora import LoraFactors

MODULE = """
import torch
from league.operators import Operator
from populora_agents.lora import LoraFactors

def halve(parent, *, generator, factor=0.5):
    return {name: LoraFactors(A=x.A.clone(), B=x.B * factor) for name, x in parent.items()}

def first_of(one, other, *, generator):
    return {name: LoraFactors(A=x.A.clone(), B=x.B.clone()) for name, x in one.items()}

def drop(parent, *, generator):
    return {}

def poison(parent, *, generator):
    return {name: LoraFactors(A=x.A * float("nan"), B=x.B) for name, x in parent.items()}

class Family:
    @staticmethod
    def halve(parent, *, generator):
        return parent

DECLARED = Operator(name="anything", arity=1, function=halve, parameters={"factor": 0.25})
number = 3
three = lambda a, b, c, *, generator: a
none = lambda *, generator: {}
no_generator = lambda parent: parent
no_default = lambda parent, *, generator, factor: parent
words = lambda parent, *, generator, how="fast": parent
many = lambda *parents, generator: parents[0]
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module of operators that can be imported."""
    (tmp_path / "my_own_operators.py").write_text(MODULE)
    (tmp_path / "my_broken_operators.py").write_text("import no_such_library_at_all\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("my_own_operators", "my_broken_operators"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "my_own_operators"


def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def parent(value: float = 1.0) -> dict[str, LoraFactors]:
    return {"m": LoraFactors(A=torch.full((1, 2), value), B=torch.ones(2, 1))}


def test_arity_and_parameters_are_read_from_the_signature(mine: str) -> None:
    halve, first_of = load_operator(f"{mine}:halve"), load_operator(f"{mine}.first_of")
    assert (halve.name, halve.arity, dict(halve.parameters)) == (f"{mine}:halve", 1, {"factor": 0.5})
    assert (first_of.name, first_of.arity, dict(first_of.parameters)) == (f"{mine}.first_of", 2, {})
    assert load_operator(f"{mine}:Family.halve").arity == 1
    declared = load_operator(f"{mine}:DECLARED")
    assert (declared.name, dict(declared.parameters)) == (f"{mine}:DECLARED", {"factor": 0.25})


def test_they_are_applied_and_checked_as_the_others_are(mine: str) -> None:
    assert (apply(f"{mine}:halve", [parent()], rng())["m"].B == 0.5).all()
    assert (apply(f"{mine}:halve", [parent()], rng(), {"factor": 0.1})["m"].B == 0.1).all()
    assert (apply(f"{mine}:first_of", [parent(3.0), parent()], rng())["m"].A == 3.0).all()
    with pytest.raises(ValueError, match="takes 2 parents, got 1"):
        apply(f"{mine}:first_of", [parent()], rng())
    with pytest.raises(ValueError, match="has no parameter"):
        apply(f"{mine}:halve", [parent()], rng(), {"share": 0.1})
    with pytest.raises(ValueError, match=r"the child of .*drop differs from parent 0 in modules, for example 'm'"):
        apply(f"{mine}:drop", [parent()], rng())
    with pytest.raises(ValueError, match=r"the child of .*poison is not finite"):
        apply(f"{mine}:poison", [parent()], rng())


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ("missing", "has no 'missing'"),
        ("number", "must be a function or an `Operator`, got a int"),
        ("three", "one parent or two, its signature has 3"),
        ("none", "one parent or two, its signature has 0"),
        ("no_generator", "keyword-only `generator`"),
        ("no_default", "`factor` must be"),
        ("words", "`how='fast'` must be"),
        ("many", "`\\*parents` must be"),
    ],
)
def test_what_cannot_be_an_operator_is_refused_with_the_reason(mine: str, attribute: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_operator(f"{mine}:{attribute}")


def test_paths_that_lead_nowhere_are_refused(mine: str) -> None:
    del mine
    for path, message in (
        ("no_such_module:f", "cannot import 'no_such_module'"),
        ("my_broken_operators:f", "no_such_library_at_all"),
        ("name:", "expected `package.module:function`"),
        (":name", "expected `package.module:function`"),
        (".name", "expected `package.module:function`"),
    ):
        with pytest.raises(ValueError, match=message):
            load_operator(path)


def test_a_path_has_a_dot_or_a_colon() -> None:
    assert is_path("mine:f")
    assert is_path("package.mine.f")
    assert not is_path("svd_mix")
