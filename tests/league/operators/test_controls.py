"""The controls."""

from __future__ import annotations

from collections.abc import Callable

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from league.operators.controls import copy_parent, linear_0_5
from populora_agents.lora import Adapter, LoraFactors

FEW = settings(deadline=None, max_examples=20)

Make = Callable[..., Adapter]
SEEDS = st.integers(0, 999)


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_copy_is_the_same_bits_in_other_memory(make_adapter: Make) -> None:
    parent = make_adapter(0, dtype=torch.bfloat16)
    before = rng().get_state()
    generator = rng()
    child = copy_parent(parent, generator=generator)
    assert torch.equal(generator.get_state(), before)
    for module in parent:
        for mine, theirs in ((child[module].A, parent[module].A), (child[module].B, parent[module].B)):
            assert torch.equal(mine, theirs)
            assert mine.dtype == theirs.dtype
            assert mine.data_ptr() != theirs.data_ptr()


def test_the_mean_worked_by_hand() -> None:
    """Rank 1 each, on the same left vector: the mean of [2, 0] and [0, 4] is [1, 2], with no cross terms."""
    first = {"m": LoraFactors(A=torch.tensor([[2.0, 0.0]]).double(), B=torch.tensor([[1.0], [0.0]]).double())}
    second = {"m": LoraFactors(A=torch.tensor([[0.0, 1.0]]).double(), B=torch.tensor([[4.0], [0.0]]).double())}
    child = linear_0_5(first, second, generator=rng())["m"]
    assert torch.allclose(child.B @ child.A, torch.tensor([[1.0, 2.0], [0.0, 0.0]]).double())


@FEW
@given(SEEDS)
def test_the_mean_is_the_nearest_of_its_rank_in_any_order(
    make_adapter: Make, deltas: Callable[[Adapter], dict[str, Tensor]], seed: int
) -> None:
    first, second = make_adapter(seed), make_adapter(seed + 1)
    one = deltas(linear_0_5(first, second, generator=rng()))
    other = deltas(linear_0_5(second, first, generator=rng()))
    for module, (mine, theirs) in {m: (deltas(first)[m], deltas(second)[m]) for m in first}.items():
        u, s, vh = torch.linalg.svd((mine + theirs) / 2, full_matrices=False)
        best = (u[:, :3] * s[:3]) @ vh[:3]
        assert torch.allclose(one[module], best, atol=1e-10)
        assert torch.allclose(other[module], best, atol=1e-10)
