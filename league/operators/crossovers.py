"""Operators of two parents, the better one first (docs/paper.md, Operators: S names, R formulas).

Symbols: Delta_i = B_i A_i = U_i S_i V_i^T per adapted matrix of parent i, r its rank. `extrapolate` and `svd_mix` act
on deltas, `dare` on entries of S_i^(1/2) V_i^T, `layer_select` copies. Linear combinations are formed exactly, at rank
2 r, as [w_1 B_1, w_2 B_2] [A_1; A_2], and truncated by SVD. Children are canonical (but for `layer_select`'s), each
matrix with the geometric mean of its parents' |A| : |B|. All but `dare` give back the delta of two equal parents.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from league.operators.groups import ShapeGroup, copied, ordered, shape_groups, unstack
from league.operators.spectral import (
    Spectrum,
    balance,
    combine_deltas,
    mean_balance,
    refactor,
    svd_of_sum,
    thin_svd,
    truncated,
)
from league.operators.tall import Tall
from populora_agents.lora import Adapter


@torch.no_grad()
def layer_select(first: Adapter, second: Adapter, *, generator: torch.Generator) -> Adapter:
    """Copy each matrix whole, bit for bit, from a parent drawn with even odds.

    Source: R.

    Args:
        first: Factors of one rank.
        second: Same modules and shapes.
        generator: One draw a matrix, in the order of the modules' names.
    """
    names = sorted(first)
    draws = torch.rand(len(names), generator=generator, device=generator.device).tolist()
    chosen = {name: first if draw < 0.5 else second for name, draw in zip(names, draws, strict=True)}
    return {name: copied(chosen[name][name]) for name in first}


@torch.no_grad()
def extrapolate(
    better: Adapter, worse: Adapter, *, generator: torch.Generator, low: float = 1.0, high: float = 1.5
) -> Adapter:
    """Go from the worse parent's delta to the better one's, and beyond it.

    Delta = Delta_worse + eta (Delta_better - Delta_worse), eta uniform in [low, high], one for the whole adapter. At
    eta 1 it is the better parent's delta. Source: R.

    Args:
        better: Factors of one rank.
        worse: Same modules and shapes.
        generator: Draws eta, and rows of A for components that are dead in the child.
        low: Least eta.
        high: Largest eta, >= low.

    Raises:
        ValueError: The range of eta is empty or not finite.
    """
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"`low` <= `high` must be finite, got {low!r} and {high!r}")
    draw = torch.rand((), generator=generator, device=generator.device, dtype=torch.float64).item()
    eta = low + (high - low) * draw
    return combined(better, worse, (eta, 1.0 - eta), generator)


@torch.no_grad()
def svd_mix(first: Adapter, second: Adapter, *, generator: torch.Generator) -> Adapter:
    """Join the leading singular components of one parent with the trailing ones of the other.

    U = [U_1[:, :k], U_2[:, k:]], S and V likewise; k uniform in [1, r - 1] and which parent leads with even odds, one
    draw of each for the whole adapter. Source: R, which does not say whether k is drawn once or for every matrix. At
    r = 1 the child is the leading parent's delta.

    Args:
        first: Factors of one rank.
        second: Same modules and shapes.
        generator: Draws k, the leader, and rows of A for components that are dead in the child.
    """
    draws = torch.rand(2, generator=generator, device=generator.device, dtype=torch.float64).tolist()
    lora_rank = next(iter(first.values())).lora_rank
    cut = 1 + int(draws[0] * max(lora_rank - 1, 1))
    lead, tail = (0, 1) if draws[1] < 0.5 else (1, 0)

    def cross(group: ShapeGroup) -> Spectrum:
        spectra = [thin_svd(a, b) for a, b in group.parents]
        leading, trailing = spectra[lead], spectra[tail]
        return Spectrum(
            left=leading.left.part(0, cut).beside(trailing.left.part(cut, lora_rank)),
            values=torch.cat([leading.values[..., :cut], trailing.values[..., cut:]], dim=-1),
            right=leading.right.part(0, cut).beside(trailing.right.part(cut, lora_rank)),
        )

    return crossed(first, second, cross, generator)


@torch.no_grad()
def dare(
    first: Adapter, second: Adapter, *, generator: torch.Generator, drop: float = 0.7, weight: float = 0.5
) -> Adapter:
    """Drop entries of both parents' A at random, in the singular basis, scale up the others, and combine the parents.

    Delta = w Delta'_1 + (1 - w) Delta'_2, Delta'_i = B_i (M_i * A_i) / (1 - drop), M_i a mask of independent entries
    that are 0 with probability `drop`. Unbiased before it is truncated to rank r. Source: DARE (arXiv 2311.03099) and
    R; there the entries of a full delta are dropped, which would have full rank and would have to be formed, so here
    entries of S^(1/2) V^T are.

    Args:
        first: Factors of one rank.
        second: Same modules and shapes.
        generator: Draws the masks, and rows of A for components that are dead.
        drop: Share of entries dropped, in [0, 1).
        weight: w, that of `first`, in [0, 1].

    Raises:
        ValueError: A parameter is out of range.
    """
    if not 0 <= drop < 1:
        raise ValueError(f"`drop` must be in [0, 1), got {drop!r}")
    if not 0 <= weight <= 1:
        raise ValueError(f"`weight` must be in [0, 1], got {weight!r}")

    def cross(group: ShapeGroup) -> Spectrum:
        masked = [masked_canonical(a, b, drop, generator) for a, b in group.parents]
        shares = (weight, 1.0 - weight)
        products = [(a, left.scaled(share)) for (a, left), share in zip(masked, shares, strict=True)]
        return truncated(svd_of_sum(products), group.parents[0][0].shape[1])

    return crossed(first, second, cross, generator)


def masked_canonical(a: Tensor, b: Tensor, drop: float, generator: torch.Generator) -> tuple[Tensor, Tall]:
    """Return S^(1/2) V^T with entries dropped, and U S^(1/2) / (1 - drop), factors of B A = U S V^T in the mean.

    Not canonical: in the basis of the singular vectors, which decides what a mask takes, and without a balance, which
    the product does not show.

    Args:
        a: float [n, r, d_in].
        b: float [n, d_out, r].
        drop: In [0, 1).
        generator: Draws the mask.
    """
    spectrum = thin_svd(a, b)
    root = torch.diag_embed(spectrum.values.sqrt())
    canonical = spectrum.right.times(root).rows()
    kept = torch.rand(a.shape, generator=generator, device=generator.device, dtype=torch.float32).ge_(drop)
    return canonical.mul_(kept.to(a.device)), spectrum.left.times(root).scaled(1.0 / (1.0 - drop))


def combined(first: Adapter, second: Adapter, weights: tuple[float, float], generator: torch.Generator) -> Adapter:
    """Return the nearest delta of rank r to w_1 Delta_1 + w_2 Delta_2, canonical; weights of any sign."""

    def cross(group: ShapeGroup) -> Spectrum:
        lora_rank = group.parents[0][0].shape[1]
        return truncated(combine_deltas(list(group.parents), list(weights)), lora_rank)

    return crossed(first, second, cross, generator)


def crossed(
    first: Adapter, second: Adapter, cross: Callable[[ShapeGroup], Spectrum], generator: torch.Generator
) -> Adapter:
    """Return the child whose spectra `cross` makes of the parents', canonical, |A| : |B| the parents' mean."""
    child: Adapter = {}
    for group in shape_groups(first, second):
        ratio = mean_balance([balance(a, b) for a, b in group.parents])
        factors = refactor(cross(group), ratio, group.parents[0][0], generator)
        child |= unstack(group, *factors, like=first)
    return ordered(child, first)
