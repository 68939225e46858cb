"""Operators of one parent (docs/paper.md, Operators: S names, R formulas).

Symbols: Delta = B A = U S V^T per adapted matrix, r its rank. `svd_perturb` and `component_mask` act on the delta;
`layer_gaussian` and `full_gaussian` act on its canonical factors, since noise on the parent's own factors would depend
on which of the many factors of a delta they happen to be. All compute in float32 (float64 for float64 parents), keep
each matrix's |A| : |B|, and leave a matrix with Delta = 0 (a fresh adapter's) at Delta = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from league.operators.groups import copied, ordered, shape_groups, unstack
from league.operators.spectral import Spectrum, balance, draw_normal, refactor, rescaled, thin_svd
from populora_agents.lora import Adapter


@torch.no_grad()
def svd_perturb(parent: Adapter, *, generator: torch.Generator, epsilon: float = 0.1) -> Adapter:
    """Perturb singular values and turn singular vectors, in every matrix.

    s_i <- s_i exp(epsilon z_i); U <- U (I + epsilon K_U), V <- V (I + epsilon K_V); z and G [r, r] standard normal,
    K = (G - G^T) / 2. At epsilon 0 the child's delta is the parent's. Source: R. Deviations: none in the delta; dead
    components stay dead in it and turn nothing.

    Args:
        parent: Factors of one rank.
        generator: Draws z, K_U, K_V.
        epsilon: Strength, >= 0.

    Raises:
        ValueError: `epsilon` is negative or not finite.
    """
    _check_epsilon(epsilon)

    def change(spectrum: Spectrum) -> Spectrum:
        shape = tuple(spectrum.values.shape)
        stretch = torch.exp(epsilon * draw_normal(shape, spectrum.values, generator))
        one = torch.eye(shape[-1]).to(spectrum.values)
        turns = [one + epsilon * _skew((*shape, shape[-1]), spectrum.values, generator) for _ in range(2)]
        return Spectrum(
            left=spectrum.left.times(turns[0]),
            values=spectrum.values * stretch,
            right=spectrum.right.times(turns[1]),
        )

    return _on_spectrum(parent, change, generator)


def _skew(shape: tuple[int, ...], like: Tensor, generator: torch.Generator) -> Tensor:
    gaussian = draw_normal(shape, like, generator)
    return (gaussian - gaussian.mT) / 2


@torch.no_grad()
def component_mask(parent: Adapter, *, generator: torch.Generator, share: float = 0.3) -> Adapter:
    """Remove ceil(share x r) random singular components of every matrix.

    Their columns of B become zero and their rows of A are drawn anew: were both zero, no gradient would ever reach
    them again. Source: R (which leaves the row open).

    Args:
        parent: Factors of one rank.
        generator: Draws the components, for each matrix its own, and the new rows.
        share: In [0, 1].

    Raises:
        ValueError: `share` is out of range.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"`share` must be in [0, 1], got {share!r}")

    def change(spectrum: Spectrum) -> Spectrum:
        count, lora_rank = spectrum.values.shape
        masked = math.ceil(share * lora_rank - 1e-9)
        order = draw_normal((count, lora_rank), spectrum.values, generator).argsort(dim=-1)
        kept = (order >= masked).to(spectrum.values.dtype)
        return Spectrum(left=spectrum.left, values=spectrum.values * kept, right=spectrum.right)

    return _on_spectrum(parent, change, generator)


@torch.no_grad()
def full_gaussian(parent: Adapter, *, generator: torch.Generator, epsilon: float = 0.15) -> Adapter:
    """Add noise to the canonical factors of every matrix: X <- X + epsilon std(X) N(0, 1) for X in A, B.

    std is over all entries of the factor, around their mean, without Bessel's correction. Source: R; acting on
    canonical factors is ours (module docstring).

    Args:
        parent: Factors of one rank.
        generator: Draws the noise.
        epsilon: Noise relative to the factor's spread, >= 0.

    Raises:
        ValueError: `epsilon` is negative or not finite.
    """
    _check_epsilon(epsilon)
    return _noised(parent, epsilon, generator)


@torch.no_grad()
def layer_gaussian(
    parent: Adapter, *, generator: torch.Generator, epsilon: float = 0.1, share: float = 0.33
) -> Adapter:
    """Do as `full_gaussian` in max(1, floor(share x n)) of the n matrices, drawn uniformly; copy the others.

    Source: R. The matrices left alone are the parent's bit for bit.

    Args:
        parent: Factors of one rank, n matrices.
        generator: Draws the matrices and the noise.
        epsilon: Noise relative to the factor's spread, >= 0.
        share: In [0, 1].

    Raises:
        ValueError: `epsilon` is negative or not finite, or `share` out of range.
    """
    _check_epsilon(epsilon)
    if not 0 <= share <= 1:
        raise ValueError(f"`share` must be in [0, 1], got {share!r}")
    names = sorted(parent)
    count = max(1, math.floor(share * len(names) + 1e-9))
    order = torch.randperm(len(names), generator=generator, device=generator.device).tolist()
    chosen = {names[place] for place in order[:count]}
    noised = _noised({name: parent[name] for name in names if name in chosen}, epsilon, generator)
    return {name: noised[name] if name in chosen else copied(parent[name]) for name in parent}


def _check_epsilon(epsilon: float) -> None:
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise ValueError(f"`epsilon` must be finite and at least 0, got {epsilon!r}")


def _on_spectrum(parent: Adapter, change: Callable[[Spectrum], Spectrum], generator: torch.Generator) -> Adapter:
    """Return the child whose spectra are `change`d, in canonical factors."""
    child: Adapter = {}
    for group in shape_groups(parent):
        ((a, b),) = group.parents
        factors = refactor(change(thin_svd(a, b)), balance(a, b), a, generator)
        child |= unstack(group, *factors, like=parent)
    return ordered(child, parent)


def _noised(parent: Adapter, epsilon: float, generator: torch.Generator) -> Adapter:
    child: Adapter = {}
    for group in shape_groups(parent):
        ((a, b),) = group.parents
        ratio = balance(a, b)
        noisy_a, noisy_b = (
            factor
            + epsilon
            * factor.flatten(1).std(dim=1, correction=0)[:, None, None]
            * draw_normal(tuple(factor.shape), factor, generator)
            for factor in refactor(thin_svd(a, b), ratio, a, generator)
        )
        child |= unstack(group, *rescaled(noisy_a, noisy_b, ratio), like=parent)
    return ordered(child, parent)
