"""Adapters to operate on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from populora_agents.lora import Adapter, LoraFactors

SHAPES = {"b.up": (7, 9), "a.q": (6, 6), "a.v": (6, 4), "c.q": (6, 6)}
"""Module -> (d_in, d_out); two share a shape, and the dict is not in the order of names."""


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Keep torch to one thread: on busy cores a QR of small matrices by two takes fifty times as long."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def make_adapter() -> Callable[..., Adapter]:
    """Return a function that makes an adapter of random factors."""

    def make(
        seed: int = 0,
        lora_rank: int = 3,
        dtype: torch.dtype = torch.float64,
        shapes: dict[str, tuple[int, int]] | None = None,
        fresh: bool = False,
    ) -> Adapter:
        rng = torch.Generator().manual_seed(seed)
        adapter: Adapter = {}
        for module, (d_in, d_out) in (shapes or SHAPES).items():
            a = torch.randn(lora_rank, d_in, generator=rng, dtype=torch.float64)
            b = 0.1 * torch.randn(d_out, lora_rank, generator=rng, dtype=torch.float64)
            adapter[module] = LoraFactors(A=a.to(dtype), B=(torch.zeros_like(b) if fresh else b).to(dtype))
        return adapter

    return make


@pytest.fixture(scope="session")
def rebased() -> Callable[[Adapter, int], Adapter]:
    """Return a function that changes the basis of an adapter's factors, but not its delta."""

    def change(adapter: Adapter, seed: int) -> Adapter:
        rng = torch.Generator().manual_seed(seed)
        changed: Adapter = {}
        for module, factors in adapter.items():
            rank = factors.lora_rank
            basis = torch.randn(rank, rank, generator=rng, dtype=factors.A.dtype) + 2 * torch.eye(rank).to(factors.A)
            changed[module] = LoraFactors(A=torch.linalg.solve(basis, factors.A), B=factors.B @ basis)
        return changed

    return change


@pytest.fixture(scope="session")
def deltas() -> Callable[[Adapter], dict[str, Tensor]]:
    """Return a function that multiplies an adapter out."""
    return lambda adapter: {module: factors.B @ factors.A for module, factors in adapter.items()}


@pytest.fixture(scope="session")
def gap(deltas: Callable[[Adapter], dict[str, Tensor]]) -> Callable[[Adapter, Adapter], float]:
    """Return a function for the largest difference of two adapters' deltas, relative to the second's."""

    def largest(one: Adapter, other: Adapter) -> float:
        mine, theirs = deltas(one), deltas(other)
        assert list(mine) == list(theirs)
        return max(float((mine[m] - theirs[m]).norm() / (theirs[m].norm() + 1e-300)) for m in mine)

    return largest
