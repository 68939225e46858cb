"""The table of operators by name, and the one door through which they are applied.

Owns the checks of what goes in and comes out. Owns no arithmetic.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import torch

from league.operators.controls import copy_parent, linear_0_5
from league.operators.crossovers import dare, extrapolate, layer_select, svd_mix
from league.operators.extras import slerp, ties
from league.operators.mutations import component_mask, full_gaussian, layer_gaussian, svd_perturb
from league.operators.own import Kind, Operator, described, is_path, load_operator
from populora_agents.lora import Adapter

_FUNCTIONS: Mapping[Kind, tuple[Callable[..., Adapter], ...]] = {
    "paper": (svd_perturb, layer_gaussian, component_mask, full_gaussian, dare, layer_select, svd_mix, extrapolate),
    "control": (copy_parent, linear_0_5),
    "extra": (ties, slerp),
}

OPERATORS: Mapping[str, Operator] = {
    function.__name__: described(function, function.__name__, kind)
    for kind, functions in _FUNCTIONS.items()
    for function in functions
}
"""Operators by name: the paper's four mutations, its four crossovers, its two controls, and two extras; arity and
parameters are those of the functions' signatures."""


def find_operator(name: str) -> Operator:
    """Return the operator of that name, or the user's own at that dotted path.

    Raises:
        ValueError: There is none; see `own.load_operator` for paths.
    """
    if name in OPERATORS:
        return OPERATORS[name]
    if is_path(name):
        return load_operator(name)
    raise ValueError(f"operator must be one of {sorted(OPERATORS)} or `package.module:function`, got {name!r}")


def usable(named: Iterable[str]) -> dict[str, bool]:
    """Return all operators that a run may name, and whether each is used when none is named.

    Args:
        named: Names and paths that the user gives; unknown names are left to `league.config.resolve`.

    Raises:
        ValueError: A path leads to no operator.
    """
    own = [find_operator(name) for name in named if is_path(name)]
    return {operator.name: operator.kind == "paper" for operator in (*OPERATORS.values(), *own)}


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
        name: Key of `OPERATORS`, or the dotted path of an operator of one's own.
        parents: As many as its arity, the better one first; never changed.
        generator: The only source of chance: same generator, same bits.
        parameters: Those that differ from the defaults.
        scalings: alpha / r of each parent, where known; they must agree, since the child is scaled as its parents.

    Returns:
        An adapter of the parents' modules, shapes, types and devices, in memory of its own.

    Raises:
        ValueError: An unknown operator or parameter, a parameter out of range, the wrong number of parents, parents
            that do not fit each other or hold NaN or infinities (the message says which module and why), or a child
            that is too large for its type or, of one's own operator, unlike its parents.
    """
    operator = find_operator(name)
    given = dict(parameters or {})
    if unknown := sorted(given.keys() - operator.parameters.keys()):
        raise ValueError(f"{name} has no parameter {unknown!r}, it takes {sorted(operator.parameters)!r}")
    if len(parents) != operator.arity:
        raise ValueError(f"{name} takes {operator.arity} parents, got {len(parents)}")
    check_parents(parents, scalings)
    with torch.no_grad(), _one_thread():
        child = operator.function(*parents, generator=generator, **{**operator.parameters, **given})
    _check_like(child, parents[0], f"the child of {name}")
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
        _check_like(parent, parents[0], f"parent {place}")


def _check_one_rank(parent: Adapter, place: int) -> None:
    lora_ranks = {factors.lora_rank for factors in parent.values()}
    if len(lora_ranks) > 1:
        raise ValueError(f"parent {place} mixes ranks {sorted(lora_ranks)!r}, all modules must share one")
    for module, factors in parent.items():
        for letter, factor in (("A", factors.A), ("B", factors.B)):
            if not factor.dtype.is_floating_point:
                raise ValueError(f"parent {place}: {letter} of {module!r} must be floating point, got {factor.dtype}")


def _check_like(adapter: Adapter, first: Adapter, owner: str) -> None:
    if adapter.keys() != first.keys():
        odd = sorted(adapter.keys() ^ first.keys())
        raise ValueError(f"{owner} differs from parent 0 in modules, for example {odd[0]!r}")
    for module, factors in adapter.items():
        for letter, factor, other in (("A", factors.A, first[module].A), ("B", factors.B, first[module].B)):
            for what, mine, theirs in (
                ("shape", tuple(factor.shape), tuple(other.shape)),
                ("dtype", factor.dtype, other.dtype),
                ("device", factor.device, other.device),
            ):
                if mine != theirs:
                    raise ValueError(
                        f"{owner} differs from parent 0 in {what} of {letter} of {module!r}: {mine} and {theirs}"
                    )


def _check_finite(adapter: Adapter, owner: str) -> None:
    for module, factors in adapter.items():
        for letter, factor in (("A", factors.A), ("B", factors.B)):
            # Least and largest entry are NaN where any is: one pass, where `isfinite` writes several tensors as large.
            if factor.numel() and not bool(torch.isfinite(torch.stack(factor.aminmax())).all()):
                raise ValueError(f"{owner} is not finite: {letter} of {module!r} holds NaN or infinities")


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Keep torch to one thread: the same bits whatever the number of threads, and on busy cores no waiting.

    Operators do thousands of small products and decompositions. Two threads that share them are no faster on idle
    cores, and twenty times slower where one of them often waits for its core.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
