"""Products of rows with the factor of their own slot, without padding: one grouped kernel instead of one a slot.

Owns the product and where it can be used. Owns no routing (`routing`). `torch.nn.functional.grouped_mm` is fast on CUDA
(bfloat16, compute capability 9.0 and above); on a CPU it works too, slower than padded batches, which the tests use.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

_ALIGNED_BYTES = 16


def grouped_product(x: Tensor, factors: Tensor, ends: Tensor) -> Tensor:
    """Return `x[n] @ factors[s]` for every row n, s the group it lies in.

    Args:
        x: float [N, d], rows sorted by group.
        factors: float [S, d, e] of the same dtype.
        ends: int32 [S]: where each group ends, the last one at N; groups may be empty.

    Returns:
        float [N, e]; differentiable in `x` and `factors`.
    """
    product: Tensor = _GroupedProduct.apply(x, factors, ends)  # type: ignore[no-untyped-call]
    return product


def has_fast_kernel(device: torch.device) -> bool:
    """Return whether this device has a kernel that beats padded batches."""
    return (
        device.type == "cuda"
        and hasattr(functional, "grouped_mm")  # torch 2.10
        and torch.cuda.get_device_capability(device) >= (9, 0)
    )


def is_aligned(dtype: torch.dtype, *sizes: int) -> bool:
    """Return whether rows of these sizes can be read by the kernel, which takes 16 bytes at a time."""
    return dtype in (torch.bfloat16, torch.float16, torch.float32) and not any(
        size * dtype.itemsize % _ALIGNED_BYTES for size in sizes
    )


class _GroupedProduct(torch.autograd.Function):
    """As torch's own derivative, but for gradients of any strides, which the kernel would refuse."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factors: Tensor, ends: Tensor) -> Tensor:
        ctx.save_for_backward(x, factors, ends)
        return functional.grouped_mm(x.contiguous(), factors, offs=ends)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, factors, ends = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        to_x = functional.grouped_mm(gradient, factors.mT, offs=ends) if ctx.needs_input_grad[0] else None
        to_factors = functional.grouped_mm(x.mT, gradient, offs=ends) if ctx.needs_input_grad[1] else None
        return to_x, to_factors, None
