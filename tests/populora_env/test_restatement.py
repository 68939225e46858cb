"""A program for a Python that decides otherwise: what is rewritten, what is left alone, and that sense is kept."""

from __future__ import annotations

import ast

import pytest
from ordinary_programs import ORDINARY

from populora_env.restatement import hangs_on_interpreter, restate


def f(expression: str, head: str = "") -> str:
    return f"{head}def f(x):\n    return {expression}\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (f("x is y"), True),
        (f("x is not y"), True),
        (f("x is None or x is not False or x is ..."), False),
        (f("x == y"), False),
        ("def f(x):\n    try:\n        return 1\n    finally:\n        pass\n", True),
        ("def f(x):\n    with x:\n        return 1\n", True),
        (f("1", "from datetime import date\n"), True),
        (f("len(repr(f))"), True),
        (f("repr(x)"), False),
        (f("sorted(x)"), False),
    ],
)
def test_only_what_is_open_in_the_language_is_restated(source: str, expected: bool) -> None:
    assert hangs_on_interpreter(list(ast.walk(ast.parse(source)))) is expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a = x is y", "a = __is_same__(x, y)"),
        ("a = x is not y", "a = not __is_same__(x, y)"),
        ("a = x is None", "a = x is None"),
        ("a = f'{x:{y}}'", "a = __seen__(f'{x:{y}}')"),
        ("a = map(str, x)", "a = map(__checked__(str), x)"),
        ("a = str", "a = str"),
        ("a %= b", "a %= b\n__seen__(a)"),
        (
            "try:\n    pass\nexcept E as e:\n    a",
            "try:\n    pass\nexcept __OutOfMemory__:\n    __fail__()\nexcept E as e:\n    __caught__(e)\n    a",
        ),
        (
            "def __exit__(self, a, *b):\n    pass",
            "def __exit__(self, a, *b):\n    __caught__(a, *b)\n    pass",
        ),
    ],
)
def test_the_functions_of_the_prelude_stand_where_something_is_open(source: str, expected: str) -> None:
    assert restate(source).endswith(f"\n{expected}")


def test_the_future_stays_in_front() -> None:
    restated = restate("'doc'\nfrom __future__ import annotations\nx = 1\n")
    assert restated.startswith("from __future__ import annotations\n")
    compile(restated, "<program>", "exec")


@pytest.mark.parametrize("name", ORDINARY)
def test_every_ordinary_program_can_be_restated(name: str) -> None:
    compile(restate(ORDINARY[name][0]), "<program>", "exec")
