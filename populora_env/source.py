"""Program text: bounded parsing and the normal form in which programs are stored, shown and compared.

Owns templates too, by which programs count as the same but for their constants. Owns no judgement about what a program
may do (that is `admission`); it only keeps hostile text from exhausting the
parser.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import os
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

MAX_SOURCE_CHARS = 16_384
MAX_DEPTH = 100
"""Deepest syntax tree; far below Python's recursion limit, so that later passes may recurse."""

Nodes: TypeAlias = Sequence[ast.AST]
"""All nodes of a syntax tree, in the order of `ast.walk`."""
_WARNING_FILTERS = threading.RLock()
"""`warnings.catch_warnings` changes the state of the process; two threads must not do so at once."""

os.register_at_fork(
    before=_WARNING_FILTERS.acquire,
    after_in_parent=_WARNING_FILTERS.release,
    after_in_child=_WARNING_FILTERS.release,
)


class SourceError(ValueError):
    """The text is no program within the bounds."""


@contextlib.contextmanager
def quiet_parser() -> Iterator[None]:
    """Keep Python's parser from warning of what players write, whatever the filters are; safe from threads."""
    with _WARNING_FILTERS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def is_plain_text(text: str) -> bool:
    """Return whether `text` can be stored as it is: no NUL and no lone surrogate."""
    return "\0" not in text and (text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text))


def parse_program(source: str) -> ast.Module:
    """Parse `source` within bounds of size and nesting.

    Raises:
        SourceError: Too long, not plain text, a syntax error, or nested too deeply.
    """
    return read_program(source)[0]


def read_program(source: str) -> tuple[ast.Module, Nodes]:
    """Parse `source` as `parse_program` does; return the tree and all its nodes.

    Raises:
        SourceError: Too long, not plain text, a syntax error, or nested too deeply.
    """
    if len(source) > MAX_SOURCE_CHARS:
        raise SourceError(f"program has {len(source)} characters, at most {MAX_SOURCE_CHARS} are read")
    if not is_plain_text(source):
        raise SourceError("program holds a NUL or a lone surrogate")
    try:
        with quiet_parser():
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SourceError(f"program does not parse: {type(error).__name__}") from error
    nodes: list[ast.AST] = []
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        nodes += level
        level = _inside(level)
        if not level:
            return tree, nodes
    raise SourceError(f"program is nested deeper than {MAX_DEPTH}")


@lru_cache(maxsize=4096)
def normalise(source: str) -> str:
    """Return the normal form of a program: no comments, no docstrings, one spelling for one syntax tree.

    Raises:
        SourceError: The text is no program within the bounds, or has no normal form.
    """
    tree = _without_docstrings(source)
    try:
        normal = ast.unparse(tree)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"program has no normal form: {error}") from error
    if len(normal) > MAX_SOURCE_CHARS:
        raise SourceError(f"program's normal form has more than {MAX_SOURCE_CHARS} characters")
    return normal


@lru_cache(maxsize=4096)
def template(source: str) -> str:
    """Return the name of what is left of a program when every constant is masked by its type, signs included.

    Programs have the same template if and only if (but for collisions of the digest) they differ in nothing but
    constants of the same types, signs, comments, docstrings and spelling. Names count.

    Returns:
        32 hexadecimal digits, however long the program is; level by level, so that nothing recurses.

    Raises:
        SourceError: The text is no program within the bounds.
    """
    digest = hashlib.blake2b(digest_size=16)
    level: list[ast.AST] = [_without_docstrings(source)]
    while level:
        words: list[str] = []
        below: list[ast.AST] = []
        for node in map(_unsigned, level):
            words.append(type(node).__name__)
            if isinstance(node, ast.Constant | ast.MatchSingleton):
                words.append(type(node.value).__name__)
                continue
            for name in node._fields:
                field = getattr(node, name, None)
                if name == "ctx":  # the place says it
                    continue
                if type(field) is list:
                    words.append(str(len(field)))
                for item in field if type(field) is list else (field,):
                    if isinstance(item, ast.AST):
                        below.append(item)
                        words.append("*")
                    else:
                        words.append(repr(item))
        digest.update("\n".join([*words, ""]).encode())
        level = below
    return digest.hexdigest()


def _unsigned(node: ast.AST) -> ast.AST:
    """Return the constant behind a sign, and anything else as it is."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        return node.operand if isinstance(node.operand, ast.Constant) else node
    return node


def _without_docstrings(source: str) -> ast.Module:
    """Parse a program and take its docstrings away.

    Raises:
        SourceError: The text is no program within the bounds.
    """
    tree, nodes = read_program(source)
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            _drop_docstring(node)
    return tree


def _drop_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    if not node.body or not isinstance(node.body[0], ast.Expr):
        return
    first = node.body[0].value
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        node.body = node.body[1:] or [ast.Pass()]


def _inside(level: Iterable[ast.AST]) -> list[ast.AST]:
    """Return the children of some nodes, in the order of `ast.walk`."""
    children: list[ast.AST] = []
    for node in level:
        for name in node._fields:
            field = getattr(node, name, None)
            if type(field) is list:
                children += [item for item in field if isinstance(item, ast.AST)]
            elif isinstance(field, ast.AST):
                children.append(field)
    return children
