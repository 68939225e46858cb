"""The delta of an adapter through its thin SVD, many matrices at once, without ever forming B A.

Symbols: r rank, d_in, d_out; n matrices of one shape; the delta is B A (times alpha / r, which all parents share and
which therefore drops out). Owns the linear algebra on batches of factors. Owns no choice of what an operator changes
(`mutations`, `crossovers`) and no adapters as a whole (`groups`).

Factors are defined up to an invertible r x r change of basis only, and so is every dead component (singular value 0):
nothing here depends on which factors of a delta it was given, beyond rounding. *Canonical* factors have fixed signs,
singular values shared out between A and B so that the parent's |A| : |B| is kept (Adam's step on a factor is relative
to its size, so a child of another ratio would learn at another speed), and no component whose column of B and row of A
are both zero (it would never get a gradient again).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

ROUNDING = 8.0
"""A singular value is taken for 0 below this times machine epsilon times |B| |A| (Frobenius)."""


FRESH_LENGTH = 3.0**-0.5
"""About the length of a row of a fresh A, whose entries PEFT draws uniform in +-1/sqrt(d_in)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spectrum:
    """Singular triplets of n deltas; dead components have the value 0 and zero vectors."""

    left: Tensor
    """float [n, d_out, r], U."""
    values: Tensor
    """float [n, r], S, from large to small when it comes from `thin_svd`."""
    right: Tensor
    """float [n, d_in, r], V."""


def thin_svd(a: Tensor, b: Tensor) -> Spectrum:
    """Return the SVD of B A by QR of both factors and an r x r SVD.

    B = Q_b R_b, A^T = Q_a R_a, R_b R_a^T = U' S V'^T, hence B A = (Q_b U') S (Q_a V')^T (docs/paper.md, Operators).
    Signs are fixed by making each left vector's entry of largest size positive.

    Args:
        a: float32 or float64 [n, r, d_in].
        b: The same type, [n, d_out, r].

    Returns:
        r components, padded with dead ones where a dimension is smaller than r.
    """
    lora_rank = a.shape[-2]
    q_b, r_b = torch.linalg.qr(b)
    q_a, r_a = torch.linalg.qr(a.mT)
    inner_left, values, inner_right = torch.linalg.svd(r_b @ r_a.mT, full_matrices=False)
    left, right = q_b @ inner_left, q_a @ inner_right.mT
    floor = ROUNDING * torch.finfo(a.dtype).eps * _norm(r_b) * _norm(r_a)
    alive = values > floor[:, None]
    largest = torch.gather(left, 1, left.abs().argmax(dim=1, keepdim=True))
    signs = torch.where(largest < 0, -1.0, 1.0) * alive[:, None, :]
    spectrum = Spectrum(left=left * signs, values=values * alive, right=right * signs)
    return _padded(spectrum, lora_rank - values.shape[-1])


def _norm(matrices: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(matrices, dim=(-2, -1))
    return norms


def _padded(spectrum: Spectrum, missing: int) -> Spectrum:
    if missing <= 0:
        return spectrum
    return Spectrum(
        left=torch.nn.functional.pad(spectrum.left, (0, missing)),
        values=torch.nn.functional.pad(spectrum.values, (0, missing)),
        right=torch.nn.functional.pad(spectrum.right, (0, missing)),
    )


def truncated(spectrum: Spectrum, lora_rank: int) -> Spectrum:
    """Return the first `lora_rank` components: the nearest delta of that rank (Eckart-Young)."""
    return Spectrum(
        left=spectrum.left[..., :lora_rank],
        values=spectrum.values[..., :lora_rank],
        right=spectrum.right[..., :lora_rank],
    )


def combine_deltas(factors: list[tuple[Tensor, Tensor]], weights: list[float]) -> Spectrum:
    """Return the SVD of sum_i w_i B_i A_i, exactly, as that of [w_1 B_1, w_2 B_2, ...] [A_1; A_2; ...].

    Args:
        factors: Pairs (A [n, r, d_in], B [n, d_out, r]) of the same shapes and type.
        weights: One a pair; any sign.

    Returns:
        k r components for k pairs; `truncated` brings it back to r.
    """
    a = torch.cat([pair[0] for pair in factors], dim=1)
    b = torch.cat([weight * pair[1] for weight, pair in zip(weights, factors, strict=True)], dim=2)
    return thin_svd(a, b)


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

    A = g S^(1/2) V^T and B = U S^(1/2) / g, with g such that |A| / |B| = `ratio`. A dead component gets a zero column
    of B and a row of A in a random direction, as long as the live rows are on average: its gradient flows again, and
    the delta does not know of it. A delta that is zero altogether has B = 0 and A = `fallback`, as a fresh adapter.

    Args:
        spectrum: n deltas of r components.
        ratio: float [n], from `balance` or `mean_balance`; NaN counts as 1.
        fallback: float [n, r, d_in], the A of a parent; rows of zeros in it are drawn afresh.
        generator: For dead rows; unused when there is none.
    """
    alive = spectrum.values > 0
    some = alive.any(dim=-1)
    count = alive.sum(dim=-1).clamp(min=1).to(spectrum.values.dtype)
    root = spectrum.values.sqrt()[:, None, :]
    left, right = spectrum.left * root, spectrum.right * root
    # Dead rows of the mean live length make |A| larger by (r / live)^(1/2); the gain allows for it.
    share = (count / alive.shape[-1]).sqrt()
    gain = torch.sqrt(ratio.nan_to_num(1.0) * share * _norm(left) / _norm(right))
    gain = torch.where(some, gain, 1.0)[:, None, None]
    a, b = gain * right.mT, left / gain
    a = _fill_rows(a, ~alive & some[:, None], _norm(a) / count.sqrt(), generator)
    a = torch.where(some[:, None, None], a, fallback)
    return _fill_rows(a, (a == 0).all(dim=-1), torch.full_like(count, FRESH_LENGTH), generator), b


def _fill_rows(a: Tensor, where: Tensor, length: Tensor, generator: torch.Generator) -> Tensor:
    """Return `a` with the rows marked by `where` [n, r] replaced by random directions of the given length [n]."""
    if not bool(where.any()):
        return a
    rows = draw_normal((int(where.sum()), a.shape[-1]), a, generator)
    rows = rows / torch.linalg.vector_norm(rows, dim=-1, keepdim=True)
    filled = a.clone()
    filled[where] = rows * length[:, None].expand(where.shape)[where][:, None]
    return filled


def rescaled(a: Tensor, b: Tensor, ratio: Tensor) -> tuple[Tensor, Tensor]:
    """Return factors of the same delta with |A| / |B| = `ratio` where that can be had, else as they are."""
    gain = torch.sqrt(ratio / balance(a, b))
    gain = torch.where(torch.isfinite(gain) & (gain > 0), gain, 1.0)[:, None, None]
    return a * gain, b / gain


def draw_normal(shape: tuple[int, ...], like: Tensor, generator: torch.Generator) -> Tensor:
    """Return standard normal draws in the type and on the device of `like`, made on the generator's device."""
    drawn = torch.randn(shape, generator=generator, dtype=like.dtype, device=generator.device)
    return drawn.to(like.device)
