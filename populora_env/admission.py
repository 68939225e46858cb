"""Admission: which programs may be proposed at all, judged from their syntax tree.

Owns the rules, each with a name and a reason. They keep proposals deterministic and honest; they are **not** the
sandbox: what is admitted still runs there, and answers run there without being admitted.
"""

from __future__ import annotations

import ast
import builtins
import string
import symtable
from collections.abc import Iterator
from types import MappingProxyType
from typing import Final, TypeGuard

from populora_env import allowlist

RULES: Final = MappingProxyType(
    {
        "import": "only listed modules, and of them only listed names; never a star",
        "module": "a module's listed attributes may be read; the module itself is no value and cannot be changed",
        "builtin": "only listed builtins: no clocks, randomness, addresses, hashes, no evaluation of text",
        "attribute": "attributes that lead to frames, code, classes or clocks are refused",
        "format": "format strings must be constants without attributes: `'{0.gi_frame}'` reads the harness",
        "dunder": "names that begin with `__` are refused, but for common special methods of own classes",
        "call": "some functions may only be called on the spot with one argument, `type` only to compare what it gives",
        "async": "coroutines have no place in a pure function",
        "class": "classes take no keywords: a metaclass decides what its attributes mean",
        "scope": "the names of a program could not be resolved",
        "unanswerable": "a solver could not write the value within half of the answer budget",
        "duplicate_inputs": "the inputs of an induction problem must differ",
    }
)
"""Names of the rules with their reasons; an `inadmissible` verdict names one of them."""

_UNRESTRICTED_BUILTINS = frozenset(dir(builtins)) - allowlist.BUILTINS


class Refusal(Exception):  # noqa: N818 - a rule's word on a program, not an error of ours
    """A rule that a program breaks."""

    def __init__(self, rule: str, line: int) -> None:
        """Name the rule, one of `RULES`, and the line that breaks it (0: unknown)."""
        super().__init__(rule, line)
        self.rule = rule
        self.line = line


def refusal_of(source: str, tree: ast.Module) -> Refusal | None:
    """Return the first rule that a program breaks, or None if it is admitted.

    Args:
        source: The program, parsed within bounds before.
        tree: Its syntax tree.
    """
    try:
        inspector = _Inspector(tree)
        inspector.check()
        _check_builtins(source)
    except Refusal as refusal:
        return refusal
    return None


def depends_on_hashes(tree: ast.Module) -> bool:
    """Return whether a program builds a set or may do algebra on key views, whose order depends on the hash seed."""
    views = algebra = False
    for node in ast.walk(tree):
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                if name.rpartition(".")[2] in allowlist.SET_MAKERS:
                    return True
                views |= name in allowlist.KEY_VIEWS
                algebra |= name in allowlist.SET_ALGEBRA
            case ast.BinOp(op=op) | ast.AugAssign(op=op):
                algebra |= isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor | ast.Sub)
    return views and algebra


def defines_f(tree: ast.Module) -> bool:
    """Return whether anything in a program binds the name `f`."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name="f") | ast.ClassDef(name="f") | ast.Name(id="f", ctx=ast.Store()):
                return True
            case ast.alias(name=name, asname=asname) if (asname or name) == "f":
                return True
    return False


class _Inspector:
    """One walk over a syntax tree. Imports are resolved first, by name, in whatever scope they stand."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._modules: dict[str, str] = {}
        self._imported: dict[str, str] = {}
        self._called: set[int] = set()
        self._bases: set[int] = set()
        self._compared: set[int] = set()

    def check(self) -> None:
        nodes = list(ast.walk(self._tree))
        for node in nodes:
            if isinstance(node, ast.Import):
                self._import(node)
            elif isinstance(node, ast.ImportFrom):
                self._import_from(node)
            elif isinstance(node, ast.Call):
                self._note_call(node)
            elif isinstance(node, ast.Attribute):
                self._bases.add(id(node.value))
            elif isinstance(node, ast.Compare):
                self._compared |= {id(operand.func) for operand in (node.left, *node.comparators) if _is_call(operand)}
        for node in nodes:
            self._check_node(node)

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name not in allowlist.MODULES:
                raise Refusal("import", node.lineno)
            if alias.asname is None:
                root = alias.name.partition(".")[0]
                self._modules[root] = root
            else:
                self._modules[alias.asname] = alias.name

    def _import_from(self, node: ast.ImportFrom) -> None:
        names = allowlist.MODULES.get(node.module or "")
        if names is None or node.level:
            raise Refusal("import", node.lineno)
        for alias in node.names:
            path = f"{node.module}.{alias.name}"
            if alias.name not in names:
                raise Refusal("import", node.lineno)
            if path in allowlist.MODULES:
                self._modules[alias.asname or alias.name] = path
            else:
                self._imported[alias.asname or alias.name] = path

    def _note_call(self, node: ast.Call) -> None:
        alone = len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred)
        if alone:
            self._called.add(id(node.func))

    def _check_node(self, node: ast.AST) -> None:
        match node:
            case ast.Attribute():
                self._check_attribute(node)
            case ast.Name():
                self._check_name(node)
            case ast.MatchClass(kwd_attrs=names):
                for name in names:
                    _check_attribute_name(name, node.lineno)
            case ast.AsyncFunctionDef() | ast.Await() | ast.AsyncFor() | ast.AsyncWith():
                raise Refusal("async", node.lineno)
            case ast.comprehension(is_async=1):
                raise Refusal("async", 0)
            case ast.ClassDef(keywords=[_, *_]):
                raise Refusal("class", node.lineno)
            case _:
                for name in _bound_names(node):
                    if name.startswith("__") and name not in allowlist.DUNDER_METHODS:
                        raise Refusal("dunder", getattr(node, "lineno", 0))

    def _module_of(self, node: ast.expr) -> str | None:
        """Return the module that an expression names, if it does."""
        match node:
            case ast.Name(id=name):
                return self._modules.get(name)
            case ast.Attribute(value=base, attr=name):
                parent = self._module_of(base)
                path = f"{parent}.{name}"
                return path if parent is not None and path in allowlist.MODULES else None
        return None

    def _check_attribute(self, node: ast.Attribute) -> None:
        _check_attribute_name(node.attr, node.lineno)
        module = self._module_of(node.value)
        if module is not None:
            if node.attr not in allowlist.MODULES[module] or not isinstance(node.ctx, ast.Load):
                raise Refusal("module", node.lineno)
            if self._module_of(node) is not None and id(node) not in self._bases:
                raise Refusal("module", node.lineno)
            self._check_call(f"{module}.{node.attr}", node)
            return
        if not isinstance(node.ctx, ast.Load) and self._is_foreign(node.value):
            raise Refusal("module", node.lineno)
        if node.attr == "format":
            _check_format(node)

    def _is_foreign(self, node: ast.expr) -> bool:
        """Return whether an expression names something of a module, or a builtin."""
        if isinstance(node, ast.Attribute):
            return self._module_of(node.value) is not None
        return isinstance(node, ast.Name) and (node.id in self._imported or node.id in allowlist.BUILTINS)

    def _check_name(self, node: ast.Name) -> None:
        if node.id.startswith("__"):
            raise Refusal("dunder", node.lineno)
        if node.id in self._modules and id(node) not in self._bases:
            raise Refusal("module", node.lineno)
        self._check_call(self._imported.get(node.id, node.id), node)

    def _check_call(self, path: str, node: ast.expr) -> None:
        if path in allowlist.ONE_ARGUMENT and id(node) not in self._called:
            raise Refusal("call", node.lineno)
        if path in allowlist.COMPARED and id(node) not in self._compared:
            raise Refusal("call", node.lineno)


def _is_call(node: ast.expr) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call)


def _bound_names(node: ast.AST) -> tuple[str, ...]:
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


def _check_attribute_name(name: str, line: int) -> None:
    if name.startswith(allowlist.BANNED_PREFIXES) or name in allowlist.BANNED_ATTRIBUTES:
        raise Refusal("attribute", line)


def _check_format(node: ast.Attribute) -> None:
    """Check a use of `.format`: on a constant text whose fields name no attribute, at any depth."""
    if not isinstance(node.value, ast.Constant) or not isinstance(node.value.value, str):
        raise Refusal("format", node.lineno)
    try:
        fields = list(_fields(node.value.value))
    except ValueError:
        raise Refusal("format", node.lineno) from None
    if any("." in field for field in fields):
        raise Refusal("format", node.lineno)


def _fields(template: str) -> Iterator[str]:
    for _, field, specification, _ in string.Formatter().parse(template):
        if field is not None:
            yield field
        if specification:
            yield from _fields(specification)


def _check_builtins(source: str) -> None:
    """Check that no scope can reach a builtin that is not listed.

    A local variable of a function may have any name; a name of the module or of a class may be unbound when it is
    read, and then the builtin of that name is what the program gets.
    """
    try:
        scopes = [symtable.symtable(source, "<program>", "exec")]
    except (SyntaxError, ValueError, RecursionError):
        raise Refusal("scope", 0) from None
    while scopes:
        scope = scopes.pop()
        scopes += scope.get_children()
        in_function = isinstance(scope, symtable.Function)
        for symbol in scope.get_symbols():
            own = in_function and (symbol.is_local() or symbol.is_free())
            if not own and symbol.get_name() in _UNRESTRICTED_BUILTINS:
                raise Refusal("builtin", scope.get_lineno())
