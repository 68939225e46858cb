"""What the value of a program may hang on that its text does not show: the hash seed, addresses, what ran before.

Owns the guess, from the syntax tree, which programs have to be replayed more often than twice. It errs on the side of
more replays: whoever is replayed without need only costs time. What is refused outright is the affair of
`admission`.
"""

from __future__ import annotations

import ast
import re
from typing import Final

from populora_env import allowlist
from populora_env.source import Nodes

_READERS: Final = frozenset({"getattr", "attrgetter"})
"""Functions that read an attribute by its name."""
_NO_DICT: Final = re.compile(r"\{(?!\}|(?:'[^'\\{}]*'|-?[0-9]+|True|False): )")
"""A brace behind which no plain key and colon stand: perhaps a set."""


def may_hold_sets(literal: str) -> bool:
    """Return whether a set may be in the value of a literal, whose order depends on the hash seed."""
    return "set(" in literal or _NO_DICT.search(literal) is not None


def depends_on_hashes(nodes: Nodes) -> bool:
    """Return whether a program builds a set or may do algebra on key views, whose order depends on the hash seed."""
    views = algebra = False
    for node in nodes:
        match node:
            case ast.Set() | ast.SetComp() | ast.Name(id="hash"):
                return True
            case ast.BinOp(op=op) | ast.AugAssign(op=op):
                algebra |= isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor | ast.Sub)
            case _:
                for name in _names_in(node):
                    if name in allowlist.SET_MAKERS:
                        return True
                    views |= name in allowlist.KEY_VIEWS
                    algebra |= name in allowlist.SET_ALGEBRA
    return views and algebra


def depends_on_addresses(nodes: Nodes) -> bool:
    """Return whether a program may write out an object whose text holds its address: `<function g at 0x7f...>`.

    That takes a conversion to text, and an object of such a kind that is kept as a value.
    """
    if not any(map(_makes_text, nodes)):
        return False
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    functions |= {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    passing = _passing(nodes)
    return any(id(node) not in passing and _is_addressed(node, functions) for node in nodes)


def may_leave_traces(nodes: Nodes) -> bool:
    """Return whether a call may leave something behind that fresh globals do not clear: in an imported module."""
    return any(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes)


def _names_in(node: ast.AST) -> tuple[str, ...]:
    """Return the names that a node reads or imports."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return (name,)
        case ast.alias(name=name):
            return (name.rpartition(".")[2],)
        case ast.MatchClass(kwd_attrs=names):
            return tuple(names)
        case ast.Call(func=ast.Name(id=reader) | ast.Attribute(attr=reader), args=arguments) if reader in _READERS:
            return tuple(part for text in arguments for part in _parts(text))
    return ()


def _parts(node: ast.expr) -> list[str]:
    """Return the names of attributes in a constant text."""
    return node.value.split(".") if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def _makes_text(node: ast.AST) -> bool:
    match node:
        case ast.FormattedValue():
            return True
        case ast.BinOp(op=ast.Mod(), right=right) | ast.AugAssign(op=ast.Mod(), value=right):
            return not (isinstance(right, ast.Constant) and isinstance(right.value, int | float))
    return any(name in allowlist.TEXT_MAKERS for name in _names_in(node))


def _passing(nodes: Nodes) -> set[int]:
    """Return the nodes whose value is used up on the spot: called, gone through, or given to a builtin that does so."""
    passing: set[int] = set()
    for node in nodes:
        match node:
            case ast.Call(func=func, args=arguments):
                passing.add(id(func))
                if isinstance(func, ast.Name | ast.Attribute) and _names_in(func)[0] in allowlist.CONSUMERS:
                    passing |= {id(argument) for argument in arguments}
            case ast.For(iter=source) | ast.comprehension(iter=source) | ast.Starred(value=source):
                passing.add(id(source))
            case ast.Attribute(value=base):
                passing.add(id(base))
    return passing


def _is_addressed(node: ast.AST, functions: set[str]) -> bool:
    """Return whether a node makes or mentions an object that is shown with its address."""
    match node:
        case ast.Lambda() | ast.GeneratorExp() | ast.Yield() | ast.YieldFrom() | ast.ClassDef():
            return True
        case ast.Name(id=name, ctx=ast.Load()):
            return name in allowlist.ADDRESSED or (name in functions and name not in allowlist.PLAIN_ATTRIBUTES)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in allowlist.ADDRESSED
        case ast.Attribute(attr=name, ctx=ast.Load()):
            return name not in allowlist.PLAIN_ATTRIBUTES
        case ast.alias(name=name):
            return name in allowlist.ADDRESSED
        case ast.MatchClass(kwd_attrs=[_, *_]):
            return True
    return False
