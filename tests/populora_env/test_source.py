"""Bounded parsing and the normal form."""

from __future__ import annotations

import ast
import os
import signal
import threading
import time
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from populora_env.source import MAX_DEPTH, MAX_SOURCE_CHARS, SourceError, is_plain_text, normalise, parse_program


def test_normal_form_drops_comments_docstrings_and_spelling() -> None:
    source = '"""doc"""\ndef f( x ):  # why\n    """doc"""\n    return (x+1)\n\n\nclass A:\n    """only this"""\n'
    assert normalise(source) == "def f(x):\n    return x + 1\n\nclass A:\n    pass"


def test_normal_form_keeps_strings_that_are_not_docstrings() -> None:
    assert normalise("def f(x):\n    return 'a # b'") == "def f(x):\n    return 'a # b'"


def test_normal_form_is_a_fixed_point() -> None:
    once = normalise("def f(a,b):\n  if a: return {1,2}\n  return [i for i in b if i>0]")
    assert normalise(once) == once


@pytest.mark.parametrize(
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
def test_hostile_source_is_refused_not_crashed_on(source: str) -> None:
    with pytest.raises(SourceError):
        normalise(source)


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
