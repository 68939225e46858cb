"""Values of benchmarks that canonical bytes do not hold as they are; the same in the child and in the verifier.

Owns two forms. A dict among arguments is spelt as its items, since what a program does may hang on their order, which
canonical bytes ignore. What is too large for a frame is replaced by a hash: two values have the same stand-in when
they are equal by ==, and to return one without the value takes its hash, so it is a guess like any other. Loaded into
the zygotes with numpy.
"""

from __future__ import annotations

import hashlib
import marshal
from collections.abc import Iterable
from typing import Any, Final

from populora_env.encoding import Limits, decode, encode

DICT: Final = b"populora: dict"
"""Begins a tuple of keys, each with its value after it, that stands for a dict; no benchmark has such bytes."""
_LARGE = Limits(max_bytes=1 << 24, max_nodes=1 << 20, max_depth=200)
_NO_REFERENCES = 2
"""Version of marshal's format in which equal values of exact builtin types give equal bytes."""
_PLAIN = frozenset((int, str, bytes, type(None)))
"""Types of parts that have one form only."""


def spelt(value: Any) -> Any:
    """Return a value with each dict in it spelt; what is no list, tuple or dict stays as it is."""
    kind = type(value)
    if kind is dict:
        return (DICT, *(part for key, item in value.items() for part in (key, spelt(item))))
    return kind(map(spelt, value)) if kind in (list, tuple) else value


def unspelt(value: Any) -> Any:
    """Return the value that `spelt` spelt."""
    kind = type(value)
    if kind is tuple and value and value[0] == DICT:
        return dict(zip(value[1::2], map(unspelt, value[2::2]), strict=True))
    return kind(map(unspelt, value)) if kind in (list, tuple) else value


def encode_arguments(arguments: Iterable[Any]) -> bytes:
    """Return the bytes of an argument tuple; unlike canonical bytes they keep the order of dicts, and may be longer.

    Raises:
        EncodeError: They are no values, or too large.
    """
    return encode(spelt(tuple(arguments)), limits=_LARGE)


def decode_arguments(data: bytes) -> tuple[Any, ...]:
    """Return the argument tuple that `encode_arguments` encoded."""
    arguments: tuple[Any, ...] = decode(data, limits=_LARGE)
    return unspelt(arguments) if DICT in data else arguments


def stand_in(value: Any) -> Any:
    """Return what stands for a value of exact builtin types; one that has too many parts even for that, as it is."""
    try:
        data = marshal.dumps(_one_form(value), _NO_REFERENCES)
    except (ValueError, RecursionError):
        return value
    return b"sha256", hashlib.sha256(data).digest()


def _one_form(value: Any) -> Any:
    """Return a value in which equal parts are the same: whole numbers are ints, dicts and sets have an order."""
    kind = type(value)
    if kind is complex and not value.imag:
        value, kind = value.real, float
    if kind is bool or (kind is float and value.is_integer()):
        return int(value)
    if kind is dict:
        return DICT, _sorted((_one_form(key), _one_form(item)) for key, item in value.items())
    if kind is set or kind is frozenset:
        return b"set", _sorted(map(_one_form, value))
    if kind in (list, tuple) and not _PLAIN.issuperset(map(type, value)):
        return kind(map(_one_form, value))
    return value


def _sorted(items: Iterable[Any]) -> list[Any]:
    return sorted(items, key=lambda item: marshal.dumps(item, _NO_REFERENCES))


def stripped(text: str) -> str:
    """Return a text without spaces at the ends of its lines, and without empty lines at its ends."""
    return "\n".join(line.strip() for line in text.strip().split("\n"))
