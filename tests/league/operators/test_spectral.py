"""The linear algebra under the operators."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from league.operators.spectral import (
    Spectrum,
    balance,
    combine_deltas,
    coordinates,
    mean_balance,
    refactor,
    rescaled,
    thin_svd,
    truncated,
)

FEW = settings(deadline=None, max_examples=20)

DIMS = st.integers(1, 9)
SEEDS = st.integers(0, 9999)


def factors(seed: int, n: int, d_in: int, d_out: int, lora_rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    a = torch.randn(n, lora_rank, d_in, generator=rng, dtype=torch.float64)
    return a, torch.randn(n, d_out, lora_rank, generator=rng, dtype=torch.float64)


def multiplied(spectrum: Spectrum) -> torch.Tensor:
    return spectrum.left.times(torch.diag_embed(spectrum.values)).columns() @ spectrum.right.rows()


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_worked_example() -> None:
    """B A = diag(3, -2) with a spare column: S = 3, 2; each left vector's entries add up to something positive."""
    b = torch.tensor([[[1.0, 1.0], [0.0, 1.0]]], dtype=torch.float64)
    a = torch.tensor([[[3.0, 2.0, 0.0], [0.0, -2.0, 0.0]]], dtype=torch.float64)
    spectrum = thin_svd(a, b)
    assert torch.allclose(b @ a, torch.tensor([[3.0, 0.0, 0.0], [0.0, -2.0, 0.0]], dtype=torch.float64))
    assert torch.allclose(spectrum.values, torch.tensor([[3.0, 2.0]], dtype=torch.float64))
    assert torch.allclose(spectrum.left.columns()[0], torch.eye(2, dtype=torch.float64))
    assert torch.allclose(spectrum.right.rows()[0], torch.tensor([[1.0, 0, 0], [0, -1.0, 0]], dtype=torch.float64))


@FEW
@given(SEEDS, st.integers(1, 3), DIMS, DIMS, st.integers(1, 6))
def test_thin_svd_is_that_of_the_product(seed: int, n: int, d_in: int, d_out: int, lora_rank: int) -> None:
    a, b = factors(seed, n, d_in, d_out, lora_rank)
    spectrum = thin_svd(a, b)
    left, right = spectrum.left.columns(), spectrum.right.columns()
    assert left.shape == (n, d_out, lora_rank)
    assert spectrum.values.shape == (n, lora_rank)
    assert right.shape == (n, d_in, lora_rank)
    assert torch.allclose(multiplied(spectrum), b @ a, atol=1e-12)
    size = min(lora_rank, d_in, d_out)
    assert torch.allclose(spectrum.values[:, :size], torch.linalg.svdvals(b @ a)[:, :size], atol=1e-12)
    assert (spectrum.values[:, size:] == 0).all()
    assert (spectrum.values[:, :-1] >= spectrum.values[:, 1:]).all()
    alive = (spectrum.values > 0).double()
    for vectors in (left, right):
        assert torch.allclose(vectors.mT @ vectors, torch.diag_embed(alive), atol=1e-12)


def test_components_that_do_not_exist_are_dead_not_noise() -> None:
    a, b = factors(0, 2, 8, 8, 4)
    b[0, :, 2] = 0
    b[1] = 0
    values = thin_svd(a, b).values
    assert (values[0] > 0).tolist() == [True, True, True, False]
    assert (values[1] == 0).all()


@FEW
@given(SEEDS, DIMS, DIMS, st.integers(1, 5), st.floats(0.01, 100))
def test_refactoring_keeps_the_delta_and_the_balance(
    seed: int, d_in: int, d_out: int, lora_rank: int, ratio: float
) -> None:
    a, b = factors(seed, 2, d_in, d_out, lora_rank)
    wanted = torch.tensor([ratio, 1.0], dtype=torch.float64)
    new_a, new_b = refactor(thin_svd(a, b), wanted, a, rng())
    assert torch.allclose(new_b @ new_a, b @ a, atol=1e-11)
    assert torch.allclose(balance(new_a, new_b), wanted, rtol=1e-9)
    dead = (new_b == 0).all(dim=1) & (new_a == 0).all(dim=2)
    assert not dead.any()


@pytest.mark.parametrize("lora_rank", [1, 2, 3, 4, 7, 32])
def test_every_live_component_is_shared_out_among_all_live_places(lora_rank: int) -> None:
    """The coordinates of A's rows in the singular basis are orthogonal, none above twice its even share."""
    a, b = factors(1, 1, 60, 50, lora_rank + 1)
    b[:, :, 0] = 0
    spectrum = thin_svd(a, b)
    new_a, new_b = refactor(spectrum, torch.ones(1, dtype=torch.float64), a, rng())
    assert (new_b[0, :, lora_rank] == 0).all(), "the dead component stays by itself"
    turn = (new_a @ spectrum.right.columns())[0, :lora_rank, :lora_rank] / spectrum.values[0, :lora_rank].sqrt()
    turn = turn / turn[:, 0].norm()
    assert torch.allclose(turn @ turn.mT, torch.eye(lora_rank, dtype=torch.float64), atol=1e-10)
    assert float(turn.square().max()) <= 2 / lora_rank + 1e-12
    assert torch.allclose(new_b @ new_a, b @ a, atol=1e-11)


def test_dead_rows_are_as_long_as_live_ones() -> None:
    a, b = factors(1, 1, 40, 30, 4)
    b[:, :, 3] = 0
    ratio = balance(a, b)
    new_a, new_b = refactor(thin_svd(a, b), ratio, a, rng())
    assert (new_b[0, :, 3] == 0).all()
    lengths = new_a[0].norm(dim=1)
    assert lengths[3] == pytest.approx(float(lengths[:3].square().mean().sqrt()))
    assert torch.allclose(balance(new_a, new_b), ratio)


def test_a_zero_delta_keeps_the_fallback() -> None:
    a, b = factors(2, 1, 5, 5, 2)
    new_a, new_b = refactor(thin_svd(a, 0 * b), balance(a, 0 * b), a, rng())
    assert torch.equal(new_a, a)
    assert (new_b == 0).all()


def test_a_fallback_without_rows_is_drawn_afresh() -> None:
    a, b = factors(2, 1, 5, 5, 2)
    new_a, new_b = refactor(thin_svd(0 * a, b), balance(0 * a, b), 0 * a, rng())
    assert (new_b == 0).all()
    assert torch.allclose(new_a.norm(dim=2), torch.full((1, 2), 3.0**-0.5, dtype=torch.float64))


@FEW
@given(SEEDS, DIMS, DIMS, st.integers(1, 5), st.floats(-2, 2), st.floats(-2, 2))
def test_combining_is_exact(seed: int, d_in: int, d_out: int, lora_rank: int, one: float, two: float) -> None:
    first, second = factors(seed, 2, d_in, d_out, lora_rank), factors(seed + 1, 2, d_in, d_out, lora_rank)
    spectrum = combine_deltas([first, second], [one, two])
    assert torch.allclose(multiplied(spectrum), one * first[1] @ first[0] + two * second[1] @ second[0], atol=1e-11)


@FEW
@given(SEEDS, st.integers(2, 9), st.integers(2, 9), st.integers(1, 4))
def test_an_adapter_minus_itself_is_nothing(seed: int, d_in: int, d_out: int, lora_rank: int) -> None:
    a, b = factors(seed, 2, d_in, d_out, lora_rank)
    new_a, new_b = refactor(
        truncated(combine_deltas([(a, b), (a, b)], [1.0, -1.0]), lora_rank), balance(a, b), a, rng()
    )
    assert float((new_b @ new_a).norm()) <= 1e-12 * float((b @ a).norm())
    assert torch.isfinite(new_a).all()


@FEW
@given(SEEDS)
def test_truncation_loses_exactly_the_discarded_singular_values(seed: int) -> None:
    first, second = factors(seed, 2, 9, 8, 3), factors(seed + 1, 2, 9, 8, 3)
    target = 0.5 * first[1] @ first[0] + 0.5 * second[1] @ second[0]
    full = combine_deltas([first, second], [0.5, 0.5])
    a, b = refactor(truncated(full, 3), balance(*first), first[0], rng())
    lost = (target - b @ a).norm(dim=(1, 2))
    assert torch.allclose(lost, full.values[:, 3:].norm(dim=1), rtol=1e-6)


@FEW
@given(SEEDS, st.integers(1, 4), st.sampled_from([0.0, 2.0, 4.0]))
def test_float32_loses_no_more_than_float32(seed: int, lora_rank: int, decades: float) -> None:
    """Also where the factors' columns differ in size by 10^decades, which a Gram matrix squares."""
    a, b = factors(seed, 2, 64, 48, lora_rank)
    sizes = torch.logspace(0, -decades, lora_rank, dtype=torch.float64)
    a, b = (a * sizes[:, None]).float(), (b * sizes).float()
    new_a, new_b = refactor(thin_svd(a, b), balance(a, b), a, rng())
    assert new_a.dtype == torch.float32
    lost = (new_b.double() @ new_a.double() - b.double() @ a.double()).norm(dim=(1, 2))
    size = a.double().norm(dim=(1, 2)) * b.double().norm(dim=(1, 2))
    assert (lost < 1e-6 * size).all()


@FEW
@given(SEEDS, st.floats(-9, 9))
def test_it_does_not_matter_how_a_components_size_is_shared_out(seed: int, decades: float) -> None:
    """Rows of A differ by up to nine decades, columns of B by as many the other way; QR in float32 does no better."""
    a, b = factors(seed, 2, 64, 48, 6)
    sizes = torch.logspace(0, decades, 6, dtype=torch.float64)
    a, b = (a * sizes[:, None]).float(), (b / sizes).float()
    lost = (multiplied(thin_svd(a, b)).double() - b.double() @ a.double()).norm(dim=(1, 2))
    assert (lost < 1e-6 * (b.double() @ a.double()).norm(dim=(1, 2))).all()


@FEW
@given(SEEDS)
def test_truncation_in_float32_loses_the_discarded_singular_values(seed: int) -> None:
    first, second = factors(seed, 2, 90, 80, 3), factors(seed + 1, 2, 90, 80, 3)
    target = 1.3 * first[1] @ first[0] - 0.3 * second[1] @ second[0]
    exact = combine_deltas([first, second], [1.3, -0.3])
    pairs = [(a.float(), b.float()) for a, b in (first, second)]
    spectrum = truncated(combine_deltas(pairs, [1.3, -0.3]), 3)
    a, b = refactor(spectrum, balance(*pairs[0]), pairs[0][0], rng())
    lost = (target - b.double() @ a.double()).norm(dim=(1, 2))
    assert torch.allclose(lost, exact.values[:, 3:].norm(dim=1), rtol=1e-6)
    assert torch.allclose(spectrum.values, exact.values[:, :3], rtol=1e-6)


def test_an_adapter_minus_itself_is_nothing_in_float32() -> None:
    a, b = (x.float() for x in factors(11, 2, 70, 50, 8))
    assert (combine_deltas([(a, b), (a, b)], [1.0, -1.0]).values == 0).all()
    values = combine_deltas([(a, b), (a, b)], [0.5, 0.5]).values
    assert torch.allclose(values[:, :8], thin_svd(a, b).values, rtol=1e-6)
    assert (values[:, 8:] == 0).all()


@FEW
@given(SEEDS)
def test_coordinates_in_common_bases_are_the_deltas(seed: int) -> None:
    pairs = [factors(seed + place, 2, 9, 8, 3) for place in range(2)]
    common = coordinates(pairs)
    for core, (a, b) in zip(common.cores, pairs, strict=True):
        assert torch.allclose(common.basis_b.times(core).columns() @ common.basis_a.rows(), b @ a, atol=1e-12)


def test_balances() -> None:
    a, b = factors(4, 2, 5, 5, 2)
    b[1] = 0
    ratio = balance(a, b)
    assert float(ratio[0]) == pytest.approx(float(a[0].norm() / b[0].norm()))
    assert ratio[1].isnan()
    nan = float("nan")
    mean = mean_balance([torch.tensor([4.0, nan, nan]), torch.tensor([9.0, 5.0, nan])])
    assert mean[:2].tolist() == pytest.approx([6.0, 5.0])
    assert mean[2].isnan()


def test_rescaling_keeps_the_delta() -> None:
    a, b = factors(5, 2, 5, 5, 2)
    b[1] = 0
    new_a, new_b = rescaled(a, b, torch.tensor([7.0, 7.0], dtype=torch.float64))
    assert torch.allclose(new_b @ new_a, b @ a)
    assert float(balance(new_a, new_b)[0]) == pytest.approx(7.0)
    assert torch.equal(new_a[1], a[1])
