"""What MBPP+ needs beyond its file: types that JSON lost, and problems that have more than one right answer.

Facts about the data, as EvalPlus 0.3.1 has them (`mbpp_deserialize_inputs`, `_special_oracle`), so that scores can be
compared with published ones. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from populora_env.values import Value

_TUPLES = frozenset(
    (2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726, 740, 744, 809)
)
"""All arguments are tuples."""
_LISTS_OF_TUPLES = frozenset((63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780))
"""All arguments are lists of tuples."""
_FIRST_LIST_OF_TUPLES = frozenset((75, 413, 444, 753))
_FIRST_TUPLE = frozenset((250, 307, 405, 446, 617, 720, 763, 808))
_SECOND_TUPLE = frozenset((106, 750))
_TUPLES_OF_TUPLES = frozenset((259, 401, 445))
_TUPLES_ALL_THE_WAY = frozenset((580, 615, 791))


def restore(number: int, arguments: Sequence[Any]) -> list[Value]:
    """Return the arguments of a call of problem `Mbpp/number` in the types they had before they went through JSON."""
    given = list(arguments)
    if number in _TUPLES:
        return [tuple(argument) for argument in given]
    if number in _LISTS_OF_TUPLES:
        return [_tuples(argument) for argument in given]
    if number in _TUPLES_OF_TUPLES:
        return [tuple(_tuples(argument)) for argument in given]
    if number in _TUPLES_ALL_THE_WAY:
        return [_deep(argument) for argument in given]
    if number in _FIRST_LIST_OF_TUPLES:
        return [_tuples(given[0]), *given[1:]]
    if number in _FIRST_TUPLE:
        return [tuple(given[0]), *given[1:]]
    if number in _SECOND_TUPLE:
        return [given[0], tuple(given[1]), *given[2:]]
    single = _SINGLE.get(number)
    return given if single is None else single(given)


def _tuples(items: Sequence[Any]) -> list[Value]:
    return [tuple(item) for item in items]


def _deep(value: Any) -> Value:
    return tuple(map(_deep, value)) if isinstance(value, list) else value


_SINGLE: Final[Mapping[int, Callable[[list[Any]], list[Value]]]] = {
    115: lambda given: [[set(item) if isinstance(item, list) and item else {} for item in given[0]]],
    124: lambda given: [float(given[0]), complex(given[1])],
    252: lambda given: [complex(given[0])],
    278: lambda given: [tuple(tuple(item) if isinstance(item, list) else item for item in given[0])],
    722: lambda given: [{key: tuple(value) for key, value in given[0].items()}, *given[1:]],
}

FINDS: Final = frozenset((737, 787, 794))
"""`check_str`, `text_match_three`, `text_starta_endb`: all that counts is that something was found."""


def _same_set(_: tuple[Value, ...], value: Value, expected: Value) -> bool:
    return set(value) == set(expected)


def _equal_or(other: Callable[..., Value]) -> Callable[[tuple[Value, ...], Value, Value], bool]:
    """Return the oracle that takes the canonical result, or that of another reading of the problem."""
    return lambda arguments, value, expected: bool(value == expected or value == other(*arguments))


def _digit_distance(one: int, other: int) -> int:
    """Return the sum of differences of digits, the shorter number filled with zeros in front."""
    digits = [str(one), str(other)]
    width = max(map(len, digits))
    left, right = (text.zfill(width) for text in digits)
    return sum(abs(int(a) - int(b)) for a, b in zip(left, right, strict=True))


def _surface_area(edge: float, height: float) -> int:
    """Return the surface of a square pyramid whose height is measured to the apex, rounded."""
    slant = math.sqrt((edge / 2) ** 2 + height**2)
    return round(edge**2 + 2 * edge * slant)


ORACLES: Final[Mapping[int, Callable[[tuple[Value, ...], Value, Value], bool]]] = {
    **dict.fromkeys((2, 7, 111, 140, 232, 249, 579, 769), _same_set),
    558: _equal_or(_digit_distance),
    581: _equal_or(_surface_area),
}
"""By number."""
