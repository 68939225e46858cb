"""Admission: which programs may be proposed at all, judged from their syntax tree.

Owns the rules, each with a name and a reason. They keep proposals deterministic and honest; they are **not** the
sandbox: what is admitted still runs there, and answers run there without being admitted.
"""

from __future__ import annotations

import ast
import builtins
import string
import symtable
from collections import Counter
from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from populora_env import allowlist
from populora_env.source import quiet_parser

RULES: Final = MappingProxyType(
    {
        "import": "only listed modules, and of them only listed names; never a star, in a class body, or two things "
        "under one name",
        "typing": "names of `typing` may stand in annotations only: their values evaluate text",
        "module": "a module's listed attributes may be read; the module itself is no value and cannot be changed",
        "builtin": "only listed builtins: no clocks, randomness, addresses, hashes, no evaluation of text",
        "attribute": "attributes that lead to frames, code, classes or clocks are refused",
        "format": "format strings must be constants without attributes: `'{0.gi_frame}'` reads the harness",
        "dunder": "names that begin with `__` are refused, but for common special methods of own classes",
        "call": "some functions may only be called on the spot with one argument, `type` only to compare what it gives "
        "with a plain type",
        "async": "coroutines have no place in a pure function",
        "class": "classes take no keywords: a metaclass decides what its attributes mean",
        "scope": "the names of a program could not be resolved",
        "unanswerable": "a solver could not write the value within half of the answer budget",
        "duplicate_inputs": "the inputs of an induction problem must differ",
    }
)
"""Names of the rules with their reasons; an `inadmissible` verdict names one of them."""

_UNRESTRICTED_BUILTINS = frozenset(dir(builtins)) - allowlist.BUILTINS
_EQUALITY = (ast.Is, ast.IsNot, ast.Eq, ast.NotEq, ast.In, ast.NotIn)
_ANNOTATION = (
    *(ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.List, ast.Load),
    *(ast.BinOp, ast.BitOr),
)
"""What an annotation is made of; it is evaluated like any other expression."""
_FORMAT_DEPTH = 2


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
        _Inspector(tree).check()
        _check_scopes(source)
    except Refusal as refusal:
        return refusal
    return None


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
        self._nodes = list(ast.walk(tree))
        self._modules: dict[str, str] = {}
        self._imported: dict[str, str] = {}
        self._called: set[int] = set()
        self._bases: set[int] = set()
        self._annotations: set[int] = set()
        self._bound = Counter(name for node in self._nodes for name in _bound_names(node))
        self._bound.update(node.id for node in self._nodes if isinstance(node, ast.Name) and _is_store(node))
        self._classes = {
            node.name for node in self._nodes if isinstance(node, ast.ClassDef) and not node.decorator_list
        }

    def check(self) -> None:
        for node in self._nodes:
            self._note(node)
        self._compared = {
            id(operand)
            for node in self._nodes
            if isinstance(node, ast.Compare) and self._compares_plainly(node)
            for operand in (node.left, *node.comparators)
        }
        for node in self._nodes:
            self._check_node(node)

    def _note(self, node: ast.AST) -> None:
        """Take down what the checks of other nodes need to know."""
        match node:
            case ast.Import():
                self._import(node)
            case ast.ImportFrom():
                self._import_from(node)
            case ast.Call():
                if len(node.args) == 1 and not node.keywords and not isinstance(node.args[0], ast.Starred):
                    self._called.add(id(node.func))
            case ast.Attribute(value=base):
                self._bases.add(id(base))
            case ast.arg(annotation=ast.expr() as annotation) | ast.AnnAssign(annotation=annotation):
                self._note_annotation(annotation)
            case ast.FunctionDef(returns=ast.expr() as annotation):
                self._note_annotation(annotation)

    def _note_annotation(self, annotation: ast.expr) -> None:
        nodes = list(ast.walk(annotation))
        if all(isinstance(node, _ANNOTATION) for node in nodes):
            self._annotations |= {id(node) for node in nodes}

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name not in allowlist.MODULES:
                raise Refusal("import", node.lineno)
            root = alias.name.partition(".")[0]
            self._bind(alias.asname or root, alias.name if alias.asname else root, node)

    def _import_from(self, node: ast.ImportFrom) -> None:
        names = allowlist.MODULES.get(node.module or "")
        if names is None or node.level:
            raise Refusal("import", node.lineno)
        for alias in node.names:
            if alias.name not in names:
                raise Refusal("import", node.lineno)
            self._bind(alias.asname or alias.name, f"{node.module}.{alias.name}", node)

    def _bind(self, name: str, path: str, node: ast.Import | ast.ImportFrom) -> None:
        """Take down an import; a name that meant one thing here and another there would be judged as either."""
        table = self._modules if path in allowlist.MODULES else self._imported
        if self._modules.get(name, path) != path or self._imported.get(name, path) != path:
            raise Refusal("import", node.lineno)
        table[name] = path

    def _compares_plainly(self, node: ast.Compare) -> bool:
        """Return whether no operand's own `==` or `in` is given another operand."""
        if all(isinstance(operator, ast.Is | ast.IsNot) for operator in node.ops):
            return True
        known = all(isinstance(operator, _EQUALITY) for operator in node.ops)
        return known and all(self._is_plain_type(operand) for operand in (node.left, *node.comparators))

    def _is_plain_type(self, node: ast.expr) -> bool:
        """Return whether an expression is a type, or a display of types, with no `==` of its own."""
        match node:
            case ast.Call(func=ast.Name(id="type")):
                return True
            case ast.Name(id=name):
                own = name in self._classes and self._bound[name] == 1
                return own or (name in allowlist.BUILTINS and not self._bound[name])
            case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
                return all(self._is_plain_type(item) for item in items)
        return isinstance(node, ast.Constant)

    def _check_node(self, node: ast.AST) -> None:
        match node:
            case ast.Attribute():
                self._check_attribute(node)
            case ast.Name():
                self._check_name(node)
            case ast.Call(func=ast.Name(id=name)) if name in allowlist.COMPARED and id(node) not in self._compared:
                raise Refusal("call", node.lineno)
            case ast.MatchClass(kwd_attrs=names):
                for name in names:
                    _check_unseen_name(name, node.lineno)
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
            self._check_use({f"{module}.{node.attr}"}, node)
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
        self._check_use({node.id, self._imported.get(node.id, node.id)}, node)

    def _check_use(self, paths: set[str], node: ast.Name | ast.Attribute) -> None:
        """Check what may only be used in a certain way; `paths` are all that a name can mean."""
        if paths & allowlist.ONE_ARGUMENT and id(node) not in self._called:
            raise Refusal("call", node.lineno)
        if (
            any(path.startswith(f"{allowlist.ANNOTATIONS_ONLY}.") for path in paths)
            and id(node) not in self._annotations
        ):
            raise Refusal("typing", node.lineno)


def _is_store(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


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


def _check_unseen_name(name: str, line: int) -> None:
    """Check a name by which a pattern reads an attribute, where `format` cannot be seen to stand on a constant."""
    _check_attribute_name(name, line)
    if name == "format":
        raise Refusal("format", line)


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


def _fields(template: str, depth: int = 0) -> Iterator[str]:
    """Yield the fields of a format string; Python itself fills them in down to a depth of two."""
    if depth > _FORMAT_DEPTH:
        raise ValueError("format string is nested too deeply")
    for _, field, specification, _ in string.Formatter().parse(template):
        if field is not None:
            yield field
        if specification:
            yield from _fields(specification, depth + 1)


def _check_scopes(source: str) -> None:
    """Check the names of each scope.

    No scope may reach a builtin that is not listed: a local variable of a function may have any name; a name of the
    module or of a class may be unbound when it is read, and then the builtin of that name is what the program gets.
    The names of a class are attributes of its objects: an import there would be a module under a name that no rule
    knows, and a dataclass reads its fields in a pattern `Own(x)`.
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
            if not own and symbol.get_name() in _UNRESTRICTED_BUILTINS:
                raise Refusal("builtin", scope.get_lineno())
            if isinstance(scope, symtable.Class):
                _check_class_name(symbol, scope.get_lineno())


def _check_class_name(symbol: symtable.Symbol, line: int) -> None:
    if symbol.is_imported():
        raise Refusal("import", line)
    if (symbol.is_assigned() or symbol.is_annotated()) and not symbol.get_name().startswith("__"):
        _check_unseen_name(symbol.get_name(), line)
