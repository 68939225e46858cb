"""How a program uses what it names: imports resolved, and for each node the places where some names are allowed.

Owns the reading of a syntax tree before it is checked; which use is allowed is the affair of `admission`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable
from typing import Final

from populora_env import allowlist
from populora_env.admission_names import bound_names, check_unseen_name
from populora_env.admission_rules import Refusal
from populora_env.source import Nodes

_EQUALITY: Final = (ast.Is, ast.IsNot, ast.Eq, ast.NotEq, ast.In, ast.NotIn)
_ANNOTATION: Final = (
    *(ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.Tuple, ast.List, ast.Load),
    *(ast.BinOp, ast.BitOr),
)
"""What an annotation is made of; it is evaluated like any other expression."""
_TYPING: Final = f"{allowlist.ANNOTATIONS_ONLY}."
ALIAS: Final = f"{_TYPING}alias"
"""Path of a name that a program gives to a type of `typing`."""
_TYPE_VARIABLE: Final = f"{_TYPING}TypeVar"


class Uses:
    """One walk over a syntax tree. Imports are resolved first, by name, in whatever scope they stand.

    The sets hold nodes, by their `id`, whose place says that they are used in a certain way.
    """

    def __init__(self, nodes: Nodes) -> None:
        """Take down the uses of all nodes of a tree.

        Raises:
            Refusal: It imports what is not listed, or two things under one name.
        """
        self.modules: dict[str, str] = {}
        """Modules by the names that they are imported under."""
        self.imported: dict[str, str] = {}
        """Paths of what is imported from modules, by name."""
        self.bound = Counter(name for node in nodes for name in bound_names(node))
        """How often each name is bound, in whatever scope."""
        self.bound.update(node.id for node in nodes if isinstance(node, ast.Name) and is_store(node))
        self._classes = {node.name for node in nodes if isinstance(node, ast.ClassDef) and not node.decorator_list}
        self.called: set[int] = set()
        """What is called on the spot with one plain argument."""
        self.called_by_name: set[int] = set()
        """What is called on the spot to read an attribute of a constant name."""
        self.called_to_ask: set[int] = set()
        """What is called on the spot to ask for an attribute of a constant name."""
        self.called_by_names: set[int] = set()
        """What is called on the spot with nothing but constant names of attributes."""
        self.called_bare: set[int] = set()
        """What is called on the spot without arguments, to read an attribute of what it gives."""
        self.based: set[int] = set()
        """What an attribute is read of."""
        self.named: set[int] = set()
        """Calls and attributes of whose value only `__name__` is read."""
        self.annotating: set[int] = set()
        """All nodes of annotations, of aliases of types, and of base classes."""
        self.decorating: set[int] = set()
        """Functions whose calls are decorators."""
        self.metaclasses: set[int] = set()
        self.compared: set[int] = set()
        """Operands of comparisons that hand no operand to another one's method."""
        self.main: set[int] = set()
        """`__name__` in `__name__ == '__main__'`."""
        self.hashing: set[int] = set()
        """`hash` in `return hash(...)`, of a plain `__hash__`."""
        self.declared: set[int] = set()
        """`__slots__` and `__match_args__` where they are given constant names."""
        self.dunder_of_super: set[int] = set()
        """Special methods that are called of `super()`."""
        for node in nodes:
            self._note_import(node)
        for node in nodes:
            self._note(node)
            self._note_typing(node)

    def _note_import(self, node: ast.AST) -> None:
        match node:
            case ast.Import(names=names):
                for alias in names:
                    if alias.name not in allowlist.MODULES:
                        raise Refusal("import", node.lineno)
                    root = alias.name.partition(".")[0]
                    self._bind(alias.asname or root, alias.name if alias.asname else root, node)
            case ast.ImportFrom(module=module, level=level, names=aliases):
                names_of_module = allowlist.MODULES.get(module or "")
                if names_of_module is None or level:
                    raise Refusal("import", node.lineno)
                for alias in aliases:
                    if alias.name not in names_of_module:
                        raise Refusal("import", node.lineno)
                    self._bind(alias.asname or alias.name, f"{module}.{alias.name}", node)

    def _bind(self, name: str, path: str, node: ast.Import | ast.ImportFrom) -> None:
        """Take down an import; a name that meant one thing here and another there would be judged as either."""
        table = self.modules if path in allowlist.MODULES else self.imported
        if self.modules.get(name, path) != path or self.imported.get(name, path) != path:
            raise Refusal("import", node.lineno)
        table[name] = path

    def _note(self, node: ast.AST) -> None:
        """Take down what the checks of other nodes need to know."""
        match node:
            case ast.Call():
                self._note_call(node)
            case ast.Attribute(value=base, attr=name):
                self.based.add(id(base))
                match base:
                    case ast.Call(func=func, args=[], keywords=[]):
                        self.called_bare.add(id(func))
                if name == "__name__":
                    self.named.add(id(base))
            case ast.Compare():
                if self._compares_plainly(node):
                    self.compared |= {id(operand) for operand in (node.left, *node.comparators)}
                match node.left, node.comparators:
                    case ast.Name(id="__name__") as name, [ast.Constant(value="__main__")]:
                        self.main.add(id(name))
            case ast.ClassDef(decorator_list=decorators, keywords=[ast.keyword(arg="metaclass", value=value)]):
                self.metaclasses.add(id(value))
                self.decorating |= _called_in(decorators)
            case ast.ClassDef(decorator_list=decorators):
                self.decorating |= _called_in(decorators)
            case ast.FunctionDef(decorator_list=decorators):
                self.decorating |= _called_in(decorators)
                if node.name == "__hash__" and not decorators:
                    self.hashing |= {id(name) for name in _returned_hashes(node)}
            case ast.Assign(targets=[ast.Name(id="__slots__" | "__match_args__") as name], value=value):
                if all(_is_harmless(text) for text in _texts(value)):
                    self.declared.add(id(name))

    def _note_call(self, node: ast.Call) -> None:
        if not node.keywords and not any(isinstance(argument, ast.Starred) for argument in node.args):
            match node.args:
                case [_]:
                    self.called.add(id(node.func))
                case [_, ast.Constant(value=str()) as asked, *_]:
                    self.called_to_ask.add(id(node.func))
                    if _is_harmless(asked):
                        self.called_by_name.add(id(node.func))
            if node.args and all(map(_is_harmless, node.args)):
                self.called_by_names.add(id(node.func))
        match node.func:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=[], keywords=[]), attr=name):
                if not self.bound["super"] and name in allowlist.DUNDER_METHODS - allowlist.SECRET_METHODS:
                    self.dunder_of_super.add(id(node.func))

    def _note_typing(self, node: ast.AST) -> None:
        """Take down where names of `typing` may stand."""
        match node:
            case ast.arg(annotation=ast.expr() as annotation) | ast.AnnAssign(annotation=annotation):
                self._note_annotation(annotation)
            case ast.FunctionDef(returns=ast.expr() as annotation):
                self._note_annotation(annotation)
            case ast.ClassDef(bases=bases):
                for base in bases:
                    named = base.value if isinstance(base, ast.Subscript) else base
                    if self.path_of(named) in allowlist.TYPING_BASES:
                        self._note_annotation(base)
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if self.bound[name] == 1:
                if self._is_type_variable(value) or (_is_annotation(value) and self._speaks_of_types(value)):
                    self.imported.setdefault(name, ALIAS)
                    self.annotating |= {id(part) for part in ast.walk(value)}

    def _note_annotation(self, annotation: ast.expr) -> None:
        if _is_annotation(annotation):
            self.annotating |= {id(node) for node in ast.walk(annotation)}

    def _speaks_of_types(self, node: ast.expr) -> bool:
        return any(is_of_typing(self.path_of(part)) for part in ast.walk(node) if isinstance(part, ast.expr))

    def _is_type_variable(self, node: ast.expr) -> bool:
        match node:
            case ast.Call(func=func, args=arguments, keywords=[]):
                plain = all(isinstance(argument, ast.Constant | ast.Name) for argument in arguments)
                return plain and self.path_of(func) == _TYPE_VARIABLE
        return False

    def module_of(self, node: ast.expr) -> str | None:
        """Return the module that an expression names, if it does."""
        match node:
            case ast.Name(id=name):
                return self.modules.get(name)
            case ast.Attribute(value=base, attr=name):
                parent = self.module_of(base)
                path = f"{parent}.{name}"
                return path if parent is not None and path in allowlist.MODULES else None
        return None

    def path_of(self, node: ast.expr) -> str | None:
        """Return the path of what an expression names in a module, if it does."""
        match node:
            case ast.Name(id=name):
                return self.imported.get(name)
            case ast.Attribute(value=base, attr=name):
                module = self.module_of(base)
                return f"{module}.{name}" if module is not None else None
        return None

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
                own = name in self._classes and self.bound[name] == 1
                return own or (name in allowlist.BUILTINS and not self.bound[name])
            case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
                return all(self._is_plain_type(item) for item in items)
        return isinstance(node, ast.Constant)


def is_store(node: ast.Name) -> bool:
    """Return whether a name is bound or deleted, not read."""
    return not isinstance(node.ctx, ast.Load)


def _is_annotation(node: ast.expr) -> bool:
    return all(isinstance(part, _ANNOTATION) for part in ast.walk(node))


def is_of_typing(path: str | None) -> bool:
    """Return whether a path names something of `typing`, or an alias of such."""
    return path is not None and path.startswith(_TYPING)


def _called_in(decorators: Iterable[ast.expr]) -> set[int]:
    return {id(decorator.func) for decorator in decorators if isinstance(decorator, ast.Call)}


def _returned_hashes(function: ast.FunctionDef) -> Iterable[ast.Name]:
    """Return each `hash` of which a function returns the value."""
    for node in ast.walk(function):
        match node:
            case ast.Return(value=ast.Call(func=ast.Name(id="hash") as name)):
                yield name


def _texts(value: ast.expr) -> Iterable[ast.expr]:
    return value.elts if isinstance(value, ast.Tuple | ast.List) else (value,)


def _is_harmless(node: ast.expr) -> bool:
    """Return whether an expression is a constant name by which an attribute may be read unseen."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    try:
        for part in node.value.split("."):
            check_unseen_name(part, 0)
    except Refusal:
        return False
    return True
