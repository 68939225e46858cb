"""Admission by names: which attributes, format strings and names of a scope a program may have.

Owns the checks of single names and of symbol tables; what a whole syntax tree may hold is the affair of `admission`.
"""

from __future__ import annotations

import ast
import builtins
import string
import symtable
from collections.abc import Iterator
from typing import Final

from populora_env import allowlist
from populora_env.admission_rules import Refusal
from populora_env.source import quiet_parser

_UNRESTRICTED_BUILTINS: Final = frozenset(dir(builtins)) - allowlist.BUILTINS
_FORMAT_DEPTH: Final = 2


def is_dunder(name: str) -> bool:
    """Return whether Python itself may give a name a meaning: `__x__`, but not the private `__x`."""
    return name.startswith("__") and name.endswith("__")


def bound_names(node: ast.AST) -> tuple[str, ...]:
    """Return the names that a node binds or mentions other than as `Name` or `Attribute`."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
            return (name,)
        case ast.alias(name=name, asname=asname):
            return (asname or name,)
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return tuple(names)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return (name,)
        case ast.MatchMapping(rest=str(name)):
            return (name,)
    return ()


def check_attribute_name(name: str, line: int) -> None:
    """Check the name of an attribute that a program reads or writes.

    Raises:
        Refusal: It leads to frames, code, classes or clocks.
    """
    enums_own = name.startswith("_") and name.endswith("_") and name not in allowlist.SUNDER_ATTRIBUTES
    if enums_own or name.startswith(allowlist.BANNED_PREFIXES) or name in allowlist.BANNED_ATTRIBUTES:
        raise Refusal("attribute", line)


def check_unseen_name(name: str, line: int) -> None:
    """Check a name by which an attribute is read where `format` cannot be seen to stand on a constant.

    Raises:
        Refusal: It is `format`, or leads to frames, code, classes or clocks.
    """
    check_attribute_name(name, line)
    if name == "format":
        raise Refusal("format", line)


def check_format(node: ast.Attribute) -> None:
    """Check a use of `.format`: on a constant text whose fields name no attribute, at any depth.

    Raises:
        Refusal: On anything else.
    """
    if not isinstance(node.value, ast.Constant) or not isinstance(node.value.value, str):
        raise Refusal("format", node.lineno)
    try:
        fields = list(_fields(node.value.value))
    except ValueError:
        raise Refusal("format", node.lineno) from None
    if any("." in field for field in fields):
        raise Refusal("format", node.lineno)


def _fields(template: str, depth: int = 0) -> Iterator[str]:
    """Yield the fields of a format string; Python itself fills them in down to a depth of two."""
    if depth > _FORMAT_DEPTH:
        raise ValueError("format string is nested too deeply")
    for _, field, specification, _ in string.Formatter().parse(template):
        if field is not None:
            yield field
        if specification:
            yield from _fields(specification, depth + 1)


def check_scopes(source: str) -> None:
    """Check the names of each scope.

    No scope may reach a builtin that is not listed: a local variable of a function may have any name; a name of the
    module or of a class may be unbound when it is read, and then the builtin of that name is what the program gets.
    The names of a class are attributes of its objects: an import there would be a module under a name that no rule
    knows, and a dataclass reads its fields in a pattern `Own(x)`.

    Raises:
        Refusal: A scope reaches what it must not, or Python cannot tell the scopes.
    """
    try:
        with quiet_parser():
            scopes = [symtable.symtable(source, "<program>", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise Refusal("scope", 0) from None
    while scopes:
        scope = scopes.pop()
        scopes += scope.get_children()
        in_function = isinstance(scope, symtable.Function)
        for symbol in scope.get_symbols():
            own = in_function and (symbol.is_local() or symbol.is_free())
            if not own and symbol.get_name() in _unlisted(scope):
                raise Refusal("builtin", scope.get_lineno())
            if isinstance(scope, symtable.Class):
                _check_class_name(symbol, scope.get_lineno())


def _unlisted(scope: symtable.SymbolTable) -> frozenset[str]:
    """Return the builtins that a scope must not reach. How `hash` and `__name__` are used, `admission` checks."""
    if isinstance(scope, symtable.Function):
        return _UNRESTRICTED_BUILTINS - {"hash"} if scope.get_name() == "__hash__" else _UNRESTRICTED_BUILTINS
    return _UNRESTRICTED_BUILTINS - {"__name__"} if scope.get_type() == "module" else _UNRESTRICTED_BUILTINS


def _check_class_name(symbol: symtable.Symbol, line: int) -> None:
    if symbol.is_imported():
        raise Refusal("import", line)
    if (symbol.is_assigned() or symbol.is_annotated()) and not is_dunder(symbol.get_name()):
        check_unseen_name(symbol.get_name(), line)
