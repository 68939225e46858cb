"""The short way against transformers' own forward, on every family that has it, and who does not get it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tiny_bases import make_model, random_adapter
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    MistralConfig,
    PreTrainedConfig,
    PreTrainedModel,
    Qwen2Config,
    Qwen3Config,
)

from populora_agents.backends import llama
from populora_agents.backends.llama import LlamaSession, is_readable
from populora_agents.backends.sessions import Prompts, TransformersSession
from populora_agents.config import LoraConfig
from populora_agents.stack import AdapterStack

SHAPE: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}
FAMILIES = [
    LlamaConfig(**SHAPE, attention_bias=True, mlp_bias=True),
    LlamaConfig(**SHAPE, head_dim=16, tie_word_embeddings=True),
    LlamaConfig(**SHAPE, rope_parameters={"rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0}),
    Qwen2Config(**SHAPE),
    Qwen3Config(**SHAPE, head_dim=8),
]
TARGETS = [LoraConfig(lora_rank=4, alpha=8.0), LoraConfig(lora_rank=2, alpha=8.0, targets=("v_proj", "up_proj"))]


def make(config: PreTrainedConfig, dtype: torch.dtype = torch.float64) -> PreTrainedModel:
    # The global generator only makes the random weights here.
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model: PreTrainedModel = AutoModelForCausalLM.from_config(config).to(dtype).eval()
        for name, parameter in model.named_parameters():
            torch.nn.init.normal_(parameter, mean=float("norm" in name), std=0.3)
    return model


def make_stack(model: PreTrainedModel, config: LoraConfig = TARGETS[0]) -> AdapterStack:
    stack = AdapterStack(model, config, 4, dtype=torch.float64)
    for slot in range(4):
        stack.load(slot, random_adapter(model, config, slot, dtype=torch.float64))
    return stack


def some_prompts(rng: np.random.Generator, rows: list[tuple[int, int]]) -> Prompts:
    """Make prompts of random lengths, for (slot, rows) each."""
    return Prompts(
        ids=[tuple(rng.integers(0, 50, rng.integers(1, 12)).tolist()) for _ in rows],
        slots=np.array([slot for slot, _ in rows]),
        of_row=np.repeat(np.arange(len(rows)), [count for _, count in rows]),
        longest=20,
    )


def play(session: LlamaSession | TransformersSession, rows: int, seed: int) -> list[torch.Tensor]:
    """Feed tokens and let rows go, the same for every session; return all logits."""
    rng = np.random.default_rng(seed)
    logits = [session.first]
    for turn in range(12):
        logits.append(session.advance(torch.from_numpy(rng.integers(0, 50, rows))))
        if turn % 3 == 2 and rows > 1:
            kept = np.sort(rng.choice(rows, rng.integers(1, rows), replace=False))
            session.keep(kept)
            rows = len(kept)
    return logits


@torch.no_grad()
@pytest.mark.parametrize("targets", TARGETS, ids=["all", "two"])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.model_type)
def test_both_sessions_give_the_same_logits(family: PreTrainedConfig, targets: LoraConfig) -> None:
    model = make(family)
    assert is_readable(model)
    stack = make_stack(model, targets)
    for seed, rows in enumerate(
        [
            [(0, 4), (1, 4), (2, 4)],
            [(-1, 3), (-1, 1), (0, 5), (0, 2), (3, 1)],
            [(-1, 2), (-1, 1)],
            [(2, 1)],
        ]
    ):
        prompts = some_prompts(np.random.default_rng(seed), rows)
        count = sum(rows for _, rows in rows)
        ours = play(LlamaSession(model, stack, prompts), count, seed)
        theirs = play(TransformersSession(model, stack, prompts), count, seed)
        for one, other in zip(ours, theirs, strict=True):
            # Both turn positions into cosines in float32, in another order.
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_a_stack_that_changes_between_batches_is_read_anew() -> None:
    model = make(FAMILIES[3])
    stack = make_stack(model)
    prompts = some_prompts(np.random.default_rng(0), [(0, 2), (2, 2)])
    before = play(LlamaSession(model, stack, prompts), 4, 0)
    stack.load(2, random_adapter(model, TARGETS[0], 9, dtype=torch.float64))
    after = play(LlamaSession(model, stack, prompts), 4, 0)
    torch.testing.assert_close(before[1][:2], after[1][:2], atol=1e-9, rtol=0)
    assert float((before[1][2:] - after[1][2:]).abs().max()) > 1e-3


@torch.no_grad()
def test_prompts_that_are_read_in_parts_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(FAMILIES[3])
    stack = make_stack(model)
    prompts = some_prompts(np.random.default_rng(1), [(0, 2), (0, 1), (1, 3), (3, 1)])
    whole = play(LlamaSession(model, stack, prompts), 7, 0)
    monkeypatch.setattr(llama, "_PREFILL_TOKENS", 10)
    for one, other in zip(whole, play(LlamaSession(model, stack, prompts), 7, 0), strict=True):
        torch.testing.assert_close(one, other, atol=1e-9, rtol=0)


@torch.no_grad()
def test_bfloat16_stays_near_its_own_forward() -> None:
    model = make_model(spread=0.05).to(torch.bfloat16)
    prompts = some_prompts(np.random.default_rng(2), [(-1, 3), (-1, 1)])
    ours = play(LlamaSession(model, None, prompts), 4, 0)
    theirs = play(TransformersSession(model, None, prompts), 4, 0)
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == torch.bfloat16
        torch.testing.assert_close(one.float(), other.float(), atol=0.05, rtol=0.05)


def test_models_that_are_not_built_so_go_through_transformers() -> None:
    assert not is_readable(make(MistralConfig(**SHAPE)))
    assert not is_readable(make(Qwen2Config(**SHAPE, use_sliding_window=True, sliding_window=8, max_window_layers=0)))
    assert not is_readable(make(LlamaConfig(**SHAPE, hidden_act="gelu")))
    rotation = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
    assert not is_readable(make(LlamaConfig(**SHAPE, rope_parameters=rotation)))


def test_a_model_that_somebody_has_put_something_on_goes_through_transformers() -> None:
    model = make(FAMILIES[0])
    handle = model.model.layers[1].register_forward_hook(lambda *_: None)
    assert not is_readable(model)
    handle.remove()
    assert is_readable(model)
    model.model.layers[0].mlp.up_proj = torch.nn.Sequential(model.model.layers[0].mlp.up_proj)
    assert not is_readable(model)
