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

STACK_BYTES = 1 << 22
"""About the most that one parent's stacked A or B takes, so that what is worked on fits the processor's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeGroup:
    """Some modules of one shape, for one or several parents."""

    modules: tuple[str, ...]
    """n module paths, sorted."""
    parents: tuple[tuple[Tensor, Tensor], ...]
    """For each parent A [n, r, d_in] and B [n, d_out, r], float32 (float64 when the parent is)."""


def shape_groups(*parents: Adapter) -> Iterator[ShapeGroup]:
    """Yield the groups of the parents' modules: shapes in the order of each one's first module, in small batches."""
    modules: dict[tuple[int, ...], list[str]] = {}
    for module in sorted(parents[0]):
        factors = parents[0][module]
        modules.setdefault((*factors.A.shape, *factors.B.shape), []).append(module)
    for names in modules.values():
        factors = parents[0][names[0]]
        batch = max(1, STACK_BYTES // (4 * max(factors.A.numel(), factors.B.numel(), 1)))
        for start in range(0, len(names), batch):
            some = names[start : start + batch]
            yield ShapeGroup(modules=tuple(some), parents=tuple(_stacked(parent, some) for parent in parents))


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
