"""Tall matrices kept as products P W, and orthonormal bases of factors in that form.

Symbols: d a dimension of the base model, k a multiple of the rank, d >> k as a rule; n matrices of one shape. P holds
the parents' own factors, W is small: operators work on W, and the tall matrix is written once, at the end. Owns how a
basis is found and how exact it is. Owns no deltas (`spectral`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Tall:
    """n tall matrices [P_1, P_2, ...] W that are not multiplied out."""

    parts: tuple[Tensor, ...]
    """P_i, float [n, d, k_i]."""
    weights: Tensor
    """W, float [n, sum of k_i, k]; float64, or the type of the parts."""

    @classmethod
    def of(cls, matrices: Tensor) -> Tall:
        """Return given matrices [n, d, k] as they are."""
        eye = torch.eye(matrices.shape[-1], dtype=matrices.dtype, device=matrices.device)
        return cls(parts=(matrices,), weights=eye.expand(len(matrices), -1, -1))

    def scaled(self, factor: float) -> Tall:
        """Return the matrices times a number."""
        return Tall(parts=self.parts, weights=self.weights * factor)

    def times(self, matrix: Tensor) -> Tall:
        """Return the product with small matrices [n, k, k']."""
        return Tall(parts=self.parts, weights=self.weights @ matrix.to(self.weights.dtype))

    def part(self, start: int, stop: int) -> Tall:
        """Return the columns from `start` to before `stop`."""
        return Tall(parts=self.parts, weights=self.weights[..., start:stop])

    def beside(self, other: Tall) -> Tall:
        """Return the columns of both, those of `other` last."""
        ours = torch.nn.functional.pad(self.weights, (0, 0, 0, other.weights.shape[-2]))
        theirs = torch.nn.functional.pad(other.weights, (0, 0, self.weights.shape[-2], 0))
        return Tall(parts=self.parts + other.parts, weights=torch.cat([ours, theirs], dim=-1))

    def columns(self) -> Tensor:
        """Return the matrices multiplied out, [n, d, k], contiguous, in the type of the parts."""
        pieces = self._pieces()
        total = self.parts[0] @ pieces[0]
        for part, piece in zip(self.parts[1:], pieces[1:], strict=True):
            total.baddbmm_(part, piece)
        return total

    def rows(self) -> Tensor:
        """Return their transposes multiplied out, [n, k, d], contiguous, in the type of the parts."""
        pieces = self._pieces()
        total = pieces[0].mT @ self.parts[0].mT
        for part, piece in zip(self.parts[1:], pieces[1:], strict=True):
            total.baddbmm_(piece.mT, part.mT)
        return total

    def sums(self) -> Tensor:
        """Return the sum of every column's entries weighted evenly from 1 for the first to 2 for the last, [n, k]."""
        first = self.parts[0]
        ramp = torch.linspace(1.0, 2.0, first.shape[-2], dtype=first.dtype, device=first.device)
        sums = torch.cat([ramp @ part for part in self.parts], dim=-1)
        return (sums.to(self.weights.dtype)[:, None, :] @ self.weights)[:, 0]

    def _pieces(self) -> tuple[Tensor, ...]:
        return split(self.weights.to(self.parts[0].dtype), [part.shape[-1] for part in self.parts], dim=-2)


def orthonormal(parts: Sequence[Tensor]) -> tuple[Tall, Tensor]:
    """Return an orthonormal basis Q of the columns of [P_1, P_2, ...], and R such that [P_1, P_2, ...] = Q R.

    float64 parts: by QR. float32 parts: from the Gram matrix of the columns brought to length 1, D = diag(|P_j|) and
    G = D^-1 P^T P D^-1 = V L V^T, formed and decomposed in float64, as Q = P D^-1 V L^(-1/2) and R = L^(1/2) V^T D;
    eigenvalues that are rounding error are left out. A Gram matrix squares what is small: it loses directions that
    differ from the others' span by less than the root of its machine epsilon, 1.5e-8 in float64, which is less than
    float32 can tell; lengths of columns do not matter, as in QR. In exchange P is read once and nothing as large is
    written.

    Args:
        parts: float32 or float64 [n, d, k_i], of one type; any rank.

    Returns:
        Q, whose columns are orthonormal or, by the Gram matrix, zero; and R in float64 [n, k, sum of k_i].
    """
    if parts[0].dtype == torch.float64:
        q, r = torch.linalg.qr(torch.cat(list(parts), dim=-1))
        return Tall.of(q), r
    gram = _gram(parts)
    lengths = gram.diagonal(dim1=-2, dim2=-1).sqrt()
    unit = _inverse(lengths)[:, :, None]
    values, vectors = torch.linalg.eigh(unit * gram * unit.mT)
    noise = gram.shape[-1] * torch.finfo(gram.dtype).eps * values[:, -1:]
    root = torch.where(values > noise, values, 0.0).sqrt()[:, None, :]
    basis = Tall(parts=tuple(parts), weights=unit * vectors * _inverse(root))
    return basis, (lengths[:, :, None] * vectors * root).mT


def _inverse(sizes: Tensor) -> Tensor:
    """Return 1 / x, and 0 for 0."""
    return torch.where(sizes > 0, 1.0 / sizes, 0.0)


def _gram(parts: Sequence[Tensor]) -> Tensor:
    """Return P^T P in float64, [n, k, k], of P = [P_1, P_2, ...]."""
    exact = [part.to(torch.float64) for part in parts]
    blocks = {(i, j): exact[i].mT @ exact[j] for i in range(len(exact)) for j in range(i, len(exact))}
    rows = [
        torch.cat([blocks[i, j] if i <= j else blocks[j, i].mT for j in range(len(exact))], dim=-1)
        for i in range(len(exact))
    ]
    return torch.cat(rows, dim=-2)


def split(matrices: Tensor, sizes: Sequence[int], *, dim: int) -> tuple[Tensor, ...]:
    """Return the pieces of the given sizes along a dimension, as views."""
    pieces: tuple[Tensor, ...] = torch.split(matrices, list(sizes), dim=dim)
    return pieces
