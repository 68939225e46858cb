"""Decoding one batch of rows: prefill, then one token a row at a time, rows leave when they are done.

Owns the loop and its bookkeeping. Which requests form a batch, and what their text is, is the backend's affair.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import Cache, PreTrainedModel

from populora_agents.batching import positions
from populora_agents.kv_cache import new_cache
from populora_agents.sampling import choose_tokens, uniforms
from populora_agents.stack import AdapterStack

_COMPACT_BELOW = 0.8
"""Share of rows that must be left for the cache not to be compacted."""
_PADDING_WORTH = 1.25
"""Finished rows are kept as padding, so that slots stay equally full, up to this multiple of the live rows."""


@dataclass(slots=True, kw_only=True)
class Row:
    """One completion in the making."""

    place: int
    """The request's place in the caller's order."""
    slot: int
    """Of the adapter; -1 is the bare base."""
    prompt_ids: tuple[int, ...]
    limit: int
    """Most tokens to sample, >= 1."""
    temperature: float
    seed: int
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


def rows_to_keep(slots: NDArray[np.int64], live: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the places that stay when a batch is compacted: all live rows, and padding where it is cheap.

    Args:
        slots: int [R], sorted.
        live: bool [R].

    Returns:
        Sorted places. When filling the slots up to equal counts with finished rows adds at most a quarter, they are
        filled up (equal counts save gathering rows in every layer); else the live rows alone.
    """
    alive = np.flatnonzero(live)
    active, counts = np.unique(slots[alive], return_counts=True)
    width = int(counts.max(initial=0))
    if width * len(active) > _PADDING_WORTH * len(alive):
        return alive
    # Live rows first inside each slot; a slot that has too few rows in all keeps what it has.
    order = np.lexsort((np.arange(len(slots)), ~live, slots))
    starts = np.searchsorted(slots[order], active)
    ends = np.searchsorted(slots[order], active, side="right")
    kept = [order[start : min(start + width, end)] for start, end in zip(starts, ends, strict=True)]
    return np.sort(np.concatenate([*kept, np.empty(0, dtype=np.int64)]))


class Decoder:
    """Completes rows, all together; rows must be sorted by slot."""

    def __init__(self, model: PreTrainedModel, stack: AdapterStack | None, eos_ids: Sequence[int]):
        """Take the model to decode with, and the stack that serves its slots (None: bare base only)."""
        self._model = model
        self._stack = stack
        self._eos = np.array(sorted(eos_ids), dtype=np.int64)
        # transformers 5 renamed the argument.
        names = inspect.signature(model.forward).parameters
        self._cache_name = "cache" if "cache" in names else "past_key_values"

    @torch.no_grad()
    def run(self, rows: Sequence[Row]) -> None:
        """Fill in the rows' tokens and log-probabilities, the end-of-sequence token included."""
        batch, logits = self._prefill(rows)
        while True:
            batch.draw(logits, self._eos)
            if not batch.live.any():
                return
            batch.compact()
            logits = self._forward(
                batch.tokens[:, None], batch.mask, batch.positions[:, None], batch.cache, batch.slots
            )

    def _prefill(self, rows: Sequence[Row]) -> tuple[_Batch, Tensor]:
        """Read each different prompt once; return the batch and the first logits, one a row."""
        distinct = list(dict.fromkeys((row.slot, row.prompt_ids) for row in rows))
        number = {key: place for place, key in enumerate(distinct)}
        device = self._model.device
        ids, mask = left_padded([prompt for _, prompt in distinct])
        ids, mask = ids.to(device), mask.to(device)
        cache = new_cache(self._model.config)
        logits = self._forward(ids, mask, positions(mask), cache, np.array([slot for slot, _ in distinct]))
        if len(distinct) < len(rows):
            index = torch.tensor([number[row.slot, row.prompt_ids] for row in rows], device=device)
            cache.batch_select_indices(index)
            logits, mask = logits[index], mask[index]
        return _Batch(rows, mask, cache), logits

    def _forward(self, ids: Tensor, mask: Tensor, places: Tensor, cache: Cache, slots: NDArray[np.int64]) -> Tensor:
        """Return logits [R, V] after the last column."""
        arguments = {"input_ids": ids, "attention_mask": mask, "position_ids": places, self._cache_name: cache}
        with nullcontext() if self._stack is None else self._stack.route(slots):
            output = self._model(use_cache=True, logits_to_keep=1, **arguments)
        logits: Tensor = output.logits[:, -1]
        return logits


class _Batch:
    """The rows that are still in the batch: the live ones, and finished ones kept as padding."""

    def __init__(self, rows: Sequence[Row], prompt_mask: Tensor, cache: Cache):
        device = prompt_mask.device
        longest = max(row.limit for row in rows)
        self.cache = cache
        self.live = np.ones(len(rows), dtype=bool)
        self.tokens = torch.empty(0, dtype=torch.int64)
        self._rows = list(rows)
        self._slots = np.array([row.slot for row in rows], dtype=np.int64)
        self._limits = np.array([row.limit for row in rows], dtype=np.int64)
        self._draws = np.zeros((len(rows), longest))
        for place, row in enumerate(rows):
            self._draws[place, : row.limit] = uniforms(row.seed, row.limit)
        self._temperatures = torch.tensor([row.temperature for row in rows], dtype=torch.float32, device=device)
        self._lengths = prompt_mask.sum(dim=1)
        self._columns = prompt_mask.shape[1]
        self._mask = torch.cat([prompt_mask, prompt_mask.new_ones(len(rows), longest)], dim=1)
        self._drawn = 0

    @property
    def mask(self) -> Tensor:
        """Which columns are attended to, the newest token's included."""
        return self._mask[:, : self._columns + self._drawn]

    @property
    def positions(self) -> Tensor:
        """The newest token's position in each row."""
        return self._lengths + (self._drawn - 1)

    @property
    def slots(self) -> NDArray[np.int64]:
        """Slot of each row."""
        return self._slots

    def draw(self, logits: Tensor, eos_ids: NDArray[np.int64]) -> None:
        """Draw the next token of every row and note it in the live ones."""
        draws = torch.from_numpy(np.ascontiguousarray(self._draws[:, self._drawn])).to(logits.device)
        self.tokens, logprobs = choose_tokens(logits, self._temperatures, draws)
        self._drawn += 1
        tokens = self.tokens.cpu().numpy()
        chosen, scored = tokens.tolist(), logprobs.cpu().tolist()
        for place in np.flatnonzero(self.live).tolist():
            self._rows[place].tokens.append(chosen[place])
            self._rows[place].logprobs.append(scored[place])
        self.live &= ~np.isin(tokens, eos_ids) & (self._limits > self._drawn)

    def compact(self) -> None:
        """Let finished rows go, when enough of them have gathered to pay for copying the cache."""
        if self.live.mean() >= _COMPACT_BELOW:
            return
        kept = rows_to_keep(self._slots, self.live)
        if len(kept) >= _COMPACT_BELOW * len(self.live):
            return
        index = torch.from_numpy(kept).to(self.tokens.device)
        self.cache.batch_select_indices(index)
        self.tokens, self._temperatures = self.tokens[index], self._temperatures[index]
        self._lengths, self._mask = self._lengths[index], self._mask[index]
        self._slots, self._limits, self._draws = self._slots[kept], self._limits[kept], self._draws[kept]
        self.live = self.live[kept]
        self._rows = [self._rows[place] for place in kept.tolist()]


def left_padded(prompts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Return ids and mask, int64 [R, longest]; the token at padded places is 0 and never read."""
    width = max(len(prompt) for prompt in prompts)
    ids = torch.zeros(len(prompts), width, dtype=torch.int64)
    mask = torch.zeros(len(prompts), width, dtype=torch.int64)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
        mask[row, width - len(prompt) :] = 1
    return ids, mask
