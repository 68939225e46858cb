"""The stack against separate PEFT models, and the walls between slots."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from peft import LoraConfig as PeftConfig
from peft import get_peft_model, set_peft_model_state_dict
from tiny_bases import exact, make_model, random_adapter
from torch import nn
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from populora_agents.config import AdamConfig, LoraConfig
from populora_agents.lora import Adapter, LoraFactors, fresh_adapter
from populora_agents.optimizer import SlotAdamW
from populora_agents.stack import AdapterStack, ProductName, StackedLinear

CONFIG = LoraConfig(lora_rank=4, alpha=8.0)
DOUBLE = torch.float64


def peft_model(adapter: Adapter) -> Any:
    """Return a PEFT model of its own that holds `adapter`."""
    settings_ = PeftConfig(r=4, lora_alpha=8, target_modules=list(CONFIG.targets), lora_dropout=0.0)
    model = get_peft_model(make_model(dtype=DOUBLE), settings_, autocast_adapter_dtype=False).eval()
    with torch.no_grad():
        for path, pair in adapter.items():
            module = model.get_submodule(f"base_model.model.{path}")
            module.lora_A["default"].weight.copy_(pair.A)
            module.lora_B["default"].weight.copy_(pair.B)
    return model.to(DOUBLE)


def peft_factors(model: Any, path: str) -> tuple[nn.Parameter, nn.Parameter]:
    module = model.get_submodule(f"base_model.model.{path}")
    return module.lora_A["default"].weight, module.lora_B["default"].weight


def loss_of(model: Any, ids: torch.Tensor) -> torch.Tensor:
    logits = model(input_ids=ids, use_cache=False).logits[:, :-1]
    return torch.nn.functional.cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none").sum()


def stack_of(slots: int, **kwargs: Any) -> tuple[AdapterStack, list[Adapter]]:
    model = make_model(dtype=DOUBLE)
    adapters = [random_adapter(model, CONFIG, seed, dtype=DOUBLE) for seed in range(slots)]
    stack = AdapterStack(model, CONFIG, slots, dtype=DOUBLE, **kwargs)
    for slot, adapter in enumerate(adapters):
        stack.load(slot, adapter)
    return stack, adapters


ROUTES = [
    pytest.param([0, 0, 1, 1, 2, 2], id="equal and sorted"),
    pytest.param([2, 0, 1, 0, 2, 1], id="equal, mixed"),
    pytest.param([0, 1, 1, 1, 2, 0], id="unequal"),
    pytest.param([2, 0, 0, 2, 2, 0], id="slot 1 idle"),
    pytest.param([-1, 0, 2, None, 1, 1], id="with bare rows"),
    pytest.param([1] * 6, id="one slot"),
]


@pytest.mark.parametrize("route", ROUTES)
def test_logits_and_gradients_equal_those_of_separate_peft_models(route: list[int | None]) -> None:
    stack, adapters = stack_of(3)
    ids = torch.randint(0, 256, (6, 9), generator=torch.Generator().manual_seed(1))
    with stack.route(route):
        logits = stack.model(input_ids=ids, use_cache=False).logits
        loss_of(stack.model, ids).backward()
    for slot, adapter in enumerate(adapters):
        rows = [row for row, wanted in enumerate(route) if wanted == slot]
        alone = peft_model(adapter)
        if rows:
            torch.testing.assert_close(logits[rows], alone(input_ids=ids[rows]).logits, rtol=0, atol=1e-10)
            loss_of(alone, ids[rows]).backward()
        for path, layer in stack._layers.items():
            for stacked, own in zip(layer.factors, peft_factors(alone, path), strict=True):
                assert stacked.grad is not None
                expected = torch.zeros_like(own) if own.grad is None else own.grad
                torch.testing.assert_close(stacked.grad[slot], expected, rtol=1e-10, atol=1e-10)
    bare = [row for row, wanted in enumerate(route) if wanted in (None, -1)]
    torch.testing.assert_close(
        logits[bare], make_model(dtype=DOUBLE)(input_ids=ids[bare]).logits if bare else logits[bare]
    )


def test_three_optimiser_steps_equal_those_of_separate_peft_models() -> None:
    stack, adapters = stack_of(3)
    optimizer = SlotAdamW(stack, AdamConfig(weight_decay=0.01))
    alone = [peft_model(adapter) for adapter in adapters]
    rates = [1e-3, 1e-2, 3e-3]
    theirs = [
        torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=rate, weight_decay=0.01)
        for model, rate in zip(alone, rates, strict=True)
    ]
    generator = torch.Generator().manual_seed(2)
    # Slot 2 rests in the second step: counts differ from slot to slot.
    for route in ([0, 1, 1, 2, 0], [1, 0, 0, 1, 0], [2, 1, 0, 2, 2]):
        ids = torch.randint(0, 256, (5, 7), generator=generator)
        optimizer.zero_gradients()
        with stack.route(route):
            loss_of(stack.model, ids).backward()
        optimizer.step({slot: rates[slot] for slot in sorted(set(route))})
        for slot in sorted(set(route)):
            theirs[slot].zero_grad()
            loss_of(alone[slot], ids[[row for row, wanted in enumerate(route) if wanted == slot]]).backward()
            nn.utils.clip_grad_norm_([p for p in alone[slot].parameters() if p.requires_grad], 1.0)
            theirs[slot].step()
    for slot, model in enumerate(alone):
        for path, pair in stack.adapter(slot).items():
            own_a, own_b = peft_factors(model, path)
            torch.testing.assert_close(pair.A, own_a.data, rtol=0, atol=1e-10)
            torch.testing.assert_close(pair.B, own_b.data, rtol=0, atol=1e-10)


def test_rows_of_one_slot_leave_every_other_gradient_exactly_zero() -> None:
    stack, _ = stack_of(4)
    with stack.route([1, 3, 1, 3, 3]):
        loss_of(stack.model, torch.randint(0, 256, (5, 6))).backward()
    assert not stack.gradients[0].any()
    assert not stack.gradients[2].any()
    assert stack.gradients[1].any()


def test_another_members_data_changes_no_bit_of_a_gradient() -> None:
    stack, _ = stack_of(2)
    ids = torch.randint(0, 256, (4, 6), generator=torch.Generator().manual_seed(3))
    seen = []
    for swap in (False, True):
        ids[2:] = ids[2:].flip(1) if swap else ids[2:]
        stack.gradients.zero_()
        with stack.route([0, 0, 1, 1]):
            loss_of(stack.model, ids).backward()
        seen.append(stack.gradients.clone())
    assert torch.equal(seen[0][0], seen[1][0])
    assert not torch.equal(seen[0][1], seen[1][1])


def test_outside_a_route_the_model_is_the_bare_base() -> None:
    stack, _ = stack_of(2)
    ids = torch.arange(8)[None]
    plain = make_model(dtype=DOUBLE)(input_ids=ids).logits
    assert torch.equal(stack.model(input_ids=ids).logits, plain)
    with stack.route([0]):
        assert not torch.equal(stack.model(input_ids=ids).logits, plain)
        with stack.route([None]):
            assert torch.equal(stack.model(input_ids=ids).logits, plain)
    assert torch.equal(stack.model(input_ids=ids).logits, plain)


def test_the_route_ends_with_an_exception_too() -> None:
    stack, _ = stack_of(1)
    with pytest.raises(RuntimeError, match="boom"), stack.route([0]):
        raise RuntimeError("boom")
    stack.model(input_ids=torch.arange(8).view(2, 4))


def test_fresh_adapters_change_nothing() -> None:
    model = make_model()
    stack = AdapterStack(model, CONFIG, 2)
    stack.load(0, fresh_adapter(model, CONFIG, torch.Generator().manual_seed(0)))
    ids = torch.arange(12).view(2, 6)
    plain = model(input_ids=ids).logits
    with stack.route([0, 1]):
        assert torch.equal(model(input_ids=ids).logits, plain)


def test_load_and_adapter_are_copies() -> None:
    stack, adapters = stack_of(2)
    taken = stack.adapter(1)
    path = next(iter(taken))
    assert torch.equal(taken[path].A, adapters[1][path].A)
    taken[path].A.zero_()
    adapters[1][path].B.zero_()
    assert stack.adapter(1)[path].A.any()
    assert stack.adapter(1)[path].B.any()


def test_the_models_state_dict_stays_as_it_was() -> None:
    plain = make_model()
    stack = AdapterStack(make_model(), CONFIG, 3)
    assert list(stack.model.state_dict()) == list(plain.state_dict())
    assert not any(parameter.requires_grad for parameter in stack.model.parameters())
    assert all(parameter.requires_grad for parameter in stack.parameters())


def test_any_module_with_linear_targets_can_be_stacked() -> None:
    mlp = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    config = LoraConfig(lora_rank=2, alpha=2.0, targets=("0", "2"))
    adapter = random_adapter(mlp, config, 0)
    plain = copy.deepcopy(mlp)
    stack = AdapterStack(mlp, config, 2)
    stack.load(1, adapter)
    x = torch.randn(4, 3)
    merged = copy.deepcopy(plain)
    with torch.no_grad():
        for name in config.targets:
            merged.get_submodule(name).weight += adapter[name].B @ adapter[name].A
    with stack.route([1, 1, -1, 1]):
        y = mlp(x)
    torch.testing.assert_close(y[[0, 1, 3]], merged(x)[[0, 1, 3]])
    torch.testing.assert_close(y[2], plain(x)[2])


def test_a_bf16_base_keeps_its_dtype_with_float32_factors() -> None:
    stack = AdapterStack(make_model(dtype=torch.bfloat16), CONFIG, 2)
    with stack.route([0, 1, 1]):
        logits = stack.model(input_ids=torch.arange(12).view(3, 4)).logits
    assert logits.dtype == torch.bfloat16
    assert stack.values.dtype == torch.float32


@pytest.mark.parametrize("kind", ["qwen2", "qwen3"])
def test_qwen_members_equal_peft_models_both_ways(kind: str) -> None:
    """The stack's member in PEFT has the same logits, and so has what PEFT trained in the stack."""
    torch.manual_seed(0)  # transformers draws weights from the global generator
    sizes = {
        "vocab_size": 64,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
    }
    model: Any = (
        Qwen2ForCausalLM(Qwen2Config(**sizes))
        if kind == "qwen2"
        else Qwen3ForCausalLM(Qwen3Config(**sizes, head_dim=8))
    )
    model = exact(model)
    stack = AdapterStack(model, CONFIG, 2, dtype=DOUBLE)
    stack.load(1, random_adapter(model, CONFIG, 5, dtype=DOUBLE))
    ids = torch.randint(0, 64, (3, 7), generator=torch.Generator().manual_seed(1))
    with stack.route([1, 1, 1]):
        expected = model(input_ids=ids).logits
    state, fields = stack.to_peft(1)
    theirs = get_peft_model(stack.bare_model(), PeftConfig(**fields | {"inference_mode": False})).double()  # type: ignore[arg-type]
    assert not set_peft_model_state_dict(theirs, state).unexpected_keys
    torch.testing.assert_close(theirs(input_ids=ids).logits, expected, rtol=0, atol=1e-10)
    loss_of(theirs, ids).backward()
    back: Adapter = {}
    for path in stack.modules():
        down, up = peft_factors(theirs, path)
        assert down.grad is not None
        assert up.grad is not None
        back[path] = LoraFactors(A=down.data - 0.1 * down.grad, B=up.data - 0.1 * up.grad)
        down.data, up.data = back[path].A, back[path].B
    stack.load(0, back)
    with stack.route([0, 0, 0]):
        found = model(input_ids=ids).logits
    assert not torch.allclose(found, expected)
    torch.testing.assert_close(found, theirs(input_ids=ids).logits, rtol=0, atol=1e-10)


def test_the_bare_model_shares_weights_and_knows_no_slot() -> None:
    stack, _ = stack_of(2)
    bare: Any = stack.bare_model()
    ids = torch.arange(8)[None]
    with stack.route([1]):
        assert torch.equal(bare(input_ids=ids).logits, make_model(dtype=DOUBLE)(input_ids=ids).logits)
    assert {p.data_ptr() for p in bare.parameters()} == {p.data_ptr() for p in stack.model.parameters()}
    assert not any(isinstance(module, StackedLinear) for module in bare.modules())
    assert any(isinstance(module, StackedLinear) for module in stack.model.modules())


def test_slots_are_added_and_reset() -> None:
    stack, adapters = stack_of(2)
    ids = torch.arange(8)[None]
    with stack.route([1]):
        before = stack.model(input_ids=ids).logits
    stack.grow(4)
    assert stack.values.shape[0] == stack.gradients.shape[0] == stack.slots == 4
    stack.load(3, adapters[1])
    with stack.route([1]):
        assert torch.equal(stack.model(input_ids=ids).logits, before)
    with stack.route([3]):
        loss_of(stack.model, ids).backward()
        torch.testing.assert_close(stack.model(input_ids=ids).logits, before)
    assert stack.gradients[3].any()
    assert not stack.gradients[:3].any()
    stack.reset(3)
    assert not stack.values[3].any()
    assert not stack.gradients[3].any()
    with stack.route([3]):
        plain = make_model(dtype=DOUBLE)(input_ids=ids).logits
        assert torch.equal(stack.model(input_ids=ids).logits, plain)
    with pytest.raises(ValueError, match="at least 4"):
        stack.grow(3)


@pytest.mark.skipif(not hasattr(nn.functional, "grouped_mm"), reason="torch before 2.10 has no grouped_mm")
@pytest.mark.parametrize("route", [[0, 0, 1, 2, 2, 2], [1, 1, 1, 1, 1, 1], [0, 2, 2, 2, 2, 2], [2, 0, 0, 1, 1, 1]])
def test_grouped_products_equal_batched_ones(route: list[int]) -> None:
    ids = torch.randint(0, 256, (6, 9), generator=torch.Generator().manual_seed(1))
    seen: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
    names: tuple[ProductName, ...] = ("batched", "grouped")
    for name in names:
        model = make_model()
        stack = AdapterStack(model, CONFIG, 3, product=name)
        for slot in range(3):
            stack.load(slot, random_adapter(model, CONFIG, slot))
        with stack.route(route):
            logits = model(input_ids=ids, use_cache=False).logits
            loss_of(model, ids).backward()
        seen[name] = logits.detach(), stack.gradients.clone()
    for one, other in zip(*seen.values(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_conv1d_is_refused_by_name() -> None:
    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=16))
    with pytest.raises(ValueError, match="Conv1D"):
        AdapterStack(model, LoraConfig(targets=("c_attn",)), 1)


def test_unknown_targets_are_refused_with_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"'nose_proj'.*'q_proj'"):
        AdapterStack(make_model(), LoraConfig(targets=("q_proj", "nose_proj")), 1)


def test_a_stack_on_a_stack_is_refused() -> None:
    stack = AdapterStack(make_model(), CONFIG, 1)
    with pytest.raises(ValueError, match="StackedLinear"):
        AdapterStack(stack.model, CONFIG, 1)


def test_misfits_are_refused_and_change_nothing() -> None:
    stack, adapters = stack_of(2)
    before = stack.values.clone()
    short = dict(list(adapters[0].items())[1:])
    with pytest.raises(ValueError, match="exactly the stack's modules"):
        stack.load(0, short)
    with pytest.raises(ValueError, match="needs"):
        stack.load(0, random_adapter(make_model(), LoraConfig(lora_rank=2), 0))
    with pytest.raises(ValueError, match=r"0\.\.1"):
        stack.load(2, adapters[0])
    with pytest.raises(ValueError, match="names 3 rows"), stack.route([0, 1, 1]):
        stack.model(input_ids=torch.arange(4)[None])
    with pytest.raises(ValueError, match="row_slots"), stack.route([0, 2]):
        pass
    assert torch.equal(stack.values, before)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(-1, 4), min_size=1, max_size=12), st.integers(0, 2**16))
def test_stacked_linear_equals_one_product_a_row(route: list[int], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    linear = nn.Linear(4, 3)
    stack = AdapterStack(nn.Sequential(linear), LoraConfig(lora_rank=2, alpha=3.0, targets=("0",)), 5, dtype=DOUBLE)
    layer = stack.model.get_submodule("0").to(DOUBLE)
    assert isinstance(layer, StackedLinear)
    stack.values.copy_(torch.randn(stack.values.shape, generator=generator, dtype=DOUBLE))
    x = torch.randn(len(route), 2, 4, generator=generator, dtype=DOUBLE)
    with stack.route(np.array(route)):
        y = layer(x)
    down, up = layer.factors
    for row, slot in enumerate(route):
        expected = x[row] @ layer.weight.T + layer.bias
        if slot >= 0:
            expected = expected + 1.5 * x[row] @ down[slot].T @ up[slot].T
        torch.testing.assert_close(y[row], expected, rtol=1e-12, atol=1e-12)
