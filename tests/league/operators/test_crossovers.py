"""What all operators of two parents promise, and `crossovers` and `linear_0_5` on their own."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from league.operators.controls import linear_0_5
from league.operators.crossovers import combined, dare, extrapolate, layer_select, masked_canonical, svd_mix
from league.operators.extras import slerp, ties
from populora_agents.lora import Adapter, LoraFactors

FEW = settings(deadline=None, max_examples=20)

Make = Callable[..., Adapter]
Gap = Callable[[Adapter, Adapter], float]
Deltas = Callable[[Adapter], dict[str, Tensor]]
SEEDS = st.integers(0, 999)
EXACT = (layer_select, extrapolate, svd_mix, linear_0_5, ties, slerp)
CROSSOVERS = (*EXACT, dare)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@FEW
@given(SEEDS, st.integers(1, 4), st.sampled_from(EXACT))
def test_crossing_an_adapter_with_itself_gives_back_its_delta(
    make_adapter: Make, gap: Gap, seed: int, lora_rank: int, operator: Callable[..., Adapter]
) -> None:
    parent = make_adapter(seed, lora_rank=lora_rank)
    assert gap(operator(parent, parent, generator=rng(seed)), parent) < 1e-11


@FEW
@given(SEEDS, st.sampled_from(CROSSOVERS))
def test_the_childs_delta_does_not_depend_on_the_parents_bases(
    make_adapter: Make,
    rebased: Callable[[Adapter, int], Adapter],
    gap: Gap,
    seed: int,
    operator: Callable[..., Adapter],
) -> None:
    first, second = make_adapter(seed), make_adapter(seed + 1)
    one = operator(first, second, generator=rng(seed))
    other = operator(rebased(first, seed), rebased(second, seed + 7), generator=rng(seed))
    assert gap(other, one) < 1e-6


@FEW
@given(SEEDS, st.sampled_from(CROSSOVERS))
def test_children_have_the_parents_rank_and_no_dead_component(
    make_adapter: Make, seed: int, operator: Callable[..., Adapter]
) -> None:
    first, second = make_adapter(seed), make_adapter(seed + 1)
    for module, factors in operator(first, second, generator=rng(seed)).items():
        assert factors.A.shape == first[module].A.shape
        assert factors.B.shape == first[module].B.shape
        assert torch.isfinite(factors.A).all()
        assert torch.isfinite(factors.B).all()
        assert not ((factors.A == 0).all(dim=1) & (factors.B == 0).all(dim=0)).any()


@FEW
@given(SEEDS, st.sampled_from([extrapolate, svd_mix, dare, linear_0_5, ties, slerp]))
def test_balance_is_the_geometric_mean_of_the_parents(
    make_adapter: Make, seed: int, operator: Callable[..., Adapter]
) -> None:
    first, second = make_adapter(seed), make_adapter(seed + 1)
    child = operator(first, second, generator=rng(seed))
    for m in child:
        ratios = [float(x[m].A.norm() / x[m].B.norm()) for x in (first, second, child)]
        assert ratios[2] == pytest.approx(math.sqrt(ratios[0] * ratios[1]), rel=1e-9)


@FEW
@given(SEEDS)
def test_weights_one_and_minus_one_of_the_same_adapter_give_nothing(
    make_adapter: Make, deltas: Deltas, seed: int
) -> None:
    parent = make_adapter(seed)
    left = deltas(combined(parent, parent, (1.0, -1.0), rng()))
    for module, delta in deltas(parent).items():
        assert float(left[module].norm()) <= 1e-12 * float(delta.norm())


def test_layer_select_copies_bit_for_bit(make_adapter: Make) -> None:
    shapes = {f"m{n}": (5, 4) for n in range(40)}
    first, second = make_adapter(0, shapes=shapes), make_adapter(1, shapes=shapes)
    child = layer_select(first, second, generator=rng())
    origins = []
    for m in child:
        origin = [torch.equal(child[m].A, x[m].A) and torch.equal(child[m].B, x[m].B) for x in (first, second)]
        assert sum(origin) == 1
        origins.append(origin[0])
        assert child[m].A.data_ptr() not in {first[m].A.data_ptr(), second[m].A.data_ptr()}
    assert 8 <= sum(origins) <= 32


def test_extrapolate_worked_by_hand() -> None:
    """Deltas diag(4, 0) and diag(2, 0): at eta 1.5 the child is 2 + 1.5 (4 - 2) = 5."""
    better = {"m": LoraFactors(A=torch.tensor([[4.0, 0.0]]).double(), B=torch.tensor([[1.0], [0.0]]).double())}
    worse = {"m": LoraFactors(A=torch.tensor([[1.0, 0.0]]).double(), B=torch.tensor([[2.0], [0.0]]).double())}
    child = extrapolate(better, worse, generator=rng(), low=1.5, high=1.5)["m"]
    assert torch.allclose(child.B @ child.A, torch.tensor([[5.0, 0.0], [0.0, 0.0]]).double())


@FEW
@given(SEEDS)
def test_extrapolate_at_one_is_the_better_parent(make_adapter: Make, gap: Gap, seed: int) -> None:
    better, worse = make_adapter(seed), make_adapter(seed + 1)
    assert gap(extrapolate(better, worse, generator=rng(), low=1.0, high=1.0), better) < 1e-11


def test_eta_is_uniform_in_its_range() -> None:
    better = {"m": LoraFactors(A=torch.ones(1, 1).double(), B=torch.ones(1, 1).double())}
    worse = {"m": LoraFactors(A=torch.ones(1, 1).double(), B=torch.zeros(1, 1).double())}
    etas = torch.tensor(
        [float(c.B * c.A) for s in range(300) for c in extrapolate(better, worse, generator=rng(s)).values()]
    )
    assert 1.0 <= float(etas.min()) < 1.02
    assert 1.48 < float(etas.max()) <= 1.5
    assert float(etas.mean()) == pytest.approx(1.25, abs=0.04)


def test_svd_mix_joins_leading_and_trailing_components() -> None:
    """Diagonal parents with values 9, 8, 7 on axes 0-2 and 3, 2, 1 on axes 3-5."""

    def diagonal(values: list[float], offset: int) -> Adapter:
        a = torch.zeros(3, 6, dtype=torch.float64)
        b = torch.zeros(6, 3, dtype=torch.float64)
        for k, value in enumerate(values):
            a[k, offset + k], b[offset + k, k] = value, 1.0
        return {"m": LoraFactors(A=a, B=b)}

    first, second = diagonal([9.0, 8.0, 7.0], 0), diagonal([3.0, 2.0, 1.0], 3)
    seen = set()
    for seed in range(60):
        child = svd_mix(first, second, generator=rng(seed))["m"]
        seen.add(tuple(round(value, 9) for value in (child.B @ child.A).diagonal().tolist()))
    assert seen == {
        (9.0, 0.0, 0.0, 0.0, 2.0, 1.0),
        (9.0, 8.0, 0.0, 0.0, 0.0, 1.0),
        (0.0, 8.0, 7.0, 3.0, 0.0, 0.0),
        (0.0, 0.0, 7.0, 3.0, 2.0, 0.0),
    }


def test_svd_mix_at_rank_one_is_one_of_the_parents(make_adapter: Make, gap: Gap) -> None:
    first, second = make_adapter(0, lora_rank=1), make_adapter(1, lora_rank=1)
    origins = set()
    for seed in range(20):
        child = svd_mix(first, second, generator=rng(seed))
        origin = 0 if gap(child, first) < 1e-9 else 1
        assert gap(child, (first, second)[origin]) < 1e-9
        origins.add(origin)
    assert origins == {0, 1}


def test_dare_is_unbiased_before_truncation() -> None:
    """The error of a mean over N masks has the size sqrt(p / (1 - p) / N sum_k |b_k|^2 |a_k|^2)."""
    draw, masks, drop = rng(3), 2000, 0.7
    a = torch.randn(1, 3, 8, generator=draw, dtype=torch.float64)
    b = torch.randn(1, 6, 3, generator=draw, dtype=torch.float64)
    masked_a, scaled_b = masked_canonical(a.expand(masks, -1, -1), b.expand(masks, -1, -1), drop, draw)
    whole_a, left = masked_canonical(a, b, 0.0, draw)
    whole_b = left.columns()
    error = ((scaled_b.columns() @ masked_a).mean(dim=0) - b[0] @ a[0]).norm()
    energy = (whole_b[0].norm(dim=0) ** 2 * whole_a[0].norm(dim=1) ** 2).sum()
    size = (drop / (1 - drop) * energy / masks).sqrt()
    assert 0.7 < float(error / size) < 1.3
    share = float((masked_a == 0).double().mean())
    assert share == pytest.approx(drop, abs=0.01)


@FEW
@given(SEEDS)
def test_dare_that_drops_nothing_is_the_weighted_mean(make_adapter: Make, gap: Gap, seed: int) -> None:
    first, second = make_adapter(seed), make_adapter(seed + 1)
    assert gap(dare(first, second, generator=rng(), drop=0.0), linear_0_5(first, second, generator=rng())) < 1e-9
    assert gap(dare(first, second, generator=rng(), drop=0.0, weight=1.0), first) < 1e-9
    assert gap(dare(first, second, generator=rng(), drop=0.0, weight=0.0), second) < 1e-9


@pytest.mark.parametrize("operator", CROSSOVERS)
def test_two_fresh_adapters_have_a_fresh_child(make_adapter: Make, operator: Callable[..., Adapter]) -> None:
    first, second = make_adapter(0, fresh=True), make_adapter(1, fresh=True)
    for factors in operator(first, second, generator=rng()).values():
        assert (factors.B == 0).all()
        assert not (factors.A == 0).all(dim=1).any()


@pytest.mark.parametrize("operator", CROSSOVERS)
def test_a_fresh_and_a_trained_parent_have_a_child(make_adapter: Make, operator: Callable[..., Adapter]) -> None:
    trained, fresh = make_adapter(0), make_adapter(1, fresh=True)
    for pair in ((trained, fresh), (fresh, trained)):
        for factors in operator(*pair, generator=rng()).values():
            assert torch.isfinite(factors.A).all()
            assert torch.isfinite(factors.B).all()
            assert not (factors.A == 0).all(dim=1).any()


@pytest.mark.parametrize("operator", CROSSOVERS)
def test_small_matrices_and_a_rank_above_their_size(make_adapter: Make, operator: Callable[..., Adapter]) -> None:
    shapes = {"m": (2, 3), "n": (1, 1)}
    parents = [make_adapter(seed, lora_rank=4, shapes=shapes) for seed in (0, 1)]
    for factors in operator(*parents, generator=rng()).values():
        assert torch.isfinite(factors.A).all()
        assert torch.isfinite(factors.B).all()


def test_parameters_out_of_range_are_refused(make_adapter: Make) -> None:
    parent = make_adapter(0)
    for options in ({"low": 2.0, "high": 1.0}, {"low": math.nan}, {"high": math.inf}):
        with pytest.raises(ValueError, match="`low` <= `high`"):
            extrapolate(parent, parent, generator=rng(), **options)
    for drop in (1.0, -0.1, math.nan):
        with pytest.raises(ValueError, match="`drop`"):
            dare(parent, parent, generator=rng(), drop=drop)
    for weight in (1.1, -0.1, math.nan):
        with pytest.raises(ValueError, match="`weight`"):
            dare(parent, parent, generator=rng(), weight=weight)
