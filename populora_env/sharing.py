"""Which programs may run one after the other in one process, without anybody being able to tell.

Owns a strict reading: a program of plain expressions and statements, without imports, classes, exception handlers and
attributes other than methods of the builtin types. Such a program changes nothing but its own globals, and what runs
out (memory, time) ends its call visibly. Everything else gets a process of its own.
"""

from __future__ import annotations

import ast
import builtins
from typing import Final

from populora_env import allowlist
from populora_env.source import Nodes

_PLAIN: Final = (
    *(ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign),
    *(ast.For, ast.While, ast.If, ast.Expr, ast.Pass, ast.Break, ast.Continue, ast.Name, ast.Constant, ast.Lambda),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Call, ast.keyword, ast.Starred, ast.Attribute),
    *(ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.comprehension, ast.Subscript, ast.Slice, ast.JoinedStr, ast.FormattedValue, ast.NamedExpr),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context),
)
METHODS: Final = frozenset(
    name
    for kind in (str, bytes, list, tuple, dict, set, frozenset, int, float)
    for name in dir(kind)
    if not name.startswith("_")
) - {"format", "format_map"}
"""Attributes that such a program may call."""
_READERS: Final = frozenset({"getattr", "hasattr", "setattr", "delattr", "super", "type", "object"})
"""Builtins that reach attributes or classes."""
FOREIGN: Final = frozenset(dir(builtins)) - (allowlist.BUILTINS - _READERS)
"""Builtins that such a program must not name."""


def leaves_nothing(nodes: Nodes) -> bool:
    """Return whether nothing of a program can be left in its process once its globals are gone."""
    return all(map(_is_plain, nodes))


def _is_plain(node: ast.AST) -> bool:
    if not isinstance(node, _PLAIN):
        return False
    if isinstance(node, ast.Name):
        return node.id not in FOREIGN and not node.id.startswith("__")
    if isinstance(node, ast.Attribute):
        return node.attr in METHODS and isinstance(node.ctx, ast.Load)
    return not (isinstance(node, ast.FunctionDef) and node.decorator_list)
