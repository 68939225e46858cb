"""Micro-batches: which rollouts go through the model together, and the tensors they become.

Owns rows, padding and the token budget. Owns no loss.

Rollouts of one prompt may share a row: the prompt stands there once, their completions behind each other, each seeing
the prompt and itself only, at the positions it has in a row of its own. What is computed is the same (a tree of depth
one instead of its branches), for a fraction of the tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import torch
from torch import Tensor

from populora_agents.types import Rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """Rows with prompts padded on the left and completions on the right, so that all completions begin in one column.

    R rows, P columns of prompts, C of completions, N sampled tokens in all, those of a rollout together.
    """

    places: tuple[int, ...]
    """The rollouts' places in the caller's order, row by row."""
    row_slots: tuple[int, ...]
    """[R] the slot of each row, sorted."""
    input_ids: Tensor
    """int64 [R, P + C]."""
    position_ids: Tensor
    """int64 [R, P + C]: each token's place in its own rollout."""
    segments: Tensor
    """int64 [R, P + C]: 0 in the prompt, 1, 2, ... in the row's completions, -1 in padding."""
    completion_columns: int
    """C."""
    predictors: Tensor
    """int64 [N]: where each sampled token is predicted, as a place in the last C + 1 columns of all rows, flattened."""
    temperatures: Tensor
    """float64 [N]: at which each token was sampled."""

    @property
    def mask(self) -> Tensor:
        """int64 [R, P + C], 1 where a token stands."""
        return (self.segments >= 0).to(torch.int64)

    @property
    def targets(self) -> Tensor:
        """int64 [N]: the sampled tokens, row by row."""
        return self.input_ids[self.segments > 0]

    @property
    def shares_rows(self) -> bool:
        """Return whether any row holds more than one rollout."""
        return len(self.places) > len(self.row_slots)

    def attention_mask(self, dtype: torch.dtype, device: torch.device | str) -> Tensor:
        """Return what transformers takes as `attention_mask` for these rows.

        Returns:
            `mask` where each row is one rollout (causality is the model's affair), else float [R, 1, P + C, P + C] of
            `dtype` to be added to the attention scores: 0 where a token may look, the smallest number elsewhere.
        """
        if not self.shares_rows:
            return self.mask.to(device)
        segments = self.segments.to(device)
        queries, keys = segments[:, :, None], segments[:, None, :]
        allowed = (keys == queries) | ((keys == 0) & (queries >= 0))  # padding sees padding: no row without a key
        columns = torch.arange(segments.shape[1], device=device)
        allowed &= columns[:, None] >= columns
        mask = torch.zeros(allowed.shape, dtype=dtype, device=device)
        return mask.masked_fill_(~allowed, torch.finfo(dtype).min)[:, None]


@dataclass(frozen=True, slots=True)
class _Row:
    """Rollouts of one slot and one prompt that stand in one row."""

    slot: int
    prompt: int
    """Tokens of the prompt."""
    completion: int
    """Tokens of all completions."""
    places: tuple[int, ...]

    @property
    def key(self) -> tuple[int, tuple[int, ...]]:
        """Rows are sorted by length; their places decide between equals."""
        return self.prompt + self.completion, self.places


def positions(mask: Tensor) -> Tensor:
    """Return each token's place in its own row, int64 [R, T] from a mask of that shape: padding does not count."""
    return (mask.cumsum(dim=1) - 1).clamp_(min=0)


def micro_batches(
    rollouts: Sequence[Rollout],
    places: Sequence[int],
    slots: Sequence[int],
    max_tokens: int,
    *,
    shared_row_tokens: int = 0,
) -> Iterator[MicroBatch]:
    """Cut the rollouts at `places` into micro-batches of like lengths, each sorted by slot.

    Rollouts of one `batch` (role and task) are alike in length and number over the members, so they stay together;
    there the k shortest rows of every member go first, so that slots are equally full and need no padding in the stack.

    Args:
        rollouts: All of them.
        places: Which to take; each with at least one prompt and one sampled token.
        slots: Slot of each rollout, by place.
        max_tokens: Most tokens a micro-batch, padding included; a longer row goes alone.
        shared_row_tokens: Rollouts of one slot, batch and prompt share a row up to this many tokens; 0 is a row each.
    """
    chosen: list[_Row] = []
    prompt, completion = 0, 0
    for layer, closes in _layers(rollouts, places, slots, min(shared_row_tokens, max_tokens)):
        longest_prompt, longest_completion = max(row.prompt for row in layer), max(row.completion for row in layer)
        prompt, completion = max(prompt, longest_prompt), max(completion, longest_completion)
        if chosen and (prompt + completion) * (len(chosen) + len(layer)) > max_tokens:
            yield _collate(rollouts, chosen)
            chosen, prompt, completion = [], longest_prompt, longest_completion
        width = max(1, max_tokens // (prompt + completion))
        while len(chosen) + len(layer) > width:
            yield _collate(rollouts, layer[:width])
            layer = layer[width:]
        chosen += layer
        if closes:
            yield _collate(rollouts, chosen)
            chosen, prompt, completion = [], 0, 0


def _layers(
    rollouts: Sequence[Rollout], places: Sequence[int], slots: Sequence[int], shared_row_tokens: int
) -> Iterator[tuple[list[_Row], bool]]:
    """Yield the shortest rows of all slots, then the second shortest, ...; by batch, whose last layer says so."""
    lanes: dict[str, dict[int, list[_Row]]] = {}
    for batch, row in sorted(_rows(rollouts, places, slots, shared_row_tokens), key=lambda pair: pair[1].key):
        lanes.setdefault(batch, {}).setdefault(row.slot, []).append(row)
    for batch in sorted(lanes):
        layers = [
            [row for row in layer if row is not None]
            for layer in zip_longest(*(lanes[batch][slot] for slot in sorted(lanes[batch])))
        ]
        for number, layer in enumerate(layers, start=1):
            yield layer, number == len(layers)


def _rows(
    rollouts: Sequence[Rollout], places: Sequence[int], slots: Sequence[int], shared_row_tokens: int
) -> Iterator[tuple[str, _Row]]:
    """Yield rows with their batch; rollouts of one prompt fill a row in the caller's order, then the next."""
    families: dict[tuple[int, str, tuple[int, ...]], list[int]] = {}
    for place in places:
        rollout = rollouts[place]
        families.setdefault((slots[place], rollout.batch, rollout.prompt_ids), []).append(place)
    for (slot, batch, prompt_ids), family in families.items():
        held: list[int] = []
        tokens = 0
        for place in family:
            more = len(rollouts[place].token_ids)
            if held and len(prompt_ids) + tokens + more > shared_row_tokens:
                yield batch, _Row(slot, len(prompt_ids), tokens, tuple(held))
                held, tokens = [], 0
            held.append(place)
            tokens += more
        yield batch, _Row(slot, len(prompt_ids), tokens, tuple(held))


def _collate(rollouts: Sequence[Rollout], rows: Sequence[_Row]) -> MicroBatch:
    rows = sorted(rows, key=lambda row: (row.slot, row.places))
    prompt, completion = max(row.prompt for row in rows), max(row.completion for row in rows)
    shape = (len(rows), prompt + completion)
    ids, places = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    segments = np.full(shape, -1, dtype=np.int64)
    predictors: list[int] = []
    temperatures: list[float] = []
    for number, row in enumerate(rows):
        start = prompt - row.prompt
        ids[number, start:prompt] = rollouts[row.places[0]].prompt_ids
        places[number, start:prompt] = np.arange(row.prompt)
        segments[number, start:prompt] = 0
        column = prompt
        for segment, place in enumerate(row.places, start=1):
            tokens = rollouts[place].token_ids
            end = column + len(tokens)
            ids[number, column:end] = tokens
            places[number, column:end] = np.arange(row.prompt, row.prompt + len(tokens))
            segments[number, column:end] = segment
            temperatures += [rollouts[place].temperature] * len(tokens)
            # The prompt's last token predicts the first one of every completion, in column 0 of the last C + 1.
            first = number * (completion + 1)
            predictors += [first, *range(first + column - prompt + 1, first + end - prompt)]
            column = end
    return MicroBatch(
        places=tuple(place for row in rows for place in row.places),
        row_slots=tuple(row.slot for row in rows),
        input_ids=torch.from_numpy(ids),
        position_ids=torch.from_numpy(places),
        segments=torch.from_numpy(segments),
        completion_columns=completion,
        predictors=torch.tensor(predictors, dtype=torch.int64),
        temperatures=torch.tensor(temperatures, dtype=torch.float64),
    )
