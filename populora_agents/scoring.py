"""What a model thinks of sampled tokens: their log-probabilities, with gradient, and the entropy where they were drawn.

Owns the forward of a micro-batch. Owns no objective and no routing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PretrainedConfig, PreTrainedModel

from populora_agents.batching import MicroBatch

_SHARING_MODELS = frozenset({"llama", "qwen2", "qwen3"})
"""Model types whose attention is nothing but a mask and positions, so that rollouts may share a row."""
_SHARING_ATTENTION = frozenset({"eager", "sdpa"})
"""Implementations that take a mask of four dimensions as it is."""
_ENTROPY_ELEMENTS = 1 << 22
"""Logits looked at in one go, so that the entropy's temporaries stay small beside the logits."""


@dataclass(frozen=True, slots=True)
class Scores:
    """Of the N sampled tokens of a micro-batch, in the order of its targets."""

    logprobs: Tensor
    """float [N], in nats, with gradient."""
    entropies: Tensor
    """float [N], in nats, without gradient."""


def can_share_rows(model: nn.Module) -> bool:
    """Return whether rollouts of one prompt may share a row of this model.

    Windows, recurrent layers and other kernels would see neighbours, so only known models may.
    """
    if not isinstance(model, PreTrainedModel):
        return False
    config = model.config.get_text_config()
    return (
        config.model_type in _SHARING_MODELS
        and config._attn_implementation in _SHARING_ATTENTION
        and has_full_attention(config)
    )


def has_full_attention(config: PretrainedConfig) -> bool:
    """Return whether no layer has a window, or is of another kind."""
    return set(getattr(config, "layer_types", None) or ["full_attention"]) == {"full_attention"}


def score(model: nn.Module, batch: MicroBatch, *, device: torch.device | str) -> Scores:
    """Return log-probabilities and entropies under the temperatures that the tokens were sampled at.

    Args:
        model: A causal language model of transformers.
        batch: On the CPU.
        device: Of the model.
    """
    dtype = next(model.parameters()).dtype
    output = model(
        input_ids=batch.input_ids.to(device),
        attention_mask=batch.attention_mask(dtype, device),
        position_ids=batch.position_ids.to(device),
        use_cache=False,
        logits_to_keep=batch.completion_columns + 1,
    )
    logits: Tensor = output.logits.flatten(0, 1)[batch.predictors.to(device)]
    if logits.dtype in (torch.float16, torch.bfloat16):
        logits = logits.float()
    if bool((batch.temperatures != 1).any()):
        logits = logits / batch.temperatures.to(logits)[:, None]
    spread = logits.log_softmax(dim=-1)
    logprobs = -functional.nll_loss(spread, batch.targets.to(device), reduction="none")
    return Scores(logprobs, token_entropies(spread.detach()))


def token_entropies(log_probabilities: Tensor) -> Tensor:
    """Return the entropy of every row, in nats: float [N, V] to [N], without gradient."""
    rows = max(1, _ENTROPY_ELEMENTS // max(1, log_probabilities.shape[-1]))
    parts = [torch.special.entr(part.exp()).sum(dim=-1) for part in torch.split(log_probabilities, rows)]
    return torch.cat(parts) if parts else log_probabilities.new_zeros(0)
