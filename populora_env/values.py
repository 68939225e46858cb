"""Values as players write them: canonical literals, and a bounded reader of literals.

Owns how a value is written and read. What a value is, and when two are equal, `encoding` says; its names are
re-exported here. Owns no judgement. Nothing is ever evaluated: a literal is taken apart node by node.
"""

from __future__ import annotations

import ast
import json
import math
import re
from typing import Any

from populora_env.encoding import LIMITS, DecodeError, EncodeError, Limits, Value, decode, encode
from populora_env.source import quiet_parser

__all__ = [
    "LIMITS",
    "DecodeError",
    "EncodeError",
    "Limits",
    "LiteralError",
    "Value",
    "decode",
    "encode",
    "format_payload",
    "format_value",
    "parse_literal",
    "read_literal",
]


class LiteralError(ValueError):
    """The text is no literal of a value within the bounds."""


_DECIMAL_DIGITS = 4_000
"""Longer ints are written in hexadecimal: Python refuses to read or write more than 4300 decimal digits."""


def format_value(value: Value) -> str:
    """Return the canonical literal of a value: `parse_literal` reads it back, equal values print the same.

    Raises:
        EncodeError: Not a value within the limits.
    """
    encode(value)
    return _literal(value)


def format_payload(data: bytes) -> str:
    """Return the canonical literal of the value that `data` encodes.

    Raises:
        DecodeError: Not the canonical bytes of a value.
    """
    return _literal(decode(data))


def _literal(value: Value) -> str:
    kind = type(value)
    if kind is int:
        return hex(value) if value.bit_length() > _DECIMAL_DIGITS * 3 else str(value)
    if kind is float:
        return repr(value) if math.isfinite(value) else f"float('{value}')"
    if kind is complex:
        return _complex_literal(value)
    if kind is list:
        return f"[{', '.join(map(_literal, value))}]"
    if kind is tuple:
        return f"({_literal(value[0])},)" if len(value) == 1 else f"({', '.join(map(_literal, value))})"
    if kind is dict:
        return f"{{{', '.join(f'{_literal(key)}: {_literal(value[key])}' for key in sorted(value, key=encode))}}}"
    if kind is set or kind is frozenset:
        items = f"{{{', '.join(_literal(item) for item in sorted(value, key=encode))}}}" if value else ""
        return f"frozenset({items})" if kind is frozenset else items or "set()"
    return repr(value)


def _complex_literal(value: complex) -> str:
    """Return the usual form of a complex number, or a call where that form would not read back to the same bits."""
    usual = repr(value)
    if "n" not in usual and encode(_read(usual)) == encode(value):
        return usual
    return f"complex({_literal(value.real)}, {_literal(value.imag)})"


_QUOTED = r"(?:'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")"
_STRING = re.compile(rf"(?i:\b(?:b|u|r|br|rb))?{_QUOTED}", re.DOTALL)
_CLOSED = re.compile(rf"(?:[^'\"]|{_QUOTED})*+", re.DOTALL)
"""Text in which every quote is closed; tells in linear time, where a search for strings would try at every quote."""
_REST = re.compile(
    r"(?:[\s,:(){}\[\]]|[+-](?!\s*[+-])"
    r"|\b(?:0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9_]+)?[jJ]?)"
    r"|\.[0-9][0-9_]*(?:[eE][+-]?[0-9_]+)?[jJ]?"
    r"|\b(?:None|True|False|set|frozenset|float|complex|inf|nan)\b)*+"
)


def parse_literal(text: str, *, max_chars: int) -> Value:
    """Read a literal within bounds: length, characters and nesting are checked before Python's parser sees it.

    Beyond plain literals it takes what `repr` and `format_value` write: `set()`, `frozenset(...)`, `float('nan')`,
    `complex(a, b)`, `inf`, `nan`.

    Args:
        text: What a player wrote, or canonical text of ours.
        max_chars: Longest text that is read.

    Raises:
        LiteralError: Not a literal of a value within the limits.
    """
    return read_literal(text, max_chars=max_chars)[0]


def read_literal(text: str, *, max_chars: int) -> tuple[Value, bytes]:
    """Read a literal as `parse_literal` does; return the value and its canonical bytes.

    Raises:
        LiteralError: Not a literal of a value within the limits.
    """
    if len(text) > max_chars:
        raise LiteralError(f"literal has {len(text)} characters, at most {max_chars} are read")
    value = _read(text.strip())
    try:
        return value, encode(value)
    except EncodeError as error:
        raise LiteralError(str(error)) from error


_JSON = json.JSONDecoder()
_SIMPLE = re.compile(r"\(?((?:'[ !#-&(-\[\]-~]*'|[-0-9 ,\[\]])*)\)?")
"""Ints, strings without escapes and lists of these, perhaps in a tuple: with other quotes and brackets this is JSON."""


def _read(text: str) -> Value:
    simple = _SIMPLE.fullmatch(text)
    if simple is not None and (text[:1] == "(") == (text[-1:] == ")"):
        try:
            return _read_simple(simple[1], text)
        except (ValueError, RecursionError):
            pass
    return _read_any(text)


def _read_simple(body: str, text: str) -> Value:
    """Read what `_SIMPLE` matches with the parser of JSON: it is faster, and here reads nothing that Python does not.

    Raises:
        ValueError: It is no JSON; it may be a literal all the same.
    """
    boxed, comma = text.startswith("("), text.endswith(",)")
    written = (f"[{body[:-1] if comma else body}]" if boxed else body).replace("'", '"')
    value, end = _JSON.raw_decode(written)
    if end < len(written):
        raise ValueError("something follows")
    if not boxed:
        return value
    if not value or (len(value) == 1 and not comma):
        raise ValueError("not a tuple")
    return tuple(value)


def _read_any(text: str) -> Value:
    if re.fullmatch(rf"-?[0-9]{{{_DECIMAL_DIGITS},}}", text):
        return _read_decimal(text)
    if not _CLOSED.fullmatch(text):
        raise LiteralError("not a literal")
    bare = _STRING.sub(" ", text)
    if not _REST.fullmatch(bare) or _nesting(bare) > LIMITS.max_depth + 1:
        raise LiteralError("not a literal")
    try:
        with quiet_parser():
            tree = ast.parse(text, mode="eval")
        return _evaluate(tree.body)
    except (SyntaxError, ValueError, TypeError, OverflowError, RecursionError, MemoryError) as error:
        raise LiteralError("not a literal") from error


def _read_decimal(text: str) -> int:
    """Read an int of any length, in pieces that Python's digit limit lets through."""
    digits = text.lstrip("-")
    total = 0
    for start in range(0, len(digits), _DECIMAL_DIGITS):
        piece = digits[start : start + _DECIMAL_DIGITS]
        total = total * 10 ** len(piece) + int(piece)
    return -total if text.startswith("-") else total


def _nesting(bare: str) -> int:
    depth = deepest = 0
    for char in bare:
        if char in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in ")]}":
            depth -= 1
    return deepest


def _evaluate(node: ast.expr) -> Value:
    match node:
        case ast.Constant(value=value) if type(value) is not type(...):
            return value
        case ast.List(elts=items):
            return [_evaluate(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_evaluate(item) for item in items)
        case ast.Set(elts=items):
            return {_evaluate(item) for item in items}
        case ast.Dict(keys=keys, values=values):
            return {_evaluate(_key(key)): _evaluate(value) for key, value in zip(keys, values, strict=True)}
        case ast.Name(id="inf" | "nan" as name):
            return float(name)
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
            number = _number(_evaluate(operand))
            return -number if isinstance(sign, ast.USub) else number
        case ast.BinOp(op=ast.Add() | ast.Sub() as sign, left=left, right=ast.Constant(value=complex() as imaginary)):
            real = _evaluate(left)
            if type(real) not in (int, float):
                raise LiteralError("not a literal")
            return real + imaginary if isinstance(sign, ast.Add) else real - imaginary
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return _call(name, [_evaluate(argument) for argument in arguments])
    raise LiteralError("not a literal")


def _key(key: ast.expr | None) -> ast.expr:
    if key is None:
        raise LiteralError("not a literal")
    return key


def _number(value: Value) -> Any:
    if type(value) not in (int, float, complex):
        raise LiteralError("a sign stands before something that is no number")
    return value


def _call(name: str, arguments: list[Value]) -> Value:
    match name, arguments:
        case "set", []:
            return set()
        case "set", [list() | tuple() | set() as items]:
            return set(items)
        case "frozenset", []:
            return frozenset()
        case "frozenset", [list() | tuple() | set() as items]:
            return frozenset(items)
        case "float", [str("nan" | "inf" | "-inf") as word]:
            return float(word)
        case "complex", [int() | float() as real, int() | float() as imaginary]:
            return complex(real, imaginary)
    raise LiteralError("not a literal")
