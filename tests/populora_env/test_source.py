"""Bounded parsing and the normal form."""

from __future__ import annotations

import ast
import contextlib
import os
import signal
import threading
import time
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from populora_env.source import (
    MAX_DEPTH,
    MAX_SOURCE_CHARS,
    SourceError,
    is_plain_text,
    normalise,
    parse_program,
    template,
)


def test_normal_form_drops_comments_docstrings_and_spelling() -> None:
    source = '"""doc"""\ndef f( x ):  # why\n    """doc"""\n    return (x+1)\n\n\nclass A:\n    """only this"""\n'
    assert normalise(source) == "def f(x):\n    return x + 1\n\nclass A:\n    pass"


def test_normal_form_keeps_strings_that_are_not_docstrings() -> None:
    assert normalise("def f(x):\n    return 'a # b'") == "def f(x):\n    return 'a # b'"


def test_normal_form_is_a_fixed_point() -> None:
    once = normalise("def f(a,b):\n  if a: return {1,2}\n  return [i for i in b if i>0]")
    assert normalise(once) == once


HOSTILE = pytest.mark.parametrize(
    "source",
    [
        "def f(x:\n    return",
        "def f(x):\n    return 1\0",
        "x = '\ud800'",
        "(" * 5000 + ")" * 5000,
        "-" * 16000 + "1",
        "x" + ".a" * 8000,
        "f(" * MAX_DEPTH + "1" + ")" * MAX_DEPTH,
        "1" * (MAX_SOURCE_CHARS + 1),
        "x = " + "9" * 5000,
        "x=" + ",".join("1" * 6000),
    ],
)


@HOSTILE
def test_hostile_source_is_refused_not_crashed_on(source: str) -> None:
    with pytest.raises(SourceError):
        normalise(source)


def test_a_template_is_blind_to_constants_and_to_nothing_else() -> None:
    triple = template("def f(x):\n    return x * 3\n")
    assert triple == template("def f(x):\n    # the same, but below zero\n    return (x*-7)\n")
    assert triple != template("def f(x):\n    return x + 3\n")
    assert triple != template("def f(x):\n    return x * 3.0\n"), "the type is kept"
    assert triple != template("def f(y):\n    return y * 3\n"), "names count"
    assert template("def f(x):\n    return 'a' + x") == template('def f(x):\n    """Doc."""\n    return u"bc" + x')
    assert template("def f(x):\n    return f'{x}a'") == template("def f(x):\n    return f'{x}b'")
    assert template("def f(x):\n    return -x") != template("def f(x):\n    return x")
    assert template("a = {1: 2, **a}") != template("a = {**a, 1: 2}")
    assert template("f(a, (b))") == template("f(a, b)") != template("f((a, b))")
    assert template("f(g(a), b)") != template("f(g(a, b))")
    cases = "match x:\n    case {0}: pass\n    case {1}: pass"
    assert template(cases.format("'a'", True)) == template(cases.format("'b'", False))
    assert template(cases.format("'a'", True)) != template(cases.format("1", True))
    assert template(cases.format("'a'", True)) != template(cases.format("'a'", None))


@given(st.integers(), st.integers())
def test_every_number_has_one_template(one: int, other: int) -> None:
    assert template(f"def f(x):\n    return x * {one}") == template(f"def f(x):\n    return x * {other}")


@HOSTILE
def test_hostile_source_has_no_template_or_a_short_one(source: str) -> None:
    with contextlib.suppress(SourceError):
        assert len(template(source)) == 32


@pytest.mark.parametrize(
    "source",
    [
        "f(" * 40 + "1" + ")" * 40,
        "x = " + "-" * 90 + "1",
        "x = [" + "1, " * 5000 + "]",
        "x = " + "+".join("1" * 90),
        "\u53d8\u91cf" * 4000 + " = 1",
        "\n".join(f"a{n} = '\\ud800\\x00'" for n in range(700)),
        "x = 0x" + "f" * 16000,
        "x = 1e999j",
        "x = f'{x!r:>{2}}' f\"{f'{1}'}\"",
        "def f(x, /, *, y=1, **z): ...",
    ],
)
def test_a_template_is_short_and_found_deep_in_the_stack(source: str) -> None:
    def at(depth: int) -> str:
        return at(depth - 1) if depth else template(source)

    assert len(at(500)) == 32


@given(st.text(max_size=60))
def test_any_text_has_the_template_of_its_normal_form_or_is_refused(text: str) -> None:
    with contextlib.suppress(SourceError):
        assert template(text) == template(normalise(text))


def test_depth_just_inside_the_bound_is_parsed() -> None:
    assert isinstance(parse_program("f(" * 40 + "1" + ")" * 40), ast.Module)


def test_warnings_of_hostile_source_stay_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse_program("x = '\\d' is 'd'")


@given(st.text(alphabet=st.characters(), max_size=200))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        tree = parse_program(text)
    except SourceError:
        return
    assert is_plain_text(text)
    assert isinstance(tree, ast.Module)


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "(",
            "[",
            "{1:",
            "f(",
            "(a:=",
            "lambda:",
            "not ",
            "1**",
            "a.",
            "a if b else ",
            "x=",
            'f"{',
            "@a\n",
            "with (a,",
        ),
        *(
            "case [",
            "{**",
            "[x for x in ",
            "elif a:\n pass\n",
            "def f[T: (",
            "'",
            "1_",
            "\uff46",
            "\u202e",
            "\x0c",
            "0x",
        ),
    ],
)
def test_repetitions_neither_crash_the_parser_nor_hold_it_up(piece: str) -> None:
    start = time.process_time()
    for text in (piece * (MAX_SOURCE_CHARS // len(piece)), piece * 90, "match x:\n    case " + piece * 60 + "1 1"):
        try:
            normalise(text)
        except SourceError:
            continue
    assert time.process_time() - start < 2


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_the_child_of_a_fork_can_parse_whatever_other_threads_were_at() -> None:
    stop = threading.Event()

    def parse_on() -> None:
        while not stop.is_set():
            parse_program("x = [" + "1, " * 2000 + "]")

    threads = [threading.Thread(target=parse_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                signal.alarm(10)
                parse_program("x = 1")
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
