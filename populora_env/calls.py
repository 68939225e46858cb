"""Inputs written as calls: `f(3, 'ab')` for the argument tuple `(3, 'ab')`.

Owns the way there and back. A small model writes a call right where it forgets the comma of a one-tuple or the second
block. Owns no judgement: whether the arguments are literals is the verifier's to say; nothing is evaluated here.
"""

from __future__ import annotations

import ast

from populora_env.source import SourceError, normalise, parse_program


def as_call(arguments: str) -> str:
    """Return the call of `f` with an argument tuple that is written as a literal."""
    try:
        body = parse_program(arguments).body
    except SourceError:
        body = []
    if len(body) == 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Tuple):
        return f"f({', '.join(ast.unparse(element) for element in body[0].value.elts)})"
    return f"f(*{arguments})"


def split_calls(source: str) -> tuple[str, tuple[str, ...]]:
    """Cut the calls of `f` off the end of a program.

    `print(f(...))` counts as a call: what it shows is what the call gives.

    Returns:
        The rest in normal form, empty when there is none, and the argument tuples in their order.

    Raises:
        SourceError: The text is no program within the bounds.
    """
    tree = parse_program(source)
    inputs: list[str] = []
    while tree.body and (arguments := _arguments(tree.body[-1])) is not None:
        inputs.insert(0, arguments)
        tree.body.pop()
    if not tree.body:
        return "", tuple(inputs)
    try:
        rest = ast.unparse(tree)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"program has no normal form: {error}") from error
    return normalise(rest), tuple(inputs)


def _arguments(statement: ast.stmt) -> str | None:
    """Return the argument tuple of a statement that is a call of `f`, None for any other."""
    if not isinstance(statement, ast.Expr):
        return None
    found = _positional("print", statement.value)
    found = _positional("f", found[0] if found is not None and len(found) == 1 else statement.value)
    if found is None:
        return None
    try:
        return ast.unparse(ast.Tuple(elts=found, ctx=ast.Load()))
    except (ValueError, RecursionError):
        return None


def _positional(name: str, node: ast.expr) -> list[ast.expr] | None:
    """Return the arguments of a call of `name`, None where the node is no such call, or not all are positional."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != name or node.keywords:
        return None
    return None if any(isinstance(argument, ast.Starred) for argument in node.args) else node.args
