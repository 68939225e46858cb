"""Crossovers that the paper does not use and people know from merging: `ties` and `slerp`.

Symbols: Delta_i = B_i A_i per adapted matrix of parent i, r its rank; C_i [k, k'] its coordinates in orthonormal bases
that span both parents, k at most 2 r: a linear combination or a product of deltas is one of the C_i. Both act on the
delta, never on A and B apart, and end in a truncation to rank r. Children are canonical, with the geometric mean of
their parents' |A| : |B|.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from league.operators.crossovers import crossed
from league.operators.groups import ShapeGroup
from league.operators.spectral import Spectrum, coordinates, svd_between, truncated
from populora_agents.lora import Adapter

_LEAST_SINE = 1e-6
"""Below it the angle of two deltas is one of rounding, and the straight line between them is the arc."""


@torch.no_grad()
def ties(first: Adapter, second: Adapter, *, generator: torch.Generator, density: float = 0.2) -> Adapter:
    """Keep each parent's largest entries, and of two that differ in sign the larger one.

    Trim: of each parent's matrix the ceil(density x size) entries of largest size stay, the others become 0. Elect:
    the sign of an entry is that of the parents' sum. Merge: an entry is the mean of those parents that have it and
    agree with its sign, 0 where there is none. Source: TIES-merging (arXiv 2306.01708), with lambda = 1. There the
    entries are those of the full delta, whose result has full rank and has to be formed. Here they are coordinates
    U^T Delta_i V in the principal bases of both parents: U of [Delta_1, Delta_2], V of [Delta_1; Delta_2]. At the
    default density an adapter crossed with itself gives back its delta.

    Args:
        first: Factors of one rank.
        second: Same modules and shapes; the order of the parents does not matter.
        generator: Draws rows of A for components that are dead in the child.
        density: Share of entries kept, in (0, 1].

    Raises:
        ValueError: `density` is out of range.
    """
    if not 0 < density <= 1:
        raise ValueError(f"`density` must be above 0 and at most 1, got {density!r}")

    def cross(group: ShapeGroup) -> Spectrum:
        lora_rank = group.parents[0][0].shape[1]
        common = coordinates(group.parents)
        left = torch.linalg.svd(torch.cat(common.cores, dim=-1), full_matrices=False)[0]
        right = torch.linalg.svd(torch.cat(common.cores, dim=-2), full_matrices=False)[2].mT
        entries = torch.stack([left.mT @ core @ right for core in common.cores])
        # An entry that is zero but for rounding must not vote, let alone halve a mean.
        entries = torch.where(entries.abs() > common.floor[:, None, None], entries, 0.0)
        merged = _merged(_trimmed(entries, density))
        basis_b, basis_a = common.basis_b.times(left), common.basis_a.times(right)
        return truncated(svd_between(basis_b, merged, basis_a, common.floor, 2 * lora_rank), lora_rank)

    return crossed(first, second, cross, generator)


def _trimmed(entries: Tensor, density: float) -> Tensor:
    """Return matrices [..., k, k'] with all but their largest entries set to 0."""
    sizes = entries.abs().flatten(-2)
    kept = math.ceil(density * sizes.shape[-1] - 1e-9)
    least = sizes.topk(kept, dim=-1).values[..., -1]
    return torch.where(entries.abs() >= least[..., None, None], entries, 0.0)


def _merged(entries: Tensor) -> Tensor:
    """Return the mean over the first dimension of the entries that have the sign of its sum."""
    agree = (entries * entries.sum(dim=0).sign() > 0).to(entries.dtype)
    return (entries * agree).sum(dim=0) / agree.sum(dim=0).clamp(min=1.0)


@torch.no_grad()
def slerp(first: Adapter, second: Adapter, *, generator: torch.Generator, along: float = 0.5) -> Adapter:
    """Go along the arc, not the chord, from one parent's delta to the other's, in every matrix by itself.

    With D_i = Delta_i / |Delta_i| (Frobenius) and theta the angle of D_1 and D_2, Delta = ((1 - t) |Delta_1| +
    t |Delta_2|) (sin((1 - t) theta) D_1 + sin(t theta) D_2) / sin(theta), truncated to rank r. Where the mean of
    unrelated parents is shorter than both by the root of 2, this one is not, but for what the truncation takes. Source:
    Shoemake 1985, for unit vectors; the length, linear in t, is ours. Parallel or opposite deltas, and a delta of
    zero, have no arc: there it is (1 - t) Delta_1 + t Delta_2.

    Args:
        first: Factors of one rank.
        second: Same modules and shapes.
        generator: Draws rows of A for components that are dead in the child.
        along: t, how far from `first` to `second`, in [0, 1].

    Raises:
        ValueError: `along` is out of range.
    """
    if not 0 <= along <= 1:
        raise ValueError(f"`along` must be in [0, 1], got {along!r}")

    def cross(group: ShapeGroup) -> Spectrum:
        lora_rank = group.parents[0][0].shape[1]
        common = coordinates(group.parents)
        core_1, core_2 = common.cores
        weight_1, weight_2 = _arc_weights(core_1, core_2, along)
        core = weight_1[:, None, None] * core_1 + weight_2[:, None, None] * core_2
        return truncated(svd_between(common.basis_b, core, common.basis_a, common.floor, 2 * lora_rank), lora_rank)

    return crossed(first, second, cross, generator)


def _arc_weights(first: Tensor, second: Tensor, along: float) -> tuple[Tensor, Tensor]:
    """Return what each of two matrices [n, k, k'] counts for at `along` of the arc between them, [n] each."""
    norm_1, norm_2 = (torch.linalg.vector_norm(core, dim=(-2, -1)) for core in (first, second))
    cosine = ((first * second).sum(dim=(-2, -1)) / (norm_1 * norm_2)).clamp(-1.0, 1.0)
    angle = torch.arccos(cosine)
    length = (1.0 - along) * norm_1 + along * norm_2
    curved = torch.sin(angle) > _LEAST_SINE  # False where a delta is zero, and the cosine NaN
    weight_1 = length * torch.sin((1.0 - along) * angle) / torch.sin(angle) / norm_1
    weight_2 = length * torch.sin(along * angle) / torch.sin(angle) / norm_2
    return torch.where(curved, weight_1, 1.0 - along), torch.where(curved, weight_2, along)
