"""Grouped products against one product a group, forward and backward; on the CPU's own implementation."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from populora_agents.grouped import grouped_product, has_fast_kernel, is_aligned

pytestmark = pytest.mark.skipif(not hasattr(functional, "grouped_mm"), reason="torch before 2.10 has no grouped_mm")


def test_product_and_gradients_equal_those_of_one_group_after_the_other() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(10, 8, generator=generator, requires_grad=True)
    factors = torch.randn(3, 8, 4, generator=generator, requires_grad=True)
    ends = torch.tensor([3, 3, 10], dtype=torch.int32)
    y = grouped_product(x, factors, ends)
    plain = torch.cat([x[:3] @ factors[0], x[3:3] @ factors[1], x[3:] @ factors[2]])
    torch.testing.assert_close(y, plain)
    seed = torch.randn(4, 10, generator=generator).T  # gradients need not be contiguous
    found = torch.autograd.grad(y, (x, factors), seed)
    expected = torch.autograd.grad(plain, (x, factors), seed)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs)
    (zero_strides,) = torch.autograd.grad(grouped_product(x, factors, ends).sum(), factors)
    assert not zero_strides[1].any()


def test_what_can_be_grouped() -> None:
    assert is_aligned(torch.bfloat16, 8, 64)
    assert not is_aligned(torch.bfloat16, 4)
    assert is_aligned(torch.float32, 4)
    assert not is_aligned(torch.float64, 64)
    assert not has_fast_kernel(torch.device("cpu"))
