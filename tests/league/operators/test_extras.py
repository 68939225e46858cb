"""`ties` and `slerp` on their own; what they share with all crossovers is in `test_crossovers`."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from league.operators.extras import slerp, ties
from populora_agents.lora import Adapter, LoraFactors

FEW = settings(deadline=None, max_examples=20)

Make = Callable[..., Adapter]
Gap = Callable[[Adapter, Adapter], float]
Deltas = Callable[[Adapter], dict[str, Tensor]]
SEEDS = st.integers(0, 999)
EXTRAS = (ties, slerp)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def diagonal(*values: float) -> Adapter:
    """Return an adapter of one square module whose delta is diagonal; its rank is the number of values."""
    return {"m": LoraFactors(A=torch.diag(torch.tensor(values).double()), B=torch.eye(len(values)).double())}


@FEW
@given(SEEDS)
def test_the_order_of_parents_does_not_matter(make_adapter: Make, gap: Gap, seed: int) -> None:
    first, second = make_adapter(seed), make_adapter(seed + 1)
    for operator in EXTRAS:
        assert gap(operator(second, first, generator=rng()), operator(first, second, generator=rng())) < 1e-8


def test_ties_worked_by_hand(deltas: Deltas) -> None:
    """Diagonals 5, 1 and 3, -2: the signs of the sums 8 and -1 are + and -, so 4 and -2; half of the entries stay."""
    child = ties(diagonal(5.0, 1.0), diagonal(3.0, -2.0), generator=rng(), density=1.0)
    assert torch.allclose(deltas(child)["m"], torch.diag(torch.tensor([4.0, -2.0]).double()))
    trimmed = ties(diagonal(5.0, 1.0), diagonal(3.0, -2.0), generator=rng(), density=0.25)
    assert torch.allclose(deltas(trimmed)["m"], torch.diag(torch.tensor([4.0, 0.0]).double()))


def test_slerp_worked_by_hand(deltas: Deltas) -> None:
    """Orthogonal deltas of lengths 1 and 3: half-way lies at 45 degrees, of length 2, where the mean has 1.58."""
    first, second = diagonal(1.0, 0.0), diagonal(0.0, 3.0)
    child = slerp(first, second, generator=rng())
    assert torch.allclose(deltas(child)["m"], math.sqrt(2) * torch.eye(2).double())
    third = slerp(first, second, generator=rng(), along=1 / 3)
    expected = (5 / 3) * torch.tensor([math.cos(math.pi / 6), math.sin(math.pi / 6)]).double()
    assert torch.allclose(deltas(third)["m"], torch.diag(expected))


def test_opposite_deltas_and_one_of_zero_have_a_chord_for_an_arc(make_adapter: Make, gap: Gap, deltas: Deltas) -> None:
    child = slerp(diagonal(2.0, 1.0), diagonal(-2.0, -1.0), generator=rng(), along=0.25)
    assert torch.allclose(deltas(child)["m"], torch.diag(torch.tensor([1.0, 0.5]).double()))
    trained, fresh = make_adapter(0), make_adapter(1, fresh=True)
    half = {m: LoraFactors(A=f.A, B=0.5 * f.B) for m, f in trained.items()}
    assert gap(slerp(trained, fresh, generator=rng()), half) < 1e-9


@FEW
@given(SEEDS)
def test_the_ends_of_the_arc_are_the_parents(make_adapter: Make, gap: Gap, seed: int) -> None:
    first, second = make_adapter(seed), make_adapter(seed + 1)
    assert gap(slerp(first, second, generator=rng(), along=0.0), first) < 1e-9
    assert gap(slerp(first, second, generator=rng(), along=1.0), second) < 1e-9


@pytest.mark.parametrize("operator", EXTRAS)
def test_two_fresh_adapters_have_a_fresh_child(make_adapter: Make, operator: Callable[..., Adapter]) -> None:
    child = operator(make_adapter(0, fresh=True), make_adapter(1, fresh=True), generator=rng())
    for factors in child.values():
        assert (factors.B == 0).all()
        assert not (factors.A == 0).all(dim=1).any()


@pytest.mark.parametrize("operator", EXTRAS)
def test_small_matrices_and_a_rank_above_their_size(make_adapter: Make, operator: Callable[..., Adapter]) -> None:
    parents = [make_adapter(seed, lora_rank=4, shapes={"m": (2, 3), "n": (1, 1)}) for seed in (0, 1)]
    for factors in operator(*parents, generator=rng()).values():
        assert torch.isfinite(factors.A).all()
        assert torch.isfinite(factors.B).all()


def test_parameters_out_of_range_are_refused(make_adapter: Make) -> None:
    parent = make_adapter(0)
    for density in (0.0, 1.1, math.nan):
        with pytest.raises(ValueError, match="`density`"):
            ties(parent, parent, generator=rng(), density=density)
    for along in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="`along`"):
            slerp(parent, parent, generator=rng(), along=along)
