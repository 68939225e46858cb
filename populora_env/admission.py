"""Admission: which programs may be proposed at all, judged from their syntax tree.

Owns the checks of whole trees. They keep proposals deterministic and honest; they are **not** the sandbox: what is
admitted still runs there, and answers run there without being admitted. The rules themselves, with their reasons, are
in `admission_rules` and re-exported here.
"""

from __future__ import annotations

import ast

from populora_env import allowlist
from populora_env.admission_names import (
    bound_names,
    check_attribute_name,
    check_format,
    check_scopes,
    check_unseen_name,
    is_dunder,
)
from populora_env.admission_rules import RULES, Refusal
from populora_env.admission_uses import ALIAS, Uses, is_of_typing, is_store
from populora_env.source import Nodes

__all__ = ["RULES", "Refusal", "defines_f", "refusal_of"]


def refusal_of(source: str, nodes: Nodes) -> Refusal | None:
    """Return the first rule that a program breaks, or None if it is admitted.

    Args:
        source: The program, parsed within bounds before.
        nodes: Those of its syntax tree.
    """
    try:
        _Inspector(nodes).check()
        check_scopes(source)
    except Refusal as refusal:
        return refusal
    return None


def defines_f(nodes: Nodes) -> bool:
    """Return whether anything in a program binds the name `f`."""
    for node in nodes:
        match node:
            case ast.FunctionDef(name="f") | ast.ClassDef(name="f") | ast.Name(id="f", ctx=ast.Store()):
                return True
            case ast.alias(name=name, asname=asname) if (asname or name) == "f":
                return True
    return False


class _Inspector:
    """The checks of one syntax tree."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._uses = Uses(nodes)

    def check(self) -> None:
        """Check every node.

        Raises:
            Refusal: The first rule that is broken.
        """
        for node in self._nodes:
            self._check_node(node)

    def _check_node(self, node: ast.AST) -> None:
        match node:
            case ast.Attribute():
                self._check_attribute(node)
            case ast.Name():
                self._check_name(node)
            case ast.Call(func=ast.Name(id=name)) if name in allowlist.COMPARED:
                if id(node) not in self._uses.compared | self._uses.named:
                    raise Refusal("call", node.lineno)
            case ast.Compare(ops=[_, _, *_] as operators):
                if any(isinstance(operator, ast.Is | ast.IsNot) for operator in operators):
                    raise Refusal("identity", node.lineno)
            case ast.MatchClass(kwd_attrs=names):
                for name in names:
                    check_unseen_name(name, node.lineno)
            case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                raise Refusal("async", node.lineno)
            case ast.comprehension(is_async=1):
                raise Refusal("async", 0)
            case _:
                self._check_bound_names(node)

    def _check_bound_names(self, node: ast.AST) -> None:
        for name in bound_names(node):
            if is_dunder(name) and not (isinstance(node, ast.FunctionDef) and name in allowlist.DUNDER_METHODS):
                raise Refusal("dunder", getattr(node, "lineno", 0))
        if isinstance(node, ast.FunctionDef) and node.name == "__hash__":
            self._check_hash(node)
        if isinstance(node, ast.ClassDef):
            for keyword in node.keywords:
                if keyword.arg != "metaclass" or self._uses.path_of(keyword.value) != allowlist.METACLASS:
                    raise Refusal("class", node.lineno)

    def _check_hash(self, function: ast.FunctionDef) -> None:
        """Check that what `hash` gives goes nowhere but to a dict or set."""
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id == "hash" and id(node) not in self._uses.hashing:
                raise Refusal("builtin", node.lineno)

    def _check_attribute(self, node: ast.Attribute) -> None:
        module = self._uses.module_of(node.value)
        if module is None and self._is_special(node):
            return
        check_attribute_name(node.attr, node.lineno)
        if module is not None:
            if node.attr not in allowlist.MODULES[module] or not isinstance(node.ctx, ast.Load):
                raise Refusal("module", node.lineno)
            if self._uses.module_of(node) is not None and id(node) not in self._uses.based:
                raise Refusal("module", node.lineno)
            self._check_use({f"{module}.{node.attr}"}, node)
            return
        if not isinstance(node.ctx, ast.Load) and self._is_foreign(node.value):
            raise Refusal("module", node.lineno)
        if node.attr == "format":
            check_format(node)

    def _is_special(self, node: ast.Attribute) -> bool:
        """Return whether an attribute that looks like one of Python's own is harmless where it stands."""
        if not isinstance(node.ctx, ast.Load):
            return False
        if node.attr == "__class__":
            return id(node) in self._uses.named
        return node.attr == "__name__" or id(node) in self._uses.dunder_of_super

    def _is_foreign(self, node: ast.expr) -> bool:
        """Return whether an expression names something of a module, or a builtin."""
        if isinstance(node, ast.Attribute):
            return self._uses.module_of(node.value) is not None
        return isinstance(node, ast.Name) and (node.id in self._uses.imported or node.id in allowlist.BUILTINS)

    def _check_name(self, node: ast.Name) -> None:
        if is_dunder(node.id) and id(node) not in self._uses.main | self._uses.declared:
            raise Refusal("dunder", node.lineno)
        if node.id in self._uses.modules and id(node) not in self._uses.based:
            raise Refusal("module", node.lineno)
        if is_store(node) and self._uses.imported.get(node.id) == ALIAS:
            return
        self._check_use({node.id, self._uses.imported.get(node.id, node.id)}, node)

    def _check_use(self, paths: set[str], node: ast.Name | ast.Attribute) -> None:
        """Check what may only be used in a certain way; `paths` are all that a name can mean."""
        uses = self._uses
        for names, places, rule in (
            (allowlist.ONE_ARGUMENT, uses.called, "call"),
            (allowlist.READERS, uses.called_by_name, "call"),
            (allowlist.ASKERS, uses.called_to_ask, "call"),
            (allowlist.READER_MAKERS, uses.called_by_names, "call"),
            (allowlist.BARE, uses.called_bare, "call"),
            (allowlist.DECORATORS, uses.decorating & uses.called, "call"),
            (frozenset({allowlist.METACLASS}), uses.metaclasses, "class"),
        ):
            if paths & names and id(node) not in places:
                raise Refusal(rule, node.lineno)
        if any(map(is_of_typing, paths)) and id(node) not in uses.annotating:
            raise Refusal("typing", node.lineno)
