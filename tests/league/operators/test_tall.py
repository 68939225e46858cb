"""Tall matrices that are not multiplied out, and their orthonormal bases."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from league.operators.tall import Tall, orthonormal, split

FEW = settings(deadline=None, max_examples=20)
SEEDS = st.integers(0, 999)


def matrices(seed: int, columns: int, dtype: torch.dtype = torch.float64, rows: int = 30) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(2, rows, columns, generator=draw, dtype=torch.float64).to(dtype)


def test_what_is_done_to_the_small_matrix_is_done_to_the_tall_one() -> None:
    one, other, turn = matrices(0, 3), matrices(1, 2), matrices(2, 4, rows=3)
    tall = Tall.of(one)
    assert torch.equal(tall.columns(), one)
    assert torch.allclose(tall.times(turn).columns(), one @ turn)
    assert torch.allclose(tall.scaled(-2.0).columns(), -2 * one)
    assert torch.equal(tall.part(1, 3).columns(), one[..., 1:3])
    both = tall.beside(Tall.of(other))
    assert torch.allclose(both.columns(), torch.cat([one, other], dim=-1))
    assert torch.equal(both.rows(), both.columns().mT)
    assert both.rows().is_contiguous()
    ramp = torch.linspace(1.0, 2.0, 30, dtype=torch.float64)
    assert torch.allclose(both.sums(), ramp @ both.columns())


@FEW
@given(SEEDS, st.sampled_from([torch.float32, torch.float64]), st.integers(1, 4), st.integers(1, 4))
def test_a_basis_is_orthonormal_and_gives_back_the_parts(seed: int, dtype: torch.dtype, width: int, other: int) -> None:
    parts = [matrices(seed, width, dtype), matrices(seed + 1, other, dtype)]
    basis, triangle = orthonormal(parts)
    q = basis.columns().double()
    tolerance = 1e-6 if dtype == torch.float32 else 1e-12
    assert torch.allclose(q.mT @ q, torch.eye(width + other).double().expand(2, -1, -1), atol=tolerance)
    assert torch.allclose(q @ triangle.double(), torch.cat(parts, dim=-1).double(), atol=10 * tolerance)


@FEW
@given(SEEDS, st.floats(-9, 9))
def test_lengths_of_columns_cost_no_digits_in_float32(seed: int, decades: float) -> None:
    sizes = torch.logspace(0, decades, 5, dtype=torch.float64)
    parts = [(matrices(seed, 5) * sizes).float()]
    basis, triangle = orthonormal(parts)
    errors = (basis.columns().double() @ triangle - parts[0].double()).norm(dim=1) / parts[0].double().norm(dim=1)
    assert float(errors.max()) < 1e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_columns_that_are_zero_or_repeated_have_finite_bases(dtype: torch.dtype) -> None:
    part = matrices(4, 3, dtype)
    part[0, :, 1] = 0
    basis, triangle = orthonormal([part, part])
    q = basis.columns()
    assert torch.isfinite(q).all()
    assert torch.isfinite(triangle).all()
    assert torch.allclose(q.double() @ triangle.double(), torch.cat([part, part], dim=-1).double(), atol=1e-5)


def test_pieces_are_views() -> None:
    whole = matrices(5, 5)
    first, second = split(whole, [2, 3], dim=-1)
    assert torch.equal(torch.cat([first, second], dim=-1), whole)
    assert second.data_ptr() == whole[..., 2:].data_ptr()
