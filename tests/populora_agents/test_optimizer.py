"""SlotAdamW: against torch's AdamW slot by slot, and that slots move alone."""

from __future__ import annotations

import pytest
import torch
from tiny_bases import make_model

from populora_agents import optimizer as optimizer_module
from populora_agents.config import AdamConfig, LoraConfig
from populora_agents.optimizer import SlotAdamW
from populora_agents.stack import AdapterStack


@pytest.fixture
def stack() -> AdapterStack:
    stack = AdapterStack(make_model(layers=1), LoraConfig(lora_rank=2, alpha=2.0), 3)
    stack.values.copy_(torch.randn(stack.values.shape, generator=torch.Generator().manual_seed(0)))
    stack.gradients.copy_(torch.randn(stack.values.shape, generator=torch.Generator().manual_seed(1)))
    return stack


def test_slots_that_take_no_part_stay_bit_identical(stack: AdapterStack) -> None:
    optimizer = SlotAdamW(stack, AdamConfig(weight_decay=0.1))
    optimizer.step({0: 0.1, 1: 0.1, 2: 0.1})
    before, state = stack.values.clone(), optimizer.state_dict()
    optimizer.step({1: 0.1})
    after = optimizer.state_dict()
    for slot, same in ((0, True), (1, False), (2, True)):
        assert torch.equal(stack.values[slot], before[slot]) is same
        assert torch.equal(after["first"][slot], state["first"][slot]) is same
        assert torch.equal(after["second"][slot], state["second"][slot]) is same
    assert after["counts"].tolist() == [1, 2, 1]


def test_the_first_step_is_the_learning_rate_in_the_gradients_direction(stack: AdapterStack) -> None:
    before = stack.values.clone()
    norms = SlotAdamW(stack, AdamConfig(eps=1e-30)).step({0: 0.5, 2: 0.25})
    torch.testing.assert_close(stack.values[0], before[0] - 0.5 * stack.gradients[0].sign())
    torch.testing.assert_close(stack.values[2], before[2] - 0.25 * stack.gradients[2].sign())
    assert norms[0] == pytest.approx(float(stack.gradients[0].norm()))


def test_clipping_is_by_slot(stack: AdapterStack) -> None:
    stack.gradients[0] *= 1e6
    stack.gradients[1] *= 1e-6
    optimizer = SlotAdamW(stack, AdamConfig(beta1=0.0))
    optimizer.step({0: 0.1, 1: 0.1})
    first = optimizer.state_dict()["first"]
    assert float(first[0].norm()) == pytest.approx(1.0, rel=1e-5)
    torch.testing.assert_close(first[1], stack.gradients[1])


def test_a_reset_slot_begins_anew(stack: AdapterStack) -> None:
    optimizer = SlotAdamW(stack, AdamConfig())
    optimizer.step({0: 0.1, 1: 0.1})
    optimizer.reset(0)
    state = optimizer.state_dict()
    assert not state["first"][0].any()
    assert not state["second"][0].any()
    assert state["first"][1].any()
    assert state["counts"].tolist() == [0, 1, 0]


def test_gradients_that_are_not_finite_move_nothing(stack: AdapterStack) -> None:
    before = stack.values.clone()
    stack.gradients[1, 0] = float("inf")
    with pytest.raises(FloatingPointError, match=r"\[1\]"):
        SlotAdamW(stack, AdamConfig()).step({0: 0.1, 1: 0.1})
    assert torch.equal(stack.values, before)


def test_state_moves_to_another_optimizer(stack: AdapterStack) -> None:
    one = SlotAdamW(stack, AdamConfig())
    one.step({0: 0.1})
    start = stack.values.clone()
    one_state = one.state_dict()
    one.step({0: 0.1, 1: 0.2})
    expected = stack.values.clone()
    stack.values.copy_(start)
    other = SlotAdamW(stack, AdamConfig())
    other.load_state_dict(one_state)
    other.step({0: 0.1, 1: 0.2})
    assert torch.equal(stack.values, expected)
    with pytest.raises(ValueError, match="another stack"):
        other.load_state_dict({name: value[:2] for name, value in one_state.items()})


@pytest.mark.parametrize("block", [7, 1 << 15])
@pytest.mark.parametrize("clip", [0.5, float("inf")])
def test_every_slot_follows_torchs_adamw(monkeypatch: pytest.MonkeyPatch, block: int, clip: float) -> None:
    monkeypatch.setitem(optimizer_module._BLOCK_ELEMENTS, "cpu", block)
    stack = AdapterStack(make_model(layers=1), LoraConfig(lora_rank=2, alpha=2.0), 4, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    stack.values.copy_(torch.randn(stack.values.shape, generator=generator, dtype=torch.float64))
    mine = SlotAdamW(stack, AdamConfig(beta1=0.8, beta2=0.9, weight_decay=0.1, max_grad_norm=clip))
    theirs = [torch.nn.Parameter(stack.values[slot].clone()) for slot in range(4)]
    rates = {0: 0.1, 1: 0.02, 2: 0.3, 3: 0.01}
    torchs = [
        torch.optim.AdamW([one], lr=rates[slot], betas=(0.8, 0.9), weight_decay=0.1) for slot, one in enumerate(theirs)
    ]
    # Neighbours, gaps, one and all; slot 2 is reset before the fourth step.
    for number, slots in enumerate([(0, 1), (0, 3), (2,), (0, 1, 2, 3), (1, 2)]):
        if number == 3:
            mine.reset(2)
            torchs[2].state.clear()
        stack.gradients.copy_(torch.randn(stack.values.shape, generator=generator, dtype=torch.float64))
        for slot in slots:
            theirs[slot].grad = stack.gradients[slot].clone()
            torch.nn.utils.clip_grad_norm_([theirs[slot]], clip)
            torchs[slot].step()
        mine.step({slot: rates[slot] for slot in slots})
        for slot in range(4):
            torch.testing.assert_close(stack.values[slot], theirs[slot].data, rtol=0, atol=1e-12)


def test_nothing_to_do_is_legal(stack: AdapterStack) -> None:
    before = stack.values.clone()
    assert SlotAdamW(stack, AdamConfig()).step({}) == {}
    assert torch.equal(stack.values, before)


def test_slots_that_the_stack_has_grown_begin_with_zero_moments(stack: AdapterStack) -> None:
    optimizer = SlotAdamW(stack, AdamConfig())
    optimizer.step({0: 0.1})
    first = optimizer.state_dict()["first"]
    stack.grow(5)
    stack.gradients[4] = 1.0
    optimizer.step({4: 0.1})
    state = optimizer.state_dict()
    assert state["counts"].tolist() == [1, 0, 0, 0, 1]
    assert torch.equal(state["first"][:3], first)
    assert state["first"][4].all()
