"""A session: one batch of rows on its way through a model, token by token, with what it remembers of them.

Owns the protocol, reading prompts, and the session that drives any model of transformers through its own forward.
The shorter way for models that are built like Llama is in `llama`.

Symbols: R rows, P different prompts, V tokens of the vocabulary.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import Cache, PreTrainedModel

from populora_agents.batching import positions
from populora_agents.kv_cache import new_cache
from populora_agents.stack import AdapterStack


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """What a batch begins with; rows of one slot and prompt share one entry."""

    ids: Sequence[tuple[int, ...]]
    """[P], none empty."""
    slots: NDArray[np.int64]
    """int64 [P], sorted; -1 is the bare base."""
    of_row: NDArray[np.int64]
    """int64 [R], sorted: the prompt of each row."""
    longest: int
    """Most tokens that a row may add, >= 1."""


class Session(Protocol):
    """Remembers a batch; made with its prompts."""

    first: Tensor
    """float [R, V]: logits of each row's first token."""

    def advance(self, tokens: Tensor) -> Tensor:
        """Take the newest token of each row, int64 [R], and return the logits of the next, float [R, V]."""
        ...

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Forget all rows but these, sorted."""
        ...


class TransformersSession:
    """Drives any causal language model of transformers by its own forward and cache."""

    def __init__(self, model: PreTrainedModel, stack: AdapterStack | None, prompts: Prompts) -> None:
        """Read each different prompt once."""
        self._model = model
        self._stack = stack
        self._cache = new_cache(model.config)
        ids, mask = left_padded(prompts.ids, model.device)
        logits = forward(model, stack, (ids, mask, positions(mask)), self._cache, prompts.slots)
        if len(prompts.ids) < len(prompts.of_row):
            index = torch.from_numpy(prompts.of_row).to(model.device)
            self._cache.batch_select_indices(index)
            logits, mask = logits[index], mask[index]
        self.first = logits
        self._slots = prompts.slots[prompts.of_row]
        self._lengths = mask.sum(dim=1)
        self._columns = mask.shape[1]
        self._mask = torch.cat([mask, mask.new_ones(len(mask), prompts.longest)], dim=1)
        self._added = 0

    def advance(self, tokens: Tensor) -> Tensor:
        """See `Session`."""
        self._added += 1
        mask = self._mask[:, : self._columns + self._added]
        places = self._lengths + (self._added - 1)
        return forward(self._model, self._stack, (tokens[:, None], mask, places[:, None]), self._cache, self._slots)

    def keep(self, rows: NDArray[np.int64]) -> None:
        """See `Session`."""
        index = torch.from_numpy(rows).to(self._mask.device)
        self._cache.batch_select_indices(index)
        self._lengths, self._mask, self._slots = self._lengths[index], self._mask[index], self._slots[rows]


def forward(
    model: PreTrainedModel,
    stack: AdapterStack | None,
    columns: tuple[Tensor, Tensor, Tensor],
    cache: Cache,
    slots: NDArray[np.int64],
) -> Tensor:
    """Return logits [R, V] after the last column.

    Args:
        model: The base.
        stack: What serves the slots; None is the bare base.
        columns: int64 ids [R, T] and positions [R, T] of new columns, between them the mask [R, all columns].
        cache: Of the columns before; the new ones are added.
        slots: int64 [R].
    """
    with nullcontext() if stack is None else stack.route(slots):
        logits: Tensor = model(logits_to_keep=1, **arguments(model, columns, cache)).logits[:, -1]
    return logits


def arguments(model: PreTrainedModel, columns: tuple[Tensor, Tensor, Tensor], cache: Cache) -> dict[str, Any]:
    """Return what `model`, or the model inside of one, is called with; see `forward`."""
    ids, mask, places = columns
    named = {"input_ids": ids, "attention_mask": mask, "position_ids": places, "use_cache": True}
    return {**named, cache_argument(type(model).forward): cache}


@functools.cache
def cache_argument(forward: Callable[..., object]) -> str:
    """Return what a model's forward calls its cache; transformers 5 renamed it."""
    return "cache" if "cache" in inspect.signature(forward).parameters else "past_key_values"


def left_padded(prompts: Sequence[Sequence[int]], device: torch.device | str = "cpu") -> tuple[Tensor, Tensor]:
    """Return ids and mask, int64 [P, longest]; the token at padded places is 0 and never read."""
    width = max(len(prompt) for prompt in prompts)
    ids = np.zeros((len(prompts), width), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = prompt
        mask[row, width - len(prompt) :] = 1
    return torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)
