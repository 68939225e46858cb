"""Families are told by the text of any program; the hash alone decides what is held out."""

from __future__ import annotations

import pytest

from populora_env.generator_families import HELD_OUT_SHARE, Family, family_of, is_held_out


@pytest.mark.parametrize(
    ("program", "given", "family"),
    [
        ("def f(a):\n    return abs(a) - 3", "(4,)", Family.ARITHMETIC),
        ("def f(a):\n    return a + a", "('x',)", Family.TEXT),
        ("def f(a):\n    return str(a)", "(1,)", Family.TEXT),
        ("def f(a):\n    return a + a", "([1],)", Family.LISTS),
        ("def f(a):\n    return a + a", "((1, 2),)", Family.RECORDS),
        ("def f(a):\n    return {'x': [a]}", "(1,)", Family.RECORDS),
        ("def f(a):\n    return a == 1", "(1,)", Family.BRANCHES),
        ("def f(a):\n    return [a]", "(True,)", Family.BRANCHES),
        ("def f(a):\n    return [i for i in a if i > 2]", "([1],)", Family.COMPREHENSIONS),
        ("def f(a):\n    while a > 3:\n        a -= 2\n    return [a for i in 'x']", "(9,)", Family.LOOPS),
        ("def g(x):\n    return x\n\ndef f(a):\n    return g(a)", "(1,)", Family.HELPERS),
    ],
)
def test_the_hardest_construct_names_the_family(program: str, given: str, family: Family) -> None:
    assert family_of(program, given) is family


def test_texts_that_are_no_program_or_no_literal_are_refused() -> None:
    with pytest.raises(SyntaxError):
        family_of("def f(", "(1,)")
    with pytest.raises(ValueError, match="malformed"):
        family_of("def f(a):\n    return a", "(g(),)")


def test_about_one_program_in_eight_is_held_out_for_ever() -> None:
    programs = [f"def f(a):\n    return a + {number}" for number in range(4000)]
    held = [is_held_out(program) for program in programs]
    assert sum(held) / len(held) == pytest.approx(1 / HELD_OUT_SHARE, abs=0.02)
    assert [number for number in range(30) if held[number]] == HELD_AMONG_THE_FIRST_30


HELD_AMONG_THE_FIRST_30 = [4, 6, 8, 18, 21, 24, 25]
"""Must never change: what is held out of nano-1 would then be in it."""
