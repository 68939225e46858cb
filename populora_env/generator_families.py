"""Families of programs, told by what a program is made of, and the split that keeps some programs from training.

Owns the names and both tests, which need nothing but the text of a program and of one of its inputs; any program can be
put into a family, whoever wrote it.
"""

from __future__ import annotations

import ast
import hashlib
from enum import StrEnum
from typing import Final

HELD_OUT_SHARE: Final = 8
"""One program in so many is held out."""


class Family(StrEnum):
    """What the hardest construct of a program is; later ones outrank earlier ones."""

    ARITHMETIC = "arithmetic"
    """Whole numbers only."""
    TEXT = "text"
    """Strings and their methods."""
    LISTS = "lists"
    """Lists, slices, sorting."""
    RECORDS = "records"
    """Tuples and dicts."""
    BRANCHES = "branches"
    """Comparisons, truth values, `if` as a statement or an expression."""
    COMPREHENSIONS = "comprehensions"
    """Comprehensions of lists and dicts."""
    LOOPS = "loops"
    """`for` and `while`."""
    HELPERS = "helpers"
    """A second function, which `f` calls."""


RANK: Final = {family: rank for rank, family in enumerate(Family)}
"""Place of each family in their order."""

_NODES: Final[tuple[tuple[Family, tuple[type[ast.AST], ...]], ...]] = (
    (Family.LOOPS, (ast.For, ast.While)),
    (Family.COMPREHENSIONS, (ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)),
    (Family.BRANCHES, (ast.If, ast.IfExp, ast.Compare, ast.BoolOp, ast.Not)),
    (Family.RECORDS, (ast.Dict, ast.Set, ast.Tuple)),
    (Family.LISTS, (ast.List,)),
    (Family.TEXT, (ast.JoinedStr,)),
)
_CALLS: Final = {
    "divmod": Family.RECORDS,
    "tuple": Family.RECORDS,
    "dict": Family.RECORDS,
    "set": Family.RECORDS,
    "list": Family.LISTS,
    "sorted": Family.LISTS,
    "str": Family.TEXT,
}


def family_of(program: str, given: str) -> Family:
    """Return the family of a program with an input.

    Args:
        program: Source that parses.
        given: The literal of its argument tuple.

    Raises:
        SyntaxError: The program does not parse.
        ValueError: The input is no literal.
    """
    tree = ast.parse(program)
    if sum(isinstance(node, ast.FunctionDef | ast.Lambda) for node in ast.walk(tree)) > 1:
        return Family.HELPERS
    found = {_family_of_node(node) for node in ast.walk(tree)}
    for argument in ast.literal_eval(given):
        found |= _families_of_value(argument)
    return max(found, key=RANK.__getitem__)


def _family_of_node(node: ast.AST) -> Family:
    for family, kinds in _NODES:
        if isinstance(node, kinds):
            return family
    if isinstance(node, ast.Name):
        return _CALLS.get(node.id, Family.ARITHMETIC)
    if isinstance(node, ast.Constant):
        return max(_families_of_value(node.value), key=RANK.__getitem__)
    return Family.ARITHMETIC


def _families_of_value(value: object) -> set[Family]:
    if isinstance(value, bool):
        return {Family.BRANCHES}
    if isinstance(value, str | bytes):
        return {Family.TEXT}
    if isinstance(value, list):
        return {Family.LISTS}.union(*map(_families_of_value, value))
    return {Family.RECORDS} if isinstance(value, tuple | dict | set) else {Family.ARITHMETIC}


def is_held_out(program: str) -> bool:
    """Return whether a program belongs to the held-out set; its source alone decides, whatever its inputs are.

    Args:
        program: Source in the normal form of `source.normalise`.
    """
    digest = hashlib.blake2b(program.encode("utf-8", "surrogatepass"), digest_size=8, person=b"held-out").digest()
    return int.from_bytes(digest, "big") % HELD_OUT_SHARE == 0
