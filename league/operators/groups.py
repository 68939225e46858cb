"""Adapters cut into batches of equal shape, and put together again.

Owns the passage between an adapter (factors by module, any float type) and stacked factors in the type that operators
compute in. Modules are taken in the order of their names, so that the order of an adapter's dict never decides which
module gets which random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from populora_agents.lora import Adapter, LoraFactors


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeGroup:
    """The modules of one shape, for one or several parents."""

    modules: tuple[str, ...]
    """n module paths, sorted."""
    parents: tuple[tuple[Tensor, Tensor], ...]
    """For each parent A [n, r, d_in] and B [n, d_out, r], float32 (float64 when the parent is)."""


def shape_groups(*parents: Adapter) -> Iterator[ShapeGroup]:
    """Yield the groups of the parents' modules, in the order of each group's first module."""
    modules: dict[tuple[int, ...], list[str]] = {}
    for module in sorted(parents[0]):
        factors = parents[0][module]
        modules.setdefault((*factors.A.shape, *factors.B.shape), []).append(module)
    for names in modules.values():
        yield ShapeGroup(modules=tuple(names), parents=tuple(_stacked(parent, names) for parent in parents))


def _stacked(adapter: Adapter, names: Sequence[str]) -> tuple[Tensor, Tensor]:
    a = torch.stack([adapter[name].A.detach() for name in names])
    b = torch.stack([adapter[name].B.detach() for name in names])
    dtype = torch.promote_types(a.dtype, torch.float32)
    return a.to(dtype), b.to(dtype)


def unstack(group: ShapeGroup, a: Tensor, b: Tensor, like: Adapter) -> Adapter:
    """Return the group's part of a child, with its own memory, in the types of `like`."""
    part: Adapter = {}
    for name, one_a, one_b in zip(group.modules, a, b, strict=True):
        part[name] = LoraFactors(
            A=one_a.to(like[name].A.dtype, copy=True).contiguous(),
            B=one_b.to(like[name].B.dtype, copy=True).contiguous(),
        )
    return part


def ordered(parts: Adapter, like: Adapter) -> Adapter:
    """Return `parts` with its modules in the order of `like`."""
    return {name: parts[name] for name in like}


def copied(factors: LoraFactors) -> LoraFactors:
    """Return the same bits in memory of their own."""
    return LoraFactors(A=factors.A.detach().clone(), B=factors.B.detach().clone())
