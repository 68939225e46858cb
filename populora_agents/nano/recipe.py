"""The recipe of nano: its shape, its schedule, and how training texts become batches.

Owns numbers and pure functions; the loop and the files are in `train`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from transformers import LlamaConfig, PreTrainedTokenizerFast

from populora_agents.nano.corpus import Example, examples
from populora_env.types import Role

IGNORE = -100
"""Target of positions that carry no loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All that decides the weights, but for the number of threads."""

    hidden: int = 128
    """Width of the residual stream; heads have 32 of it each."""
    layers: int = 5
    """Transformer layers."""
    mlp: int = 384
    """Width of the gated MLP."""
    positions: int = 1024
    """Longest sequence."""
    steps: int = 60000
    """Optimiser steps."""
    decay: int = 12000
    """Of these, the last ones, in which the rate falls to zero; before, it is constant."""
    batch_tokens: int = 4096
    """Most tokens of a batch, padding included."""
    chunk: int = 16384
    """Texts made at once, sorted by length and cut into batches."""
    learning_rate: float = 3e-3
    """Rate of the constant part of the schedule."""
    warmup: int = 150
    """Steps of linear warm-up."""
    weight_decay: float = 0.05
    """Decoupled, on matrices only."""
    grad_clip: float = 1.0
    """Largest gradient norm."""
    seed: int = 0
    """Root of all randomness."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.hidden % 32:
            raise ValueError(f"`hidden` must be a multiple of 32, got {self.hidden!r}")
        if not 0 <= self.decay <= self.steps:
            raise ValueError(f"`decay` must be in 0..{self.steps}, the number of steps, got {self.decay!r}")
        for name in ("layers", "mlp", "steps", "batch_tokens", "chunk"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` must be at least 1, got {getattr(self, name)!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Right-padded token ids and targets, both int64 [rows, length]; targets are shifted by the model."""

    ids: Tensor
    targets: Tensor
    tokens: int
    """Without padding."""


def model_config(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> LlamaConfig:
    """Return the shape of the model, an ordinary Llama with tied embeddings, and the preset it is played with."""
    heads = recipe.hidden // 32
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=recipe.hidden,
        intermediate_size=recipe.mlp,
        num_hidden_layers=recipe.layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=recipe.positions,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    config.update({"populora_preset": "nano"})
    return config


def learning_rate(recipe: Recipe, step: int) -> float:
    """Return the rate of a step: linear warm-up, a constant, then a straight line down to zero.

    The constant part does not depend on where the schedule ends, so that it may be continued for as long as one likes
    and a usable model be had from any of its checkpoints by a short decay (Hu et al., MiniCPM, 2024, section 4.1).
    """
    rising = (step + 1) / max(1, recipe.warmup)
    falling = (recipe.steps - step) / max(1, recipe.decay)
    return recipe.learning_rate * max(0.0, min(1.0, rising, falling))


def batches(recipe: Recipe, tokenizer: PreTrainedTokenizerFast, *, chunk: int) -> list[Batch]:
    """Return the batches of the `chunk`-th chunk of texts, each of rows of about one length, in random order."""
    rng = np.random.default_rng(np.random.SeedSequence([recipe.seed, chunk]))
    texts = list(itertools.islice(examples(rng), recipe.chunk))
    rows = sorted(encode(tokenizer, texts), key=lambda row: len(row[0]))
    made = [_pad(group, tokenizer) for group in _by_budget(rows, recipe.batch_tokens)]
    return [made[place] for place in rng.permutation(len(made))]


Row = tuple[list[int], list[int]]
"""Token ids, and targets: the same ids, or `IGNORE` where there is no loss."""


def encode(tokenizer: PreTrainedTokenizerFast, texts: list[Example]) -> list[Row]:
    """Return one row a text: solvers learn their answers, proposers also the references (they are proposals too)."""
    prompts = tokenizer([text.prompt for text in texts]).input_ids
    completions = tokenizer([text.completion for text in texts]).input_ids
    rows = []
    for text, prompt, completion in zip(texts, prompts, completions, strict=True):
        end = [*completion, tokenizer.eos_token_id]
        shown = [IGNORE] * len(prompt) if text.role is Role.SOLVER else prompt
        said = [IGNORE, *end[1:]] if text.is_begun else end
        rows.append(([*prompt, *end], [*shown, *said]))
    return rows


def _by_budget(rows: list[Row], budget: int) -> Iterator[list[Row]]:
    group: list[Row] = []
    for row in rows:
        if group and (len(group) + 1) * len(row[0]) > budget:
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def _pad(rows: list[Row], tokenizer: PreTrainedTokenizerFast) -> Batch:
    length = max(len(ids) for ids, _ in rows)
    ids = torch.stack([_filled(row, length, int(tokenizer.pad_token_id)) for row, _ in rows])
    targets = torch.stack([_filled(row, length, IGNORE) for _, row in rows])
    return Batch(ids=ids, targets=targets, tokens=sum(len(row) for row, _ in rows))


def _filled(row: list[int], length: int, value: int) -> Tensor:
    return functional.pad(torch.tensor(row), (0, length - len(row)), value=value)
