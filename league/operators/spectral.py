"""The delta of an adapter through its thin SVD, many matrices at once, without ever forming B A.

Symbols: r rank, d_in, d_out; n matrices of one shape; the delta is B A (times alpha / r, which all parents share and
which therefore drops out). Owns the linear algebra on batches of factors. Owns no choice of what an operator changes
(`mutations`, `crossovers`), no adapters as a whole (`groups`), no orthonormal bases of factors (`tall`).

Factors are defined up to an invertible r x r change of basis only, and so is every dead component (singular value 0):
nothing here depends on which factors of a delta it was given, beyond rounding. *Canonical* factors have fixed signs,
singular values shared out between A and B so that the parent's |A| : |B| is kept (Adam's step on a factor is relative
to its size, so a child of another ratio would learn at another speed), every live component turned evenly into all
live places (`refactor` says why), and no component whose column of B and row of A are both zero (it would never get a
gradient again).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from league.operators.tall import Tall, orthonormal, split

ROUNDING = 8.0
"""A singular value is taken for 0 below this times machine epsilon times sum_k |b_k| |a_k|, columns of B, rows of A."""


FRESH_LENGTH = 3.0**-0.5
"""About the length of a row of a fresh A, whose entries PEFT draws uniform in +-1/sqrt(d_in)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spectrum:
    """Singular triplets of n deltas; dead components have the value 0 and zero vectors."""

    left: Tall
    """float [n, d_out, r], U."""
    values: Tensor
    """float [n, r], S, from large to small when it comes from `thin_svd`; in the type of small matrices."""
    right: Tall
    """float [n, d_in, r], V."""


def thin_svd(a: Tensor, b: Tensor) -> Spectrum:
    """Return the SVD of B A through orthonormal bases of both factors and an r x r SVD.

    Args:
        a: float32 or float64 [n, r, d_in].
        b: The same type, [n, d_out, r].

    Returns:
        r components, padded with dead ones where a dimension is smaller than r.
    """
    return combine_deltas([(a, b)], [1.0])


def combine_deltas(factors: Sequence[tuple[Tensor, Tensor]], weights: Sequence[float]) -> Spectrum:
    """Return the SVD of sum_i w_i B_i A_i, exactly; see `svd_of_sum`.

    Args:
        factors: Pairs (A [n, r, d_in], B [n, d_out, r]) of the same shapes and type.
        weights: One a pair; any sign.

    Returns:
        k r components for k pairs; `truncated` brings it back to r.
    """
    return svd_of_sum([(a, Tall.of(b).scaled(weight)) for (a, b), weight in zip(factors, weights, strict=True)])


def svd_of_sum(products: Sequence[tuple[Tensor, Tall]]) -> Spectrum:
    """Return the SVD of D = sum_i L_i A_i, with L_i = P_i W_i, exactly, as that of [L_1, L_2, ...] [A_1; A_2; ...].

    With [P_1, P_2, ...] = Q_b R_b, [A_1; A_2; ...]^T = Q_a R_a and R_b diag(W_1, W_2, ...) R_a^T = U' S V'^T
    (docs/paper.md, Operators), D = (Q_b U') S (Q_a V')^T. Signs are fixed by making the entries of each left vector,
    weighted evenly from 1 for the first to 2 for the last, add up to something positive.

    Args:
        products: Pairs (A float [n, r, d_in], L [n, d_out, r]) of one type.

    Returns:
        As many components as the A have rows, from large to small, dead ones last.
    """
    whole = reduce(Tall.beside, [left for _, left in products])
    basis_b, r_b = orthonormal(whole.parts)
    basis_a, r_a = orthonormal([a.mT for a, _ in products])
    r_b = r_b @ whole.weights.to(r_b.dtype)
    floor = _floor(r_b, r_a, products[0][0].dtype)
    return svd_between(basis_b, r_b @ r_a.mT, basis_a, floor, width=r_a.shape[-1])


def svd_between(basis_b: Tall, core: Tensor, basis_a: Tall, floor: Tensor, width: int) -> Spectrum:
    """Return the SVD of Q_b C Q_a^T, with the signs of `svd_of_sum`.

    Args:
        basis_b: Q_b, float [n, d_out, k], columns orthonormal (or zero, where C has rows of zeros).
        core: C, float [n, k, k'].
        basis_a: Q_a, [n, d_in, k'], as Q_b.
        floor: float [n]; singular values up to it are taken for 0.
        width: Components wanted; those that do not exist are dead ones.
    """
    inner_left, values, inner_right = torch.linalg.svd(core, full_matrices=False)
    values = torch.where(values > floor[:, None], values, 0.0)
    left, right = basis_b.times(inner_left), basis_a.times(inner_right.mT)
    signs = torch.where(left.sums() < 0, -1.0, 1.0) * (values > 0)
    missing = width - values.shape[-1]
    # Columns added by the padding are zero, as those of dead components are.
    fixed = torch.nn.functional.pad(torch.diag_embed(signs), (0, missing))
    return Spectrum(
        left=left.times(fixed), values=torch.nn.functional.pad(values, (0, missing)), right=right.times(fixed)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinates:
    """Several parents' deltas, Delta_i = Q_b C_i Q_a^T, in orthonormal bases that they share."""

    basis_b: Tall
    """Q_b, float [n, d_out, k]."""
    cores: tuple[Tensor, ...]
    """C_i, float [n, k, k'], one a parent."""
    basis_a: Tall
    """Q_a, float [n, d_in, k']."""
    floor: Tensor
    """float [n]; what is smaller is rounding error."""


def coordinates(factors: Sequence[tuple[Tensor, Tensor]]) -> Coordinates:
    """Return the deltas of several parents in common bases: C_i = R_b,i R_a,i^T, with R as for `svd_of_sum`.

    Args:
        factors: Pairs (A [n, r, d_in], B [n, d_out, r]) of the same shapes and type.
    """
    basis_b, r_b = orthonormal([b for _, b in factors])
    basis_a, r_a = orthonormal([a.mT for a, _ in factors])
    widths = [a.shape[-2] for a, _ in factors]
    pairs = zip(split(r_b, widths, dim=-1), split(r_a, widths, dim=-1), strict=True)
    return Coordinates(
        basis_b=basis_b,
        cores=tuple(b @ a.mT for b, a in pairs),
        basis_a=basis_a,
        floor=_floor(r_b, r_a, factors[0][0].dtype),
    )


def _floor(left: Tensor, right: Tensor, dtype: torch.dtype) -> Tensor:
    """Return up to what the singular values of L R^T are rounding error of factors in `dtype`, [n].

    By columns, and not |L| |R|, so that it does not depend on how a component's size is shared out between the two.
    """
    sizes: Tensor = torch.linalg.vector_norm(left, dim=-2) * torch.linalg.vector_norm(right, dim=-2)
    return sizes.sum(dim=-1) * (ROUNDING * torch.finfo(dtype).eps)


def _norm(matrices: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(matrices, dim=(-2, -1))
    return norms


def truncated(spectrum: Spectrum, lora_rank: int) -> Spectrum:
    """Return the first `lora_rank` components: the nearest delta of that rank (Eckart-Young)."""
    return Spectrum(
        left=spectrum.left.part(0, lora_rank),
        values=spectrum.values[..., :lora_rank],
        right=spectrum.right.part(0, lora_rank),
    )


def balance(a: Tensor, b: Tensor) -> Tensor:
    """Return |A| / |B| (Frobenius), float [n]; NaN where one of the two is zero, as in a fresh adapter."""
    ratio = _norm(a) / _norm(b)
    return torch.where(torch.isfinite(ratio) & (ratio > 0), ratio, torch.nan)


def mean_balance(ratios: list[Tensor]) -> Tensor:
    """Return the geometric mean of the parents' ratios, leaving out those that have none; float [n]."""
    logs = torch.log(torch.stack(ratios))
    return torch.exp(torch.nanmean(logs, dim=0))


def refactor(spectrum: Spectrum, ratio: Tensor, fallback: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return canonical factors (A, B) of U S V^T; the vectors need not be orthonormal.

    A = g T S^(1/2) V^T and B = U S^(1/2) T^T / g, with g such that |A| / |B| = `ratio` and T orthogonal (`_turn`): in
    the basis of the singular vectors Adam, whose steps are about as long in every entry, learns more slowly than in one
    where each direction lies in all components, as in adapters that grew from random rows of A (docs/operators.md).

    A dead component gets a zero column of B and a row of A in a random direction, as long as the live rows are on
    average: its gradient flows again, and the delta does not know of it. A delta that is zero altogether has B = 0 and
    A = `fallback`, as a fresh adapter.

    Args:
        spectrum: n deltas of r components.
        ratio: float [n], from `balance` or `mean_balance`; NaN counts as 1.
        fallback: float [n, r, d_in], the A of a parent; rows of zeros in it are drawn afresh.
        generator: For dead rows; unused when there is none.

    Returns:
        Tensors of their own, in the type of `fallback`.
    """
    alive = spectrum.values > 0
    some = alive.any(dim=-1)
    count = alive.sum(dim=-1).clamp(min=1).to(fallback.dtype)
    root = spectrum.values.sqrt()[:, :, None] * _turn(alive, spectrum.values.dtype).mT
    a, b = spectrum.right.times(root).rows(), spectrum.left.times(root).columns()
    # Dead rows of the mean live length make |A| larger by (r / live)^(1/2); the gain allows for it.
    share = (count / alive.shape[-1]).sqrt()
    gain = torch.sqrt(ratio.nan_to_num(1.0) * share * _norm(b) / _norm(a))
    gain = torch.where(some, gain, 1.0)[:, None, None]
    a.mul_(gain)
    b.div_(gain)
    if not bool(alive.all()):
        _fill_rows(a, ~alive & some[:, None], _norm(a) / count.sqrt(), generator)
        a[~some] = fallback[~some]
        _fill_rows(a, (a == 0).all(dim=-1), torch.full_like(count, FRESH_LENGTH), generator)
    return a, b


def _turn(alive: Tensor, dtype: torch.dtype) -> Tensor:
    """Return orthogonal T [n, r, r] that shares out every live component evenly among all live places.

    On the c live places of a matrix it is the Hartley matrix cas(2 pi j k / c) / c^(1/2), on dead ones the identity.
    """
    turns = torch.eye(alive.shape[-1], dtype=dtype, device=alive.device).repeat(len(alive), 1, 1)
    counts = alive.sum(dim=-1)
    for count in set(counts.tolist()) - {0}:
        matrices = (counts == count).nonzero()
        places = alive[matrices[:, 0]].nonzero()[:, 1].view(-1, count)
        steps = torch.arange(count, device=alive.device)
        angles = (2 * math.pi / count) * (torch.outer(steps, steps) % count).to(dtype)
        hartley = (angles.cos() + angles.sin()) / math.sqrt(count)
        turns[matrices[:, :, None], places[:, :, None], places[:, None, :]] = hartley
    return turns


def _fill_rows(a: Tensor, where: Tensor, length: Tensor, generator: torch.Generator) -> None:
    """Put random directions of the given length [n] into the rows of `a` that `where` [n, r] marks, in place."""
    rows = draw_normal((int(where.sum()), a.shape[-1]), a, generator)
    rows = rows / torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    a[where] = rows * length[:, None].expand(where.shape)[where][:, None]


def rescaled(a: Tensor, b: Tensor, ratio: Tensor) -> tuple[Tensor, Tensor]:
    """Return factors of the same delta with |A| / |B| = `ratio` where that can be had, else as they are."""
    gain = torch.sqrt(ratio / balance(a, b))
    gain = torch.where(torch.isfinite(gain) & (gain > 0), gain, 1.0)[:, None, None]
    return a * gain, b / gain


def draw_normal(shape: tuple[int, ...], like: Tensor, generator: torch.Generator) -> Tensor:
    """Return standard normal draws in the type and on the device of `like`, made on the generator's device."""
    drawn = torch.randn(shape, generator=generator, dtype=like.dtype, device=generator.device)
    return drawn.to(like.device)
