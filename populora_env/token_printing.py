"""Tokens as text and back: programs as real Python, literals as values, hints as words.

Owns the spelling. Programs come out in the normal form of `source.normalise`; the type of the argument is an
annotation, so that the text tells all that the tokens do, and no two programs look alike. Nothing here runs a program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from populora_env.token_grammar import (
    CHUNK,
    COMPARISONS,
    DIGITS,
    HINTS,
    LETTERS,
    OPERATORS,
    TAKES,
    VARIABLES,
    Kind,
    Slot,
    Token,
    holes_in_comprehension,
)
from populora_env.values import LiteralError, parse_literal

Tokens = tuple[int, ...]
Value = int | str | list[int]

_NAMES = ("x", "y", "z")
_ALPHABET: Final = "abc"
_ATOMS: Final = (
    {token: str(digit) for digit, token in enumerate(DIGITS)}
    | {token: repr(char) for char, token in zip(_ALPHABET, LETTERS, strict=True)}
    | dict(zip(VARIABLES, _NAMES, strict=True))
    | {int(Token.ITEM): "i"}
)
_OPERATOR = {(operator.takes, operator.token): operator for operator in OPERATORS}
_KIND_TAKEN = {token: kind for kind, token in TAKES.items()}

HINT_WORDS: Final = {token: Token(token).name.lower().replace("_", " ") for token in HINTS} | {DIGITS[0]: ""}
"""Texts of the hints."""
_HINT_TOKENS = {word: token for token, word in HINT_WORDS.items()}


@dataclass(frozen=True, slots=True)
class Program:
    """A program of the grammar."""

    tokens: Tokens
    text: str
    takes: Kind
    gives: Kind


def print_program(tokens: Sequence[int]) -> Program:
    """Return the program that a finished derivation stands for; its first token is the type of the argument."""
    reader = iter(tokens)
    takes = kind = _KIND_TAKEN[next(reader)]
    lines = [f"def f(x: {takes}):"]
    for place, name in enumerate(_NAMES):
        returns = next(reader) == Token.RETURN
        operator = _OPERATOR[kind, next(reader)]
        operands = [_operand(hole, reader, name) for hole in operator.holes]
        expression = operator.template.format(*operands, v=name)
        kind = operator.gives
        if returns:
            lines.append(f"    return {expression}")
            break
        lines.append(f"    {_NAMES[place + 1]} = {expression}")
    return Program(tokens=tuple(tokens), text="\n".join(lines), takes=takes, gives=kind)


def _operand(hole: Slot, tokens: Iterator[int], newest: str) -> str:
    token = next(tokens)
    if hole is Slot.ITEM_OPERATOR:
        operator = _OPERATOR[Kind.INT, token]
        inner = [_operand(each, tokens, "i") for each in holes_in_comprehension(operator)]
        return operator.template.format(*inner, v="i")
    if hole is Slot.COMPARE:
        return COMPARISONS[token].format(_operand(Slot.INT, tokens, newest), v=newest)
    if hole is Slot.ITEM_COMPARE:
        return COMPARISONS[token].format(_operand(Slot.ITEM_INT, tokens, "i"), v="i")
    return _ATOMS[token]


def argument_text(tokens: Sequence[int], kind: Kind) -> str:
    """Return the literal of the argument tuple that holds the value of these tokens."""
    return f"({literal_value(tokens, kind)!r},)"


def literal_value(tokens: Sequence[int], kind: Kind) -> Value:
    """Return the value that a finished literal stands for."""
    reader = iter(tokens)
    if kind is Kind.INT:
        return _number(next(reader), reader)
    if kind is Kind.STR:
        return "".join(_ALPHABET[LETTERS.index(next(reader))] for _ in _places(reader))
    return [_number(next(reader), reader) for _ in _places(reader)]


def _places(reader: Iterator[int]) -> Iterator[None]:
    """Yield once for each item of a sequence, while its items are read from the same tokens."""
    while True:
        token = next(reader)
        yield from [None] * (CHUNK if token == Token.MORE else DIGITS.index(token))
        if token != Token.MORE:
            return


def _number(token: int, reader: Iterator[int]) -> int:
    if token == Token.NEGATIVE:
        return -_number(next(reader), reader)
    text = ""
    while token == Token.MORE:
        text += _ATOMS[next(reader)]
        token = next(reader)
    return int(text + _ATOMS[token])


@lru_cache(maxsize=16384)
def read_literal(text: str) -> tuple[Kind, Tokens] | None:
    """Return kind and tokens of a value given as text; None for one that the grammar can't write."""
    try:
        value = parse_literal(text, max_chars=len(text))
    except LiteralError:
        return None
    if type(value) is int:
        return Kind.INT, tuple(_number_tokens(value))
    if type(value) is str and set(value) <= set(_ALPHABET):
        return Kind.STR, tuple(_sequence_tokens([[LETTERS[_ALPHABET.index(char)]] for char in value]))
    if type(value) is list and all(type(item) is int for item in value):
        return Kind.LIST, tuple(_sequence_tokens([_number_tokens(item) for item in value]))
    return None


@lru_cache(maxsize=16384)
def read_argument(text: str) -> tuple[Kind, Tokens] | None:
    """Return kind and tokens of the one value in an argument tuple given as text; None as in `read_literal`."""
    return read_literal(text[1:-2]) if text.startswith("(") and text.endswith(",)") else None


def read_hint(text: str) -> int:
    """Return the token of a hint given as text; that of no hint where it is none of the grammar's words."""
    return _HINT_TOKENS.get(text, DIGITS[0])


def _number_tokens(value: int) -> list[int]:
    *first, last = [DIGITS[int(digit)] for digit in str(abs(value))]
    sign = [int(Token.NEGATIVE)] if value < 0 else []
    return sign + [token for digit in first for token in (int(Token.MORE), digit)] + [last]


def _sequence_tokens(items: list[list[int]]) -> list[int]:
    tokens: list[int] = []
    while len(items) > CHUNK:
        tokens += [int(Token.MORE), *(token for item in items[:CHUNK] for token in item)]
        items = items[CHUNK:]
    return [*tokens, DIGITS[len(items)], *(token for item in items for token in item)]
