"""Decoding one batch of rows: read the prompts, then one token a row at a time; rows leave when they are done.

Owns the loop and its bookkeeping. Which requests form a batch, and what their text is, is the backend's affair; how
logits come about is the session's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from populora_agents.backends.llama import LlamaSession, is_readable
from populora_agents.backends.sessions import Prompts, Session, TransformersSession
from populora_agents.sampling import choose_tokens, uniforms
from populora_agents.stack import AdapterStack

_COMPACT_BELOW = 0.8
"""Share of rows that must be left for the batch not to be compacted."""
_PADDING_WORTH = 1.25
"""Finished rows are kept as padding, so that slots stay equally full, up to this multiple of the live rows."""

Ends = Callable[[Sequence[int]], bool]
"""Whether a row is done, by its tokens so far, the newest one last."""


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
    top_p: float
    seed: int
    ends: Ends | None = None
    """Asked after every token; None where only the end-of-sequence token and the limit end the row."""
    tokens: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()


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
    """Completes rows, all together; rows must be sorted by slot, then by prompt."""

    def __init__(self, model: PreTrainedModel, stack: AdapterStack | None, eos_ids: Collection[int]):
        """Take the model to decode with, and the stack that serves its slots (None: bare base only)."""
        self._model = model
        self._stack = stack
        self._eos = np.array(sorted(eos_ids), dtype=np.int64)
        self._session = LlamaSession if is_readable(model) else TransformersSession

    @torch.no_grad()
    def run(self, rows: Sequence[Row]) -> None:
        """Fill in the rows' tokens and log-probabilities, the end-of-sequence token included."""
        session = self._session(self._model, self._stack, _prompts(rows))
        batch = _Batch(rows, self._model.device)
        logits = session.first
        while True:
            tokens = batch.draw(logits, self._eos)
            if not batch.live.any():
                break
            logits = session.advance(batch.compact(tokens, session))
        batch.hand_over()


def _prompts(rows: Sequence[Row]) -> Prompts:
    distinct = list(dict.fromkeys((row.slot, row.prompt_ids) for row in rows))
    number = {key: place for place, key in enumerate(distinct)}
    return Prompts(
        ids=[prompt for _, prompt in distinct],
        slots=np.array([slot for slot, _ in distinct], dtype=np.int64),
        of_row=np.array([number[row.slot, row.prompt_ids] for row in rows], dtype=np.int64),
        longest=max(row.limit for row in rows),
    )


class _Batch:
    """The rows that are still in the batch: the live ones, and finished ones kept as padding."""

    def __init__(self, rows: Sequence[Row], device: torch.device):
        longest = max(row.limit for row in rows)
        self.live = np.ones(len(rows), dtype=bool)
        self._rows = rows
        self._device = device
        self._tokens = np.zeros((len(rows), longest), dtype=np.int64)
        self._logprobs = np.zeros((len(rows), longest), dtype=np.float32)
        self._lengths = np.zeros(len(rows), dtype=np.int64)
        self._drawn = 0
        # What follows is about the rows present only.
        self._numbers = np.arange(len(rows))
        self._slots = np.array([row.slot for row in rows], dtype=np.int64)
        self._limits = np.array([row.limit for row in rows], dtype=np.int64)
        self._asking = np.array([row.ends is not None for row in rows])
        self._draws = np.zeros((len(rows), longest))
        for place, row in enumerate(rows):
            self._draws[place, : row.limit] = uniforms(row.seed, row.limit)
        self._temperatures = torch.tensor([row.temperature for row in rows], dtype=torch.float32, device=device)
        self._top_p = torch.tensor([row.top_p for row in rows], dtype=torch.float32, device=device)
        self._cuts = any(row.top_p < 1 for row in rows)

    def draw(self, logits: Tensor, eos_ids: NDArray[np.int64]) -> Tensor:
        """Draw the next token of every row, note it, and return them, int64 [R]."""
        draws = torch.from_numpy(self._draws[:, self._drawn].copy()).to(self._device)
        drawn, logprobs = choose_tokens(logits, self._temperatures, draws, self._top_p if self._cuts else None)
        tokens = drawn.cpu().numpy()
        self._tokens[self._numbers, self._drawn] = tokens
        self._logprobs[self._numbers, self._drawn] = logprobs.cpu().numpy()
        self._drawn += 1
        done = (tokens[:, None] == eos_ids).any(axis=1) | (self._limits <= self._drawn)
        for place in np.flatnonzero(self.live & self._asking & ~done).tolist():
            done[place] = self._is_ended(int(self._numbers[place]))
        self._lengths[self._numbers[self.live & done]] = self._drawn
        self.live &= ~done
        return drawn

    def compact(self, tokens: Tensor, session: Session) -> Tensor:
        """Let finished rows go, when enough of them have gathered to pay for copying; return the tokens that stay."""
        if self.live.mean() >= _COMPACT_BELOW:
            return tokens
        kept = rows_to_keep(self._slots, self.live)
        if len(kept) >= _COMPACT_BELOW * len(self.live):
            return tokens
        session.keep(kept)
        index = torch.from_numpy(kept).to(self._device)
        self._temperatures, self._top_p = self._temperatures[index], self._top_p[index]
        self._numbers, self._slots, self._limits = self._numbers[kept], self._slots[kept], self._limits[kept]
        self._asking, self._draws, self.live = self._asking[kept], self._draws[kept], self.live[kept]
        return tokens[index]

    def hand_over(self) -> None:
        """Give every row its tokens and log-probabilities."""
        for row, length, tokens, logprobs in zip(
            self._rows, self._lengths.tolist(), self._tokens, self._logprobs, strict=True
        ):
            row.tokens = tuple(tokens[:length].tolist())
            row.logprobs = tuple(logprobs[:length].tolist())

    def _is_ended(self, number: int) -> bool:
        ends = self._rows[number].ends
        return ends is not None and ends(self._tokens[number, : self._drawn].tolist())
