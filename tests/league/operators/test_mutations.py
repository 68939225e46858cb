"""Operators of one parent."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from league.operators.mutations import component_mask, full_gaussian, layer_gaussian, svd_perturb
from populora_agents.lora import Adapter, LoraFactors

FEW = settings(deadline=None, max_examples=20)

Make = Callable[..., Adapter]
Gap = Callable[[Adapter, Adapter], float]
SEEDS = st.integers(0, 999)
MUTATIONS: list[Callable[..., Adapter]] = [svd_perturb, component_mask, full_gaussian, layer_gaussian]
NOISY: list[Callable[..., Adapter]] = [svd_perturb, full_gaussian, layer_gaussian]
SHARED: list[Callable[..., Adapter]] = [component_mask, layer_gaussian]


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_svd_perturb_worked_by_hand() -> None:
    """Rank 1 has no rotation (K = 0): the delta is stretched by exp(eps z) and nothing else."""
    parent = {"m": LoraFactors(A=torch.tensor([[3.0, 4.0]]).double(), B=torch.tensor([[2.0], [0.0]]).double())}
    z = torch.randn(1, 1, generator=rng(5), dtype=torch.float64).item()
    child = svd_perturb(parent, generator=rng(5), epsilon=0.25)
    expected = math.exp(0.25 * z) * torch.tensor([[6.0, 8.0], [0.0, 0.0]]).double()
    assert torch.allclose(child["m"].B @ child["m"].A, expected)


def test_svd_perturb_follows_its_formula(make_adapter: Make) -> None:
    parent = make_adapter(3, shapes={"m": (6, 5)})
    draw = rng(9)
    z = torch.randn(1, 3, generator=draw, dtype=torch.float64)[0]
    g_u, g_v = (torch.randn(1, 3, 3, generator=draw, dtype=torch.float64)[0] for _ in range(2))
    u, s, vh = torch.linalg.svd(parent["m"].B @ parent["m"].A, full_matrices=False)
    u, s, v = u[:, :3], s[:3], vh[:3].mT
    signs = torch.sign(torch.linspace(1, 2, 5).double() @ u)
    u, v = u * signs, v * signs
    u = u @ (torch.eye(3) + 0.1 * (g_u - g_u.mT) / 2)
    v = v @ (torch.eye(3) + 0.1 * (g_v - g_v.mT) / 2)
    child = svd_perturb(parent, generator=rng(9))
    assert torch.allclose(child["m"].B @ child["m"].A, (u * s * torch.exp(0.1 * z)) @ v.mT)


@FEW
@given(SEEDS)
def test_without_noise_the_child_has_the_parents_delta(make_adapter: Make, gap: Gap, seed: int) -> None:
    parent = make_adapter(seed)
    assert gap(svd_perturb(parent, generator=rng(), epsilon=0.0), parent) < 1e-12
    assert gap(full_gaussian(parent, generator=rng(), epsilon=0.0), parent) < 1e-12
    assert gap(layer_gaussian(parent, generator=rng(), epsilon=0.0), parent) < 1e-12
    assert gap(component_mask(parent, generator=rng(), share=0.0), parent) < 1e-12


@pytest.mark.parametrize(("share", "lora_rank", "masked"), [(0.3, 3, 1), (0.3, 10, 3), (0.5, 3, 2), (1.0, 3, 3)])
def test_component_mask_removes_whole_components(make_adapter: Make, share: float, lora_rank: int, masked: int) -> None:
    parent = make_adapter(1, lora_rank=lora_rank, shapes={"m": (16, 12)})
    child = component_mask(parent, generator=rng(), share=share)["m"]
    assert int((child.B == 0).all(dim=0).sum()) == masked
    assert not (child.A == 0).all(dim=1).any()
    before = torch.linalg.svdvals(parent["m"].B @ parent["m"].A)[:lora_rank]
    after = torch.linalg.svdvals(child.B @ child.A)[: lora_rank - masked]
    assert all(float((before - value).abs().min()) < 1e-12 for value in after), "the others are left as they are"


def test_masked_components_can_learn_again(make_adapter: Make) -> None:
    child = component_mask(make_adapter(1), generator=rng())["a.q"]
    a, b = child.A.clone().requires_grad_(), child.B.clone().requires_grad_()
    masked = int((child.B == 0).all(dim=0).nonzero()[0])
    target = torch.randn(6, 6, generator=rng(1), dtype=torch.float64)
    optimiser = torch.optim.SGD([a, b], lr=0.1)
    for _ in range(2):
        optimiser.zero_grad()
        ((b @ a - target) ** 2).sum().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    assert (b[:, masked] != 0).any(), "the column of B moves in the first step, the row of A in the second"
    assert (a[masked] != child.A[masked]).any()


def test_component_mask_masks_each_matrix_by_itself(make_adapter: Make) -> None:
    parent = make_adapter(1, lora_rank=4, shapes={f"m{n}": (9, 9) for n in range(12)})
    child = component_mask(parent, generator=rng())
    assert len({tuple((child[m].B == 0).all(dim=0).tolist()) for m in child}) > 1


@pytest.mark.parametrize(
    ("count", "share", "changed"), [(7, 0.33, 2), (2, 0.33, 1), (1, 0.33, 1), (3, 0.0, 1), (100, 0.29, 29)]
)
def test_layer_gaussian_leaves_the_other_matrices_alone(
    make_adapter: Make, count: int, share: float, changed: int
) -> None:
    parent = make_adapter(2, shapes={f"m{n}": (5, 4) for n in range(count)})
    child = layer_gaussian(parent, generator=rng(), share=share)
    same = [torch.equal(child[m].A, parent[m].A) and torch.equal(child[m].B, parent[m].B) for m in parent]
    assert same.count(False) == changed
    assert list(child) == list(parent)


def test_layer_gaussian_may_choose_any_matrix(make_adapter: Make) -> None:
    parent = make_adapter(2)
    chosen = set()
    for seed in range(40):
        child = layer_gaussian(parent, generator=rng(seed))
        chosen |= {m for m in parent if not torch.equal(child[m].A, parent[m].A)}
    assert chosen == set(parent)


def test_full_gaussian_noise_is_as_large_as_asked(make_adapter: Make) -> None:
    """Noise of eps std on both factors; factor norms are about std sqrt(size), so each grows by eps^2 / 2."""
    parent = make_adapter(4, lora_rank=8, shapes={"m": (300, 200)})
    still = full_gaussian(parent, generator=rng(), epsilon=0.0)["m"]
    child = full_gaussian(parent, generator=rng())["m"]
    assert torch.linalg.matrix_rank(child.B @ child.A) <= 8
    for before, after in ((still.A, child.A), (still.B, child.B)):
        noise = (after - before).norm() / before.norm()
        assert float(noise) == pytest.approx(0.15, rel=0.1)


@FEW
@given(SEEDS, st.sampled_from(MUTATIONS))
def test_the_childs_delta_does_not_depend_on_the_parents_basis(
    make_adapter: Make,
    rebased: Callable[[Adapter, int], Adapter],
    gap: Gap,
    seed: int,
    operator: Callable[..., Adapter],
) -> None:
    parent = make_adapter(seed)
    one = operator(parent, generator=rng(seed))
    other = operator(rebased(parent, seed + 1), generator=rng(seed))
    assert gap(other, one) < 1e-6


@FEW
@given(SEEDS, st.sampled_from(MUTATIONS))
def test_every_matrix_keeps_its_balance(make_adapter: Make, seed: int, operator: Callable[..., Adapter]) -> None:
    parent = make_adapter(seed)
    child = operator(parent, generator=rng(seed))
    for module, factors in parent.items():
        before = factors.A.norm() / factors.B.norm()
        assert float(child[module].A.norm() / child[module].B.norm()) == pytest.approx(float(before), rel=1e-9)


@pytest.mark.parametrize("operator", MUTATIONS)
def test_a_fresh_adapter_stays_one(make_adapter: Make, operator: Callable[..., Adapter]) -> None:
    parent = make_adapter(5, fresh=True)
    child = operator(parent, generator=rng())
    for factors in child.values():
        assert (factors.B == 0).all()
        assert torch.isfinite(factors.A).all()
        assert not (factors.A == 0).all(dim=1).any()


@pytest.mark.parametrize("operator", MUTATIONS)
def test_an_adapter_may_be_fresh_in_part(make_adapter: Make, operator: Callable[..., Adapter]) -> None:
    parent = make_adapter(5)
    parent["a.q"] = make_adapter(6, fresh=True)["a.q"]
    child = operator(parent, generator=rng())
    assert (child["a.q"].B == 0).all()
    assert (child["c.q"].B != 0).any()


@pytest.mark.parametrize("operator", MUTATIONS)
def test_small_matrices_and_a_rank_above_their_size(make_adapter: Make, operator: Callable[..., Adapter]) -> None:
    parent = make_adapter(7, lora_rank=4, shapes={"m": (2, 3), "n": (1, 1)})
    for factors in operator(parent, generator=rng()).values():
        assert torch.isfinite(factors.A).all()
        assert torch.isfinite(factors.B).all()
        dead = (factors.A == 0).all(dim=1) & (factors.B == 0).all(dim=0)
        assert not dead.any()


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf])
def test_parameters_out_of_range_are_refused(make_adapter: Make, bad: float) -> None:
    parent = make_adapter(0)
    for operator in NOISY:
        with pytest.raises(ValueError, match="`epsilon`"):
            operator(parent, generator=rng(), epsilon=bad)
    for operator in SHARED:
        with pytest.raises(ValueError, match="`share`"):
            operator(parent, generator=rng(), share=bad)
