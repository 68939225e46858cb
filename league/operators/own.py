"""Operators of the user's own: a function, or an `Operator`, given by dotted path.

Owns how a path is read and how arity and parameters are found from a signature. Owns neither the table nor the checks
of what an operator returns (`table`).
"""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from populora_agents.lora import Adapter

Kind = Literal["paper", "control", "extra", "own"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A way to make a child of one or two parents."""

    name: str
    arity: Literal[1, 2]
    """Number of parents."""
    function: Callable[..., Adapter]
    """Called as `function(*parents, generator=..., **parameters)`; must not change its parents."""
    parameters: Mapping[str, float]
    """Every parameter it takes, with its default."""
    kind: Kind = "own"
    """Where it comes from; only those of the paper are used when none is named."""


def is_path(name: str) -> bool:
    """Return whether `name` is a dotted path rather than a name of the table."""
    return "." in name or ":" in name


def load_operator(path: str) -> Operator:
    """Return the operator at a dotted path, `package.module:function` or `package.module.function`.

    The path may also lead to an `Operator`; it is taken as it is, but for its name. Importing runs the module's code.

    Raises:
        ValueError: There is no such module or attribute, its import fails, or the function cannot be an operator.
    """
    module_name, _, attribute = path.partition(":") if ":" in path else path.rpartition(".")
    if not module_name or not attribute or attribute.startswith("."):
        raise ValueError(f"expected `package.module:function`, got {path!r}")
    try:
        found: Any = importlib.import_module(module_name)
    except (ImportError, SyntaxError, ValueError) as error:
        raise ValueError(f"operator {path!r}: cannot import {module_name!r}: {error}") from error
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            raise ValueError(f"operator {path!r}: {module_name!r} has no {attribute!r}") from error
    if isinstance(found, Operator):
        return Operator(name=path, arity=found.arity, function=found.function, parameters=found.parameters)
    if not inspect.isfunction(found):
        raise ValueError(f"operator {path!r} must be a function or an `Operator`, got a {type(found).__name__}")
    return described(found, path)


def described(function: Callable[..., Adapter], name: str, kind: Kind = "own") -> Operator:
    """Return an operator with what the signature says of it.

    The parents are its positional parameters, one or two, without defaults; `generator` is keyword-only; every other
    keyword-only parameter is a number with a default.

    Raises:
        ValueError: The signature says something else.
    """
    parents, parameters, draws = 0, dict[str, float](), False
    for one in inspect.signature(function).parameters.values():
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) and one.default is one.empty:
            parents += 1
        elif one.kind is one.KEYWORD_ONLY and one.name == "generator":
            draws = True
        elif one.kind is one.KEYWORD_ONLY and _is_number(one.default):
            parameters[one.name] = float(one.default)
        else:
            raise ValueError(
                f"operator {name!r}: `{one}` must be a parent (positional, without default), `generator` "
                "(keyword-only), or a number (keyword-only, with a default)"
            )
    if not draws:
        raise ValueError(f"operator {name!r} must take a keyword-only `generator`")
    if parents == 1:
        return Operator(name=name, arity=1, function=function, parameters=MappingProxyType(parameters), kind=kind)
    if parents == 2:
        return Operator(name=name, arity=2, function=function, parameters=MappingProxyType(parameters), kind=kind)
    raise ValueError(f"operator {name!r} must take one parent or two, its signature has {parents}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
