"""Canonical bytes: what is a value, when two are equal, and what is refused."""

from __future__ import annotations

import math
import struct
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from value_strategies import VALUES, canonical

from populora_env.encoding import DecodeError, EncodeError, Limits, TooLargeError, decode, encode

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


@given(VALUES)
@settings(max_examples=150, deadline=None)
def test_decoding_gives_the_value_back(value: Any) -> None:
    data = canonical(value)
    if data is not None:
        again = decode(data)
        assert type(again) is type(value)
        assert encode(again) == data


@given(st.lists(st.integers() | st.text(max_size=4), max_size=8, unique=True), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_order_of_sets_and_dicts_is_ignored(items: list[Any], random: Any) -> None:
    shuffled = list(items)
    random.shuffle(shuffled)
    assert encode(set(items)) == encode(set(shuffled))
    assert encode(dict.fromkeys(items)) == encode(dict.fromkeys(shuffled))


@given(st.binary(max_size=40) | st.text("ltuezdnrcsb0123456789:;-if", max_size=30).map(str.encode))
@settings(max_examples=500, deadline=None)
def test_any_bytes_are_a_canonical_value_or_a_decode_error(data: bytes) -> None:
    try:
        value = decode(data)
    except DecodeError:
        return
    assert encode(value) == data


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (None, b"n"),
        (True, b"t"),
        (0, b"i0;"),
        (-255, b"i-ff;"),
        (1.0, b"r\x3f\xf0" + bytes(6)),
        ("é", b"s2:\xc3\xa9"),
        (b"ab", b"b2:ab"),
        ([1], b"l1:i1;"),
        ((), b"u0:"),
        ({2, 1}, b"e2:i1;i2;"),
        (frozenset(), b"z0:"),
        ({"b": 1, "a": None}, b"d2:s1:ans1:bi1;"),
    ],
)
def test_the_layout_is_fixed(value: Any, data: bytes) -> None:
    assert encode(value) == data


def test_equality_is_that_of_type_and_bits() -> None:
    different = [1, True, 1.0, 1 + 0j, "1", b"1", [1], (1,), {1}, frozenset({1}), {1: 1}, 0.0, -0.0]
    assert len({encode(value) for value in different}) == len(different)
    odd_nan = struct.unpack(">d", b"\x7f\xf8\0\0\0\0\0\x01")[0]
    assert encode(math.nan) == encode(-math.nan) == encode(odd_nan)


class LyingInt(int):
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        """Return that they are equal."""
        return True

    __hash__ = int.__hash__


@pytest.mark.parametrize("value", [object(), LyingInt(7), [LyingInt(7)], {1: int}, bytearray(b"x"), range(3), ...])
def test_only_exact_builtin_types_are_values(value: Any) -> None:
    with pytest.raises(EncodeError):
        encode(value)


def test_two_nan_keys_are_no_value() -> None:
    with pytest.raises(EncodeError):
        encode({float("nan"): 1, float("nan"): 2})


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_nesting_is_bounded() -> None:
    assert decode(encode(nested(64))) == nested(64)
    with pytest.raises(EncodeError):
        encode(nested(65))
    with pytest.raises(DecodeError):
        decode(b"l1:" * 65 + b"n")


def test_a_value_with_itself_inside_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(EncodeError):
        encode(loop)


def test_shared_structure_is_counted_as_often_as_it_is_printed() -> None:
    value: Any = [0] * 10
    for _ in range(12):
        value = [value] * 10
    start = time.perf_counter()
    with pytest.raises(EncodeError) as caught:
        encode(value)
    assert type(caught.value) is EncodeError
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize(
    "value",
    ["a" * 70_000, 1 << (1 << 20), b"a" * 66_000, ["a" * 40_000] * 2, "é" * 40_000],
    ids=["str", "int", "bytes", "list", "utf8"],
)
def test_size_is_bounded(value: Any) -> None:
    with pytest.raises(TooLargeError):
        encode(value)


def test_number_of_nodes_is_bounded() -> None:
    with pytest.raises(EncodeError):
        encode([None] * 20_000)
    assert len(decode(encode([None] * 19_999))) == 19_999
    with pytest.raises(EncodeError):
        encode([1, 2], limits=Limits(max_nodes=2))


@pytest.mark.parametrize(
    "data",
    [
        *(
            b"",
            b"x",
            b"nn",
            b"i;",
            b"i01;",
            b"i-0;",
            b"iA;",
            b"i1",
            b"s3:ab",
            b"s01:a",
            b"s1:\xff",
            b"b-1:",
            b"l:",
            b"l2:n",
        ),
        *(
            b"e2:i2;i1;",
            b"e2:i1;i1;",
            b"d2:i1;ni1;n",
            b"e1:l0:",
            b"d1:l0:n",
            b"r\x7f\xf8\0\0\0\0\0\1",
            b"r",
            b"l99999999:n",
        ),
        b"e2:i1;t",
    ],
)
def test_bytes_that_are_not_canonical_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(data)
