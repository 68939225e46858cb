"""Log-probabilities and entropies of sampled tokens, in rows of their own and in shared ones."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_bases import exact, make_model
from torch import nn
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from populora_agents import scoring
from populora_agents.batching import micro_batches
from populora_agents.scoring import can_share_rows, score, token_entropies
from populora_agents.types import Rollout

SIZES = {
    "vocab_size": 64,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
}


def family() -> list[Rollout]:
    """Return rollouts of two prompts, of different lengths."""
    rng = np.random.default_rng(0)
    prompts = [tuple(rng.integers(0, 64, size).tolist()) for size in (5, 3)]
    lengths = [3, 1, 4, 2, 2]
    return [
        Rollout(
            member_id="m",
            batch="b",
            group_id="g",
            prompt_ids=prompts[place % 2],
            token_ids=tuple(rng.integers(0, 64, length).tolist()),
            logprobs=(0.0,) * length,
            reward=0.0,
        )
        for place, length in enumerate(lengths)
    ]


def plain(model: nn.Module, rollout: Rollout, temperature: float) -> torch.Tensor:
    """Return the log-probabilities [tokens, V] of one unpadded row."""
    ids = torch.tensor([[*rollout.prompt_ids, *rollout.token_ids]])
    logits = model(input_ids=ids).logits[0, len(rollout.prompt_ids) - 1 : -1]
    return (logits / temperature).log_softmax(-1)


@pytest.mark.parametrize("shared", [0, 100])
@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_scores_equal_those_of_unpadded_rows(kind: str, shared: int, attention: str) -> None:
    torch.manual_seed(0)  # transformers draws weights from the global generator
    models = {
        "llama": make_model,
        "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**SIZES)),
        "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SIZES, head_dim=8)),
    }
    # In float64 transformers' eager attention has no number for rows of padding: it computes in float32.
    model = exact(models[kind]()) if attention == "sdpa" else models[kind]().eval()
    within = 1e-12 if attention == "sdpa" else 1e-5
    model.set_attn_implementation(attention)
    assert can_share_rows(model)
    rollouts = [
        replace(one, temperature=temperature)
        for one, temperature in zip(family(), (0.7, 1.0, 1.3, 0.7, 2.0), strict=True)
    ]
    (batch,) = micro_batches(rollouts, range(5), [0] * 5, 1000, shared_row_tokens=shared)
    assert batch.shares_rows is bool(shared)
    found = score(model, batch, device="cpu")
    rows = [plain(model, rollouts[place], rollouts[place].temperature) for place in batch.places]
    tokens = [torch.tensor(rollouts[place].token_ids) for place in batch.places]
    expected = torch.cat([row.gather(1, ids[:, None])[:, 0] for row, ids in zip(rows, tokens, strict=True)])
    torch.testing.assert_close(found.logprobs, expected, rtol=0, atol=within)
    entropies = torch.cat([-(row.exp() * row).sum(-1) for row in rows])
    torch.testing.assert_close(found.entropies, entropies, rtol=0, atol=within)
    assert not found.entropies.requires_grad


def test_entropies_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "_ENTROPY_ELEMENTS", 4)  # two rows a part
    rows = torch.tensor([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]], dtype=torch.float64)
    expected = [math.log(2), 0.0, 0.25 * math.log(4) + 0.75 * math.log(4 / 3)]
    assert token_entropies(rows.log()).tolist() == pytest.approx(expected)
    assert token_entropies(torch.zeros(0, 2)).shape == (0,)


def test_models_whose_attention_is_more_than_a_mask_share_nothing() -> None:
    sliding = MistralForCausalLM(MistralConfig(**SIZES, sliding_window=4))
    windows = Qwen2ForCausalLM(Qwen2Config(**SIZES, use_sliding_window=True, sliding_window=4, max_window_layers=0))
    gpt2 = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=2, vocab_size=16))
    others: list[nn.Module] = [sliding, windows, gpt2, nn.Linear(2, 2)]
    for model in others:
        assert not can_share_rows(model)
    flash: PreTrainedModel = make_model()
    flash.config._attn_implementation = "flash_attention_2"
    assert not can_share_rows(flash)
