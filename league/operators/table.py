"""The table of operators by name, and the one door through which they are applied.

Owns the checks of what goes in and comes out. Owns no arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import torch

from league.operators.controls import copy_parent, linear_0_5
from league.operators.crossovers import dare, extrapolate, layer_select, svd_mix
from league.operators.mutations import component_mask, full_gaussian, layer_gaussian, svd_perturb
from populora_agents.lora import Adapter


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
    control: bool = False
    """Whether it is there to be compared with rather than to be used."""


def _operator(
    function: Callable[..., Adapter], arity: Literal[1, 2], *, control: bool = False, **parameters: float
) -> Operator:
    return Operator(
        name=function.__name__,
        arity=arity,
        function=function,
        parameters=MappingProxyType(parameters),
        control=control,
    )


OPERATORS: Mapping[str, Operator] = {
    operator.name: operator
    for operator in (
        _operator(svd_perturb, 1, epsilon=0.1),
        _operator(layer_gaussian, 1, epsilon=0.1, share=0.33),
        _operator(component_mask, 1, share=0.3),
        _operator(full_gaussian, 1, epsilon=0.15),
        _operator(dare, 2, drop=0.7, weight=0.5),
        _operator(layer_select, 2),
        _operator(svd_mix, 2),
        _operator(extrapolate, 2, low=1.0, high=1.5),
        _operator(copy_parent, 1, control=True),
        _operator(linear_0_5, 2, control=True),
    )
}
"""Operators by name: the paper's four mutations, its four crossovers, its two controls."""


def apply(
    name: str,
    parents: Sequence[Adapter],
    generator: torch.Generator,
    parameters: Mapping[str, float] | None = None,
    *,
    scalings: Sequence[float] | None = None,
) -> Adapter:
    """Return the child that the named operator makes.

    Args:
        name: Key of `OPERATORS`.
        parents: As many as its arity, the better one first; never changed.
        generator: The only source of chance: same generator, same bits.
        parameters: Those that differ from the defaults.
        scalings: alpha / r of each parent, where known; they must agree, since the child is scaled as its parents.

    Returns:
        An adapter of the parents' modules, shapes, types and devices, in memory of its own.

    Raises:
        ValueError: An unknown operator or parameter, a parameter out of range, the wrong number of parents, parents
            that do not fit each other or hold NaN or infinities (the message says which module and why), or a child
            that is too large for its type.
    """
    operator = OPERATORS.get(name)
    if operator is None:
        raise ValueError(f"`name` must be one of {sorted(OPERATORS)}, got {name!r}")
    given = dict(parameters or {})
    if unknown := sorted(given.keys() - operator.parameters.keys()):
        raise ValueError(f"{name} has no parameter {unknown!r}, it takes {sorted(operator.parameters)!r}")
    if len(parents) != operator.arity:
        raise ValueError(f"{name} takes {operator.arity} parents, got {len(parents)}")
    check_parents(parents, scalings)
    child = operator.function(*parents, generator=generator, **{**operator.parameters, **given})
    _check_finite(child, f"the child of {name}")
    return child


def check_parents(parents: Sequence[Adapter], scalings: Sequence[float] | None = None) -> None:
    """Check that the parents fit each other.

    Args:
        parents: At least one.
        scalings: alpha / r of each parent, or None.

    Raises:
        ValueError: They differ in modules, ranks, shapes, types, devices or scaling, mix ranks, or are not finite.
    """
    if scalings is not None and len(scalings) != len(parents):
        raise ValueError(f"`scalings` must have one value a parent, got {len(scalings)} for {len(parents)}")
    if scalings is not None and len(set(scalings)) > 1:
        raise ValueError(f"parents differ in scaling alpha / r: {list(scalings)!r}")
    for place, parent in enumerate(parents):
        if not parent:
            raise ValueError(f"parent {place} has no modules")
        _check_one_rank(parent, place)
        _check_finite(parent, f"parent {place}")
        _check_like(parent, parents[0], place)


def _check_one_rank(parent: Adapter, place: int) -> None:
    lora_ranks = {factors.lora_rank for factors in parent.values()}
    if len(lora_ranks) > 1:
        raise ValueError(f"parent {place} mixes ranks {sorted(lora_ranks)!r}, all modules must share one")
    for module, factors in parent.items():
        for letter, factor in (("A", factors.A), ("B", factors.B)):
            if not factor.dtype.is_floating_point:
                raise ValueError(f"parent {place}: {letter} of {module!r} must be floating point, got {factor.dtype}")


def _check_like(parent: Adapter, first: Adapter, place: int) -> None:
    if parent.keys() != first.keys():
        odd = sorted(parent.keys() ^ first.keys())
        raise ValueError(f"parent {place} differs from parent 0 in modules, for example {odd[0]!r}")
    for module, factors in parent.items():
        for letter, factor, other in (("A", factors.A, first[module].A), ("B", factors.B, first[module].B)):
            for what, mine, theirs in (
                ("shape", tuple(factor.shape), tuple(other.shape)),
                ("dtype", factor.dtype, other.dtype),
                ("device", factor.device, other.device),
            ):
                if mine != theirs:
                    raise ValueError(
                        f"parent {place} differs from parent 0 in {what} of {letter} of {module!r}: {mine} and {theirs}"
                    )


def _check_finite(adapter: Adapter, owner: str) -> None:
    for module, factors in adapter.items():
        for letter, factor in (("A", factors.A), ("B", factors.B)):
            if not bool(torch.isfinite(factor).all()):
                raise ValueError(f"{owner} is not finite: {letter} of {module!r} holds NaN or infinities")
