"""Batches of equal shape."""

from __future__ import annotations

from collections.abc import Callable

import torch

from league.operators.groups import copied, ordered, shape_groups, unstack
from populora_agents.lora import Adapter

Make = Callable[..., Adapter]


def test_modules_of_one_shape_are_stacked_in_the_order_of_names(make_adapter: Make) -> None:
    first, second = make_adapter(0), make_adapter(1)
    groups = list(shape_groups(first, second))
    assert [group.modules for group in groups] == [("a.q", "c.q"), ("a.v",), ("b.up",)]
    a, b = groups[0].parents[1]
    assert torch.equal(a[1], second["c.q"].A)
    assert torch.equal(b[0], second["a.q"].B)


def test_arithmetic_is_in_float32_at_least(make_adapter: Make) -> None:
    for dtype, inside in (
        (torch.bfloat16, torch.float32),
        (torch.float16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ):
        group = next(iter(shape_groups(make_adapter(0, dtype=dtype))))
        assert group.parents[0][0].dtype == inside


def test_stacking_and_unstacking_is_the_identity(make_adapter: Make) -> None:
    adapter = make_adapter(0, dtype=torch.bfloat16)
    parts: Adapter = {}
    for group in shape_groups(adapter):
        parts |= unstack(group, *group.parents[0], like=adapter)
    back = ordered(parts, adapter)
    assert list(back) == list(adapter)
    for module in adapter:
        assert torch.equal(back[module].A, adapter[module].A)
        assert back[module].A.dtype == torch.bfloat16


def test_a_copy_takes_no_gradient_and_shares_no_memory(make_adapter: Make) -> None:
    factors = make_adapter(0)["a.q"]
    factors.A.requires_grad_()
    copy = copied(factors)
    assert torch.equal(copy.A, factors.A)
    assert not copy.A.requires_grad
    assert copy.A.data_ptr() != factors.A.data_ptr()
