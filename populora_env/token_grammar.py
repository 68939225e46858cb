"""The typed grammar of the token face: 57 tokens for straight-line programs over ints, lists of ints and strings.

A program takes one argument `x` and is a chain of up to three statements, each one operator applied to the newest
variable (so that every statement depends on the argument) and to constants or earlier variables. All operators are
total: nothing divides by zero or indexes past an end. Values are literals of ints, lists and strings.

Owns the tokens and operators. What may follow what is in `token_rules`, a text under way in `token_derivation`,
printing in `token_printing`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum, auto
from typing import Final


class Kind(StrEnum):
    """Type of a value."""

    INT = "int"
    LIST = "list"
    STR = "str"


class Token(IntEnum):
    """The actions, all positive but `NOOP`, which no derivation holds. Names of operators serve as hints."""

    NOOP = 0
    DIGIT_0 = 1
    DIGIT_1 = 2
    DIGIT_2 = 3
    DIGIT_3 = 4
    DIGIT_4 = 5
    DIGIT_5 = 6
    DIGIT_6 = 7
    DIGIT_7 = 8
    DIGIT_8 = 9
    DIGIT_9 = 10
    LETTER_A = auto()
    LETTER_B = auto()
    LETTER_C = auto()
    VARIABLE_X = auto()
    VARIABLE_Y = auto()
    VARIABLE_Z = auto()
    ITEM = auto()
    TAKES_INT = auto()
    TAKES_LIST = auto()
    TAKES_STR = auto()
    LET = auto()
    RETURN = auto()
    NEGATIVE = auto()
    MORE = auto()
    ADD = auto()
    SUBTRACT = auto()
    SUBTRACT_FROM = auto()
    TIMES = auto()
    DIVIDE = auto()
    MODULO = auto()
    AT_MOST = auto()
    AT_LEAST = auto()
    ABSOLUTE = auto()
    CHOOSE = auto()
    PAIR = auto()
    RANGE = auto()
    REPEAT = auto()
    REVERSE = auto()
    REST = auto()
    DROP_LAST = auto()
    JOIN = auto()
    LENGTH = auto()
    COUNT = auto()
    SORT = auto()
    APPEND = auto()
    MAP = auto()
    FILTER = auto()
    SUM = auto()
    LARGEST = auto()
    FIRST = auto()
    REPLACE = auto()
    FIND = auto()
    POSITIONS = auto()
    GREATER = auto()
    LESS = auto()
    EQUAL = auto()


N_TOKENS: Final = len(Token)
"""Actions, `NOOP` included."""

DIGITS: Final = tuple(range(Token.DIGIT_0, Token.DIGIT_9 + 1))
LETTERS: Final = (int(Token.LETTER_A), int(Token.LETTER_B), int(Token.LETTER_C))
VARIABLES: Final = (int(Token.VARIABLE_X), int(Token.VARIABLE_Y), int(Token.VARIABLE_Z))
"""Tokens of the variables, in the order in which they are defined."""
TAKES: Final = {Kind.INT: int(Token.TAKES_INT), Kind.LIST: int(Token.TAKES_LIST), Kind.STR: int(Token.TAKES_STR)}
"""First token of a program: the type of its argument."""
LETS: Final = len(VARIABLES) - 1
"""Most statements before the `return`."""
CHUNK: Final = 3
"""A sequence literal begins with its length 0..3, or with `MORE`, three items and the literal of what is left, which
is not empty."""


class Slot(StrEnum):
    """What may stand at a place: the part of a nonterminal that a player needs to know, besides the mask."""

    PROGRAM = auto()
    STATEMENT = auto()
    """`LET` or `RETURN`."""
    OPERATOR = auto()
    INT = auto()
    """A digit or a variable that is an int."""
    POSITIVE = auto()
    """A digit from 1."""
    LETTER = auto()
    STR = auto()
    """A letter or a variable that is a string."""
    LIST = auto()
    """A variable that is a list."""
    COMPARE = auto()
    ITEM_INT = auto()
    """As `INT`, or the item of a comprehension."""
    ITEM_OPERATOR = auto()
    ITEM_COMPARE = auto()
    NUMBER = auto()
    """Begin of an int literal. What follows `NEGATIVE` or `MORE` has slots of its own: each int has one spelling."""
    AFTER_SIGN = auto()
    LEADING_DIGIT = auto()
    DIGIT = auto()
    DIGITS = auto()
    LIST_LITERAL = auto()
    STR_LITERAL = auto()
    REST_OF_LIST = auto()
    REST_OF_STR = auto()
    HINT = auto()


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator: what it makes of the newest variable `{v}` and of its operands `{0}`, `{1}`, ..."""

    token: int
    takes: Kind
    gives: Kind
    template: str
    holes: tuple[Slot, ...] = ()


_I, _L, _S = Kind.INT, Kind.LIST, Kind.STR
_T = Token

OPERATORS: Final = tuple(
    Operator(int(token), takes, gives, template, holes)
    for token, takes, gives, template, holes in (
        (_T.ADD, _I, _I, "{v} + {0}", (Slot.INT,)),
        (_T.SUBTRACT, _I, _I, "{v} - {0}", (Slot.INT,)),
        (_T.SUBTRACT_FROM, _I, _I, "{0} - {v}", (Slot.INT,)),
        (_T.TIMES, _I, _I, "{v} * {0}", (Slot.INT,)),
        (_T.DIVIDE, _I, _I, "{v} // {0}", (Slot.POSITIVE,)),
        (_T.MODULO, _I, _I, "{v} % {0}", (Slot.POSITIVE,)),
        (_T.AT_MOST, _I, _I, "min({v}, {0})", (Slot.INT,)),
        (_T.AT_LEAST, _I, _I, "max({v}, {0})", (Slot.INT,)),
        (_T.ABSOLUTE, _I, _I, "abs({v})", ()),
        (_T.CHOOSE, _I, _I, "{1} if {0} else {2}", (Slot.COMPARE, Slot.INT, Slot.INT)),
        (_T.PAIR, _I, _L, "[{v}, {0}]", (Slot.INT,)),
        (_T.RANGE, _I, _L, "list(range({v} % 6))", ()),
        (_T.REPEAT, _I, _S, "{0} * ({v} % 5)", (Slot.LETTER,)),
        (_T.REVERSE, _L, _L, "{v}[::-1]", ()),
        (_T.REST, _L, _L, "{v}[1:]", ()),
        (_T.DROP_LAST, _L, _L, "{v}[:-1]", ()),
        (_T.JOIN, _L, _L, "{v} + {0}", (Slot.LIST,)),
        (_T.SORT, _L, _L, "sorted({v})", ()),
        (_T.APPEND, _L, _L, "{v} + [{0}]", (Slot.INT,)),
        (_T.MAP, _L, _L, "[{0} for i in {v}]", (Slot.ITEM_OPERATOR,)),
        (_T.FILTER, _L, _L, "[i for i in {v} if {0}]", (Slot.ITEM_COMPARE,)),
        (_T.LENGTH, _L, _I, "len({v})", ()),
        (_T.COUNT, _L, _I, "{v}.count({0})", (Slot.INT,)),
        (_T.SUM, _L, _I, "sum({v})", ()),
        (_T.LARGEST, _L, _I, "max({v}, default=0)", ()),
        (_T.FIRST, _L, _I, "{v}[0] if {v} else 0", ()),
        (_T.REVERSE, _S, _S, "{v}[::-1]", ()),
        (_T.REST, _S, _S, "{v}[1:]", ()),
        (_T.DROP_LAST, _S, _S, "{v}[:-1]", ()),
        (_T.JOIN, _S, _S, "{v} + {0}", (Slot.STR,)),
        (_T.REPLACE, _S, _S, "{v}.replace({0}, {1})", (Slot.LETTER, Slot.STR)),
        (_T.LENGTH, _S, _I, "len({v})", ()),
        (_T.COUNT, _S, _I, "{v}.count({0})", (Slot.LETTER,)),
        (_T.FIND, _S, _I, "{v}.find({0})", (Slot.LETTER,)),
        (_T.POSITIONS, _S, _L, "[i for i, c in enumerate({v}) if c == {0}]", (Slot.LETTER,)),
    )
)

COMPARISONS: Final = {int(_T.GREATER): "{v} > {0}", int(_T.LESS): "{v} < {0}", int(_T.EQUAL): "{v} == {0}"}

HINTS: Final = tuple(sorted({operator.token for operator in OPERATORS}))
"""Tokens that an induction proposal may give as its hint; `DIGIT_0` gives none."""

_IN_COMPREHENSION = {Slot.INT: Slot.ITEM_INT, Slot.COMPARE: Slot.ITEM_COMPARE}


def holes_in_comprehension(operator: Operator) -> tuple[Slot, ...]:
    """Return the holes of an int operator whose `{v}` is the item of a comprehension."""
    return tuple(_IN_COMPREHENSION.get(hole, hole) for hole in operator.holes)
