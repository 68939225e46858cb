"""Argument tuples as calls, and back."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from value_strategies import VALUES, canonical

from populora_env.calls import as_call, split_calls
from populora_env.source import SourceError
from populora_env.values import encode, format_value, parse_literal


@pytest.mark.parametrize(
    ("arguments", "call"),
    [("(3, 'ab')", "f(3, 'ab')"), ("([1, 2],)", "f([1, 2])"), ("()", "f()"), ("((1,),)", "f((1,))"), ("3", "f(*3)")],
)
def test_by_hand(arguments: str, call: str) -> None:
    assert as_call(arguments) == call


@given(VALUES)
def test_any_value_makes_the_round_trip(value: object) -> None:
    assume(canonical(value) is not None)
    literal = format_value((value, 1))
    rest, (back,) = split_calls(as_call(literal))
    assert rest == ""
    assert encode(parse_literal(back, max_chars=1 << 20)) == encode((value, 1))


def test_only_calls_at_the_end_are_cut_off() -> None:
    program = "f(1)\ndef f(a): return a\nf(2)\nprint(f(3))"
    assert split_calls(program) == ("f(1)\n\ndef f(a):\n    return a", ("(2,)", "(3,)"))
    assert split_calls("x = 1\nprint(f(1), 2)") == ("x = 1\nprint(f(1), 2)", ())


@pytest.mark.parametrize("text", ["(", "f(" * 3000, "\0", "f(" + "-" * 100000 + "1)"])
def test_what_is_no_program_is_refused(text: str) -> None:
    with pytest.raises(SourceError):
        split_calls(text)


def test_arguments_that_cannot_be_read_are_passed_whole() -> None:
    assert as_call("(" * 300) == "f(*" + "(" * 300 + ")"
