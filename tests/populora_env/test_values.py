"""Canonical literals and the bounded reader."""

from __future__ import annotations

import math
import threading
import time
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_strategies import VALUES, canonical

from populora_env import values
from populora_env.values import LiteralError, decode, encode, format_value, parse_literal

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


@given(VALUES)
@settings(max_examples=150, deadline=None)
def test_what_is_printed_reads_back_to_the_same_bytes(value: Any) -> None:
    data = canonical(value)
    if data is not None:
        assert encode(parse_literal(format_value(value), max_chars=1 << 16)) == data


@pytest.mark.parametrize("piece", ["'\\", '"\\', "'''\\", "''", "'", "'''a", "r'\\", "'a\"", "9 ", "- ", "1-1j"])
def test_a_long_text_of_quotes_is_refused_in_linear_time(piece: str) -> None:
    start = time.process_time()
    with pytest.raises(LiteralError):
        parse_literal("1" + piece * 30_000, max_chars=1 << 20)
    assert time.process_time() - start < 2


@given(VALUES)
@settings(max_examples=100, deadline=None)
def test_equal_values_print_the_same(value: Any) -> None:
    data = canonical(value)
    if data is not None:
        assert format_value(decode(data)) == format_value(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-1", -1),
        ("+1", 1),
        (" (1,) ", (1,)),
        ("()", ()),
        ("1_000", 1000),
        ("0x1F", 31),
        ("'a' \"b\"", "ab"),
        ("b'\\x00'", b"\x00"),
        ("r'\\d'", r"\d"),
        ("'[[[('", "[[[("),
        ("{'a': [1, (2.5, None)], True: False}", {"a": [1, (2.5, None)], True: False}),
        ("{1, 2}", {1, 2}),
        ("set()", set()),
        ("set([1])", {1}),
        ("frozenset({1})", frozenset({1})),
        ("1e999", math.inf),
        ("-inf", -math.inf),
        ("float('-inf')", -math.inf),
        ("1-2j", 1 - 2j),
        ("[1,\n 2]", [1, 2]),
    ],
)
def test_literals_are_read(text: str, value: Any) -> None:
    assert encode(parse_literal(text, max_chars=100)) == encode(value)


def test_nan_is_one_value() -> None:
    assert encode(parse_literal("nan", max_chars=9)) == encode(parse_literal("float('nan')", max_chars=19))


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "1+1", "--1", "-'a'", "~1", "not 1", "1 if 1 else 2", "...", "1;2", "1\n2", "0777", "[1", "'a"),
        *("f'{1}'", "f(1)", "__import__('os')", "(x:=1)", "lambda: 1", "'a'.join([])", "1 .real", "[1][0]", "#", "1#"),
        *("{**{}}", "[*[1]]", "{[1]: 2}", "{[1]}", "set(1)", "set([1],)" + "x", "set(*[[1]])", "float('1')", "float()"),
        *("complex(1)", "complex(real=1, imag=2)", "frozenset(1, 2)", "[x for x in [1]]", "1 2", "\0", "'\ud800'"),
        *("-" * 90, "[" * 66 + "]" * 66, "(" * 90 + ")" * 90, "{" * 80, "1.5 " * 20 + "@", "1+" * 40 + "1"),
    ],
)
def test_everything_else_is_refused(text: str) -> None:
    with pytest.raises(LiteralError):
        parse_literal(text, max_chars=200)


def test_length_is_checked_before_anything_is_parsed() -> None:
    with pytest.raises(LiteralError, match="at most 512"):
        parse_literal("-" * 65536, max_chars=512)
    with pytest.raises(LiteralError):
        parse_literal("-" * 65536, max_chars=1 << 17)


def test_ints_beyond_pythons_digit_limit_are_read_and_printed() -> None:
    value = 10**5000
    assert parse_literal("1" + "0" * 5000, max_chars=6000) == value
    assert parse_literal("-1" + "0" * 5000, max_chars=6000) == -value
    assert parse_literal(format_value([value]), max_chars=6000) == [value]


@given(st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_is_a_value_or_a_literal_error(text: str) -> None:
    try:
        value = parse_literal(text, max_chars=50)
    except LiteralError:
        return
    encode(value)


def test_printing_is_what_python_prints_where_that_is_a_literal() -> None:
    for value in ([1, "a", None], (1,), (), {"k": 2.5}, b"x", {3}, frozenset(), frozenset({1}), "it's", 1 + 2j):
        assert format_value(value) == repr(value)
    assert format_value([math.nan, math.inf]) == "[float('nan'), float('inf')]"
    assert format_value({"b": 1, "a": 2}) == "{'a': 2, 'b': 1}"


def test_reading_leaves_the_warning_filters_alone() -> None:
    before = list(warnings.filters)
    threads = [
        threading.Thread(target=lambda: [parse_literal("'\\d'", max_chars=9) for _ in range(50)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(warnings.filters) == before


@given(st.text(alphabet="0123456789-,  ''ab()[]", max_size=9))
@settings(max_examples=2000)
def test_the_fast_way_reads_what_the_full_one_reads(text: str) -> None:
    def read(reader: Any) -> Any:
        try:
            return reader(text.strip())
        except LiteralError:
            return LiteralError

    fast, full = read(values._read), read(values._read_any)
    assert fast == full
    assert type(fast) is type(full)
