"""The values that our programs work on: small ones, which a player can hold in mind.

Owns how arguments are drawn, and which values a step may give.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

import numpy as np

from populora_env.generator_families import Family
from populora_env.generator_steps import BOOL, DICT, INT, LIST, STR, TUPLE
from populora_env.values import format_value

MAX_INT: Final = 99
"""Largest magnitude of a number."""
_MAX_STR, _MAX_LIST, _MAX_TUPLE, _MAX_DICT = 8, 5, 3, 3
_LETTERS: Final = "abcdefgh"

ARGUMENTS: Final = {
    Family.ARITHMETIC: (INT,),
    Family.TEXT: (STR, STR, STR, INT),
    Family.LISTS: (LIST, LIST, LIST, INT, STR),
    Family.RECORDS: (TUPLE, TUPLE, DICT, DICT, INT, STR, LIST),
    Family.BRANCHES: (INT, INT, STR, LIST, TUPLE, DICT, BOOL),
    Family.COMPREHENSIONS: (LIST, LIST, STR, STR, TUPLE, DICT, INT),
    Family.LOOPS: (LIST, LIST, STR, STR, INT, INT, TUPLE, DICT),
    Family.HELPERS: (INT, STR, LIST),
}
"""Kinds of the arguments of each family's programs."""

_T = TypeVar("_T")


def pick(rng: np.random.Generator, options: Sequence[_T]) -> _T:
    """Draw one of the options uniformly."""
    return options[int(rng.integers(len(options)))]


def argument(rng: np.random.Generator, kind: str) -> Any:
    """Draw an argument of a kind."""
    if kind == INT:
        return int(rng.integers(-9, 21))
    if kind == STR:
        return "".join([_LETTERS[place] for place in rng.integers(5, size=int(rng.integers(2, 6)))])
    if kind == LIST:
        return rng.integers(-2, 10, size=int(rng.integers(2, 5))).tolist()
    if kind == TUPLE:
        return tuple(rng.integers(-2, 10, size=2).tolist())
    if kind == DICT:
        keys = sorted(rng.permutation(4)[: int(rng.integers(1, 4))])  # literals of dicts are in order
        return {_LETTERS[key]: int(rng.integers(0, 10)) for key in keys}
    return bool(rng.random() < 0.5)


def constants(rng: np.random.Generator, fields: frozenset[str]) -> dict[str, object]:
    """Draw the constants that a template asks for; `generator_steps.Step` lists their ranges."""
    made: dict[str, object] = {}
    for field in sorted(fields):
        if field in "kl":
            made[field] = int(rng.integers(1, 10))
        elif field == "m":
            made[field] = int(rng.integers(2, 4))
        elif field == "n":
            made[field] = int(rng.integers(2, 6))
        elif field == "s":
            made[field] = "".join([_LETTERS[place] for place in rng.integers(8, size=int(rng.integers(1, 3)))])
        else:
            made[field] = _LETTERS[int(rng.integers(4))]
    return made


def fits(value: Any) -> bool:
    """Return whether a value is of a known kind and small."""
    kind = type(value)
    if kind is int:
        return bool(abs(value) <= MAX_INT)
    if kind is str:
        return len(value) <= _MAX_STR
    if kind is list:
        return len(value) <= _MAX_LIST and _all_small(value)
    if kind is tuple:
        return len(value) <= _MAX_TUPLE and _all_small(value)
    if kind is dict:
        return len(value) <= _MAX_DICT and _all_small(value.values()) and all(map(fits, value))
    return isinstance(value, bool)


def literal(value: Any) -> str:
    """Return a value's literal as the verifier writes it: the keys of a dict in order."""
    return format_value(value) if type(value) is dict else repr(value)


def _all_small(values: Iterable[Any]) -> bool:
    return all(type(item) is int and -MAX_INT <= item <= MAX_INT for item in values)
