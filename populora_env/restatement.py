"""A program restated for a Python that decides otherwise what the language leaves open.

Owns the rewriting. A value that comes out differently then hangs on the interpreter, so that no reading of the program
gives it: the identity of equal numbers and texts, the words of exceptions that Python itself raises, where memory
ends, when garbage is collected, the longest number that is written out, the time zone; and all that is worked out from
a text that holds an address. What such a value is worth is the affair of `proposals`.
"""

from __future__ import annotations

import ast
from typing import Final, TypeVar

from populora_env.sensitivity import depends_on_addresses
from populora_env.source import Nodes

_OWN_SENSE = (type(None), bool, type(...))
"""Types of the constants whose identity the language promises."""
_TIME_ZONED: Final = frozenset({"datetime"})

# Names that begin and end with two underscores: admission keeps them out of programs, and classes do not mangle them.
_PRELUDE: Final = ast.parse(
    """
def __prepare__():
    import gc, opcode, os, sys, time
    os.environ['TZ'] = 'AAA+11'
    time.tzset()
    sys.set_int_max_str_digits(0)
    gc.enable()
    gc.set_threshold(50)
    immutable = (int, float, complex, str, bytes)
    raising = {opcode.opmap['RAISE_VARARGS'], opcode.opmap['RERAISE']}

    def is_same(left, right):
        kind = type(left)
        if kind is not type(right):
            return False
        if kind in immutable:
            return (left is not right) if left is right or left == right else False
        if kind in (tuple, frozenset) and len(left) == len(right):
            if left is right or all(map(is_object, left, right)):
                return left is not right
        return left is right

    def is_object(left, right):
        return left is right

    def fail():
        os._exit(0)

    def is_own(error):
        last = error.__traceback__
        if last is None:
            return True
        while last.tb_next is not None:
            last = last.tb_next
        code = last.tb_frame.f_code
        return code.co_filename == '<program>' and code.co_code[last.tb_lasti] in raising

    def reword(error):
        for inner in getattr(error, 'exceptions', ()):
            reword(inner)
        if isinstance(error, MemoryError):
            fail()
        if isinstance(error, (KeyError, StopIteration)) or is_own(error):
            return
        error.args = tuple('?' if type(part) is str else part for part in error.args)
        if isinstance(error, UnicodeError) and hasattr(error, 'reason'):
            error.reason = '?'
        for name, part in list(vars(error).items()):
            if type(part) is str:
                setattr(error, name, '?')

    def caught(*values):
        for value in values:
            if isinstance(value, BaseException):
                reword(value)

    def seen(text):
        if type(text) is str and (' at 0x' in text or ' from 0x' in text):
            fail()
        return text

    def checked(make):
        return lambda *given: seen(make(*given))

    return is_same, caught, fail, MemoryError, seen, checked

__is_same__, __caught__, __fail__, __OutOfMemory__, __seen__, __checked__ = __prepare__()
"""
)
_TEXT_TYPE, _TEXT_FUNCTIONS = "str", frozenset({"repr", "ascii", "format"})
"""What makes a text of anything; the type is used for other things too."""
_TEXT_METHODS: Final = frozenset({"format", "join", "getvalue", "dumps", "__repr__", "__str__", "__format__"})
_FAIL: Final = ast.parse("__fail__()").body


def hangs_on_interpreter(nodes: Nodes) -> bool:
    """Return whether a program does anything that restating it could change."""
    return any(map(_is_open, nodes)) or depends_on_addresses(nodes)


def _is_open(node: ast.AST) -> bool:
    match node:
        case ast.Try() | ast.TryStar() | ast.With():
            return True
        case ast.Compare():
            return _compares_identity(node)
        case ast.FunctionDef(name="__exit__"):
            return True
        case ast.Import(names=names):
            return any(alias.name in _TIME_ZONED for alias in names)
        case ast.ImportFrom(module=module):
            return module in _TIME_ZONED
    return False


def _compares_identity(node: ast.Compare) -> bool:
    """Return whether a comparison asks for an identity that the language may not promise."""
    by_identity = any(isinstance(operator, ast.Is | ast.IsNot) for operator in node.ops)
    promised = any(_is_promised(operand) for operand in (node.left, *node.comparators))
    return by_identity and not promised


def _is_promised(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, _OWN_SENSE)


def restate(program: str) -> str:
    """Return the restated program; `program` must be one that Python parses.

    Raises:
        ValueError: Python cannot write the restated program down.
    """
    tree = _Rewriter().visit(ast.parse(program))
    futures = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    rest = [node for node in tree.body if node not in futures]
    return ast.unparse(ast.fix_missing_locations(ast.Module(body=[*futures, *_PRELUDE.body, *rest], type_ignores=[])))


_Try = TypeVar("_Try", ast.Try, ast.TryStar)


class _Rewriter(ast.NodeTransformer):
    """Puts the functions of the prelude where the language leaves something open."""

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        if len(node.ops) > 1 or not _compares_identity(node):
            return node
        same = _call("__is_same__", node.left, *node.comparators)
        return same if isinstance(node.ops[0], ast.Is) else ast.UnaryOp(op=ast.Not(), operand=same)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        for part in node.values:
            self.visit(part)
        return _call("__seen__", node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.FormattedValue:
        node.value = self.visit(node.value)
        if isinstance(node.format_spec, ast.JoinedStr):
            for part in node.format_spec.values:
                self.visit(part)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        return _call("__seen__", node) if isinstance(node.op, ast.Mod) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> list[ast.stmt]:
        self.generic_visit(node)
        if isinstance(node.op, ast.Mod) and isinstance(node.target, ast.Name):
            return [node, ast.Expr(value=_call("__seen__", _name(node.target.id)))]
        return [node]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node.func:
            case ast.Name(id=name) if name in _TEXT_FUNCTIONS or name == _TEXT_TYPE:
                # The name itself is called on the spot, and so needs no check of its own.
                node.args = [self.visit(argument) for argument in node.args]
                for keyword in node.keywords:
                    self.visit(keyword)
                return _call("__seen__", node)
            case ast.Name(id="map") if node.args and _is_text_type(node.args[0]):
                node.args[0] = _call("__checked__", node.args[0])
        self.generic_visit(node)
        of_text = isinstance(node.func, ast.Attribute) and node.func.attr in _TEXT_METHODS
        return _call("__seen__", node) if of_text else node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        made = isinstance(node.ctx, ast.Load) and node.id in _TEXT_FUNCTIONS
        return _call("__checked__", node) if made else node

    def visit_Try(self, node: ast.Try) -> ast.Try:
        return self._with_failure(node)

    def visit_TryStar(self, node: ast.TryStar) -> ast.TryStar:
        return self._with_failure(node)

    def visit_With(self, node: ast.With) -> ast.With:
        self.generic_visit(node)
        node.body = [ast.Try(body=node.body, handlers=[_failure()], orelse=[], finalbody=[])]
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        self.generic_visit(node)
        if node.name is not None:
            node.body = [_look_at(_name(node.name)), *node.body]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        if node.name == "__exit__":
            given: list[ast.expr] = [_name(argument.arg) for argument in (*node.args.posonlyargs, *node.args.args)[1:]]
            if node.args.vararg is not None:
                given.append(ast.Starred(value=_name(node.args.vararg.arg), ctx=ast.Load()))
            node.body = [_look_at(*given), *node.body]
        return node

    def _with_failure(self, node: _Try) -> _Try:
        """Let the program end where it would go on after running out of memory."""
        self.generic_visit(node)
        node.handlers = [_failure(), *node.handlers]
        return node


def _failure() -> ast.ExceptHandler:
    return ast.ExceptHandler(type=_name("__OutOfMemory__"), name=None, body=_FAIL)


def _look_at(*values: ast.expr) -> ast.Expr:
    return ast.Expr(value=_call("__caught__", *values))


def _is_text_type(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == _TEXT_TYPE


def _call(name: str, *values: ast.expr) -> ast.Call:
    return ast.Call(func=_name(name), args=list(values), keywords=[])


def _name(name: str) -> ast.Name:
    return ast.Name(id=name, ctx=ast.Load())
