"""The steps of our programs that are one expression, family by family.

Owns the table. Operands are small and operators few, so that a single step can be learned to near certainty by a model
of a million parameters, while many in a row cannot be done in one breath.
"""

from __future__ import annotations

from typing import Final

from populora_env.generator_families import Family
from populora_env.generator_steps import BOOL, DICT, INT, LIST, STR, TUPLE, Step

_Row = tuple[str, str, str, str, int] | tuple[str, str, str, str, int, str]
"""Tag, template, kind taken, kind given, weight, and the kind of `{y}`."""

_ARITHMETIC: Final[tuple[_Row, ...]] = (
    ("add", "{x} + {k}", INT, INT, 4),
    ("subtract", "{x} - {k}", INT, INT, 4),
    ("subtract from", "{k} - {x}", INT, INT, 2),
    ("times", "{x} * {m}", INT, INT, 2),
    ("divide", "{x} // {m}", INT, INT, 1),
    ("modulo", "{x} % {n}", INT, INT, 1),
    ("negate", "-{x}", INT, INT, 1),
    ("absolute", "abs({x})", INT, INT, 1),
    ("at most", "min({x}, {k})", INT, INT, 1),
    ("at least", "max({x}, {k})", INT, INT, 1),
    ("sum of two", "{x} + {y}", INT, INT, 3, INT),
    ("difference", "{y} - {x}", INT, INT, 2, INT),
)
_TEXT: Final[tuple[_Row, ...]] = (
    ("digits", "str({x})", INT, STR, 1),
    ("letters", "'{c}' * ({x} % {n})", INT, STR, 1),
    ("reverse", "{x}[::-1]", STR, STR, 3),
    ("upper", "{x}.upper()", STR, STR, 2),
    ("swap case", "{x}.swapcase()", STR, STR, 1),
    ("title", "{x}.title()", STR, STR, 1),
    ("rest", "{x}[{m}:]", STR, STR, 2),
    ("start", "{x}[:{n}]", STR, STR, 2),
    ("every second", "{x}[::2]", STR, STR, 1),
    ("drop last", "{x}[:-1]", STR, STR, 2),
    ("append text", "{x} + '{s}'", STR, STR, 3),
    ("prepend text", "'{s}' + {x}", STR, STR, 3),
    ("double", "{x} * 2", STR, STR, 2),
    ("turn", "{x}[1:] + {x}[0]", STR, STR, 2),
    ("replace", "{x}.replace('{c}', '{s}')", STR, STR, 3),
    ("strip", "{x}.strip('{c}')", STR, STR, 1),
    ("fill", "{x}.ljust(6, '{c}')", STR, STR, 1),
    ("join two", "{x} + {y}", STR, STR, 2, STR),
    ("length", "len({x})", STR, INT, 1),
    ("count letter", "{x}.count('{c}')", STR, INT, 1),
    ("find", "{x}.find('{c}')", STR, INT, 1),
)
_LISTS: Final[tuple[_Row, ...]] = (
    ("pair", "[{x}, {k}]", INT, LIST, 2),
    ("two", "[{x}, {y}]", INT, LIST, 2, INT),
    ("repeat", "[{x}] * {m}", INT, LIST, 1),
    ("range", "list(range({x} % {n}))", INT, LIST, 1),
    ("reverse", "{x}[::-1]", LIST, LIST, 3),
    ("sort", "sorted({x})", LIST, LIST, 3),
    ("sort down", "sorted({x})[::-1]", LIST, LIST, 1),
    ("rest", "{x}[1:]", LIST, LIST, 2),
    ("start", "{x}[:{m}]", LIST, LIST, 1),
    ("drop last", "{x}[:-1]", LIST, LIST, 1),
    ("append", "{x} + [{k}]", LIST, LIST, 3),
    ("append value", "{x} + [{y}]", LIST, LIST, 2, INT),
    ("prepend", "[{k}] + {x}", LIST, LIST, 3),
    ("turn", "{x}[1:] + {x}[:1]", LIST, LIST, 2),
    ("extend", "{x} + {y}", LIST, LIST, 2, LIST),
    ("length", "len({x})", LIST, INT, 1),
    ("add two", "sum({x}[:2])", LIST, INT, 1),
    ("largest", "max({x})", LIST, INT, 1),
    ("smallest", "min({x})", LIST, INT, 1),
    ("first", "{x}[0]", LIST, INT, 1),
    ("last", "{x}[-1]", LIST, INT, 1),
    ("count", "{x}.count({k})", LIST, INT, 1),
    ("index", "{x}.index({k})", LIST, INT, 1),
    ("positions", "[{x}.find('{c}'), {x}.find('{d}')]", STR, LIST, 2),
    ("sort letters", "''.join(sorted({x}))", STR, STR, 2),
)
_RECORDS: Final[tuple[_Row, ...]] = (
    ("tuple", "({x}, {k})", INT, TUPLE, 2),
    ("tuple of two", "({x}, {y})", INT, TUPLE, 2, INT),
    ("divide with rest", "divmod({x}, {n})", INT, TUPLE, 1),
    ("ends", "({x}[0], {x}[-1])", LIST, TUPLE, 2),
    ("first", "{x}[0]", TUPLE, INT, 1),
    ("last", "{x}[-1]", TUPLE, INT, 1),
    ("largest", "max({x})", TUPLE, INT, 1),
    ("reverse", "{x}[::-1]", TUPLE, TUPLE, 2),
    ("append", "{x} + ({k},)", TUPLE, TUPLE, 2),
    ("prepend", "({k},) + {x}", TUPLE, TUPLE, 2),
    ("sort", "sorted({x})", TUPLE, LIST, 2),
    ("list", "list({x})", TUPLE, LIST, 1),
    ("dict", "{{'{c}': {x}}}", INT, DICT, 2),
    ("dict of two", "{{'{c}': {x}, '{d}': {k}}}", INT, DICT, 2),
    ("key", "{{{x}: {k}}}", STR, DICT, 2),
    ("pair up", "dict(zip({x}, {y}))", STR, DICT, 2, LIST),
    ("put", "{x} | {{'{c}': {k}}}", DICT, DICT, 3),
    ("put value", "{x} | {{'{c}': {y}}}", DICT, DICT, 2, INT),
    ("get", "{x}.get('{c}', {k})", DICT, INT, 2),
    ("keys", "''.join({x})", DICT, STR, 2),
    ("values", "list({x}.values())", DICT, LIST, 2),
    ("sort values", "sorted({x}.values())", DICT, LIST, 2),
    ("length", "len({x})", DICT, INT, 1),
)
_BRANCHES: Final[tuple[_Row, ...]] = (
    ("above", "{x} > {k}", INT, BOOL, 2),
    ("below", "{x} < {k}", INT, BOOL, 2),
    ("even", "{x} % 2 == 0", INT, BOOL, 2),
    ("above other", "{x} > {y}", INT, BOOL, 1, INT),
    ("has letter", "'{c}' in {x}", STR, BOOL, 2),
    ("has", "{k} in {x}", LIST, BOOL, 2),
    ("first above", "{x}[0] > {k}", LIST, BOOL, 1),
    ("has key", "'{c}' in {x}", DICT, BOOL, 2),
    ("choose", "{x} if {x} > {k} else {y}", INT, INT, 2, INT),
    ("larger", "{x} if {x} > {y} else {y}", INT, INT, 2, INT),
    ("not", "not {x}", BOOL, BOOL, 1),
    ("select", "{k} if {x} else {l}", BOOL, INT, 2),
    ("select value", "{y} if {x} else {k}", BOOL, INT, 6, INT),
    ("select text", "{y} if {x} else '{s}'", BOOL, STR, 6, STR),
    ("select list", "{y} if {x} else [{k}]", BOOL, LIST, 6, LIST),
)
_COMPREHENSIONS: Final[tuple[_Row, ...]] = (
    ("map add", "[i + {k} for i in {x}]", LIST, LIST, 3),
    ("map subtract", "[i - {k} for i in {x}]", LIST, LIST, 3),
    ("map subtract from", "[{k} - i for i in {x}]", LIST, LIST, 1),
    ("map times", "[i * {m} for i in {x}]", LIST, LIST, 2),
    ("map modulo", "[i % {n} for i in {x}]", LIST, LIST, 1),
    ("map value", "[i + {y} for i in {x}]", LIST, LIST, 2, INT),
    ("filter", "[i for i in {x} if i > {k}]", LIST, LIST, 3),
    ("filter below", "[i for i in {x} if i < {k}]", LIST, LIST, 2),
    ("filter even", "[i for i in {x} if i % 2 == 0]", LIST, LIST, 2),
    ("steps", "[{x} + i for i in range({n})]", INT, LIST, 2),
    ("map add", "[i + {k} for i in {x}]", TUPLE, LIST, 2),
    ("map times", "[i * {m} for i in {x}]", TUPLE, LIST, 2),
    ("drop letter", "''.join([i for i in {x} if i != '{c}'])", STR, STR, 3),
    ("double letters", "''.join([i * 2 for i in {x}])", STR, STR, 2),
    ("spread", "''.join([i + '{c}' for i in {x}])", STR, STR, 2),
    ("counts", "{{i: {x}.count(i) for i in {x}}}", STR, DICT, 2),
    ("values add", "{{i: {x}[i] + {k} for i in {x}}}", DICT, DICT, 3),
    ("values times", "{{i: {x}[i] * {m} for i in {x}}}", DICT, DICT, 2),
    ("take values", "[{x}[i] for i in {x}]", DICT, LIST, 2),
)


def _steps(family: Family, rows: tuple[_Row, ...]) -> tuple[Step, ...]:
    return tuple(
        Step(
            tag=row[0],
            family=family,
            template=row[1],
            takes=row[2],
            gives=row[3],
            weight=row[4],
            other=row[5] if len(row) == 6 else "",
        )
        for row in rows
    )


EXPRESSIONS: Final = (
    *_steps(Family.ARITHMETIC, _ARITHMETIC),
    *_steps(Family.TEXT, _TEXT),
    *_steps(Family.LISTS, _LISTS),
    *_steps(Family.RECORDS, _RECORDS),
    *_steps(Family.BRANCHES, _BRANCHES),
    *_steps(Family.COMPREHENSIONS, _COMPREHENSIONS),
)
"""Every step that is one expression."""
