"""Micro-batches: which rollouts go through the model together, and the tensors they become.

Owns padding and the token budget. Owns no loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import torch
from torch import Tensor

from populora_agents.types import Rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """Rows with prompts padded on the left and completions on the right, so that all completions begin in one column.

    R rows, P columns of prompts, C of completions, N sampled tokens in all.
    """

    places: tuple[int, ...]
    """[R] the rollouts' places in the caller's order."""
    input_ids: Tensor
    """int64 [R, P + C]."""
    mask: Tensor
    """int64 [R, P + C], 1 where a token stands."""
    sampled: Tensor
    """bool [R, C], true where a sampled token stands."""

    @property
    def completion_columns(self) -> int:
        """Return C."""
        return int(self.sampled.shape[1])

    @property
    def position_ids(self) -> Tensor:
        """int64 [R, P + C]: each token's place in its own row."""
        return positions(self.mask)

    @property
    def targets(self) -> Tensor:
        """int64 [N]: the sampled tokens, row by row."""
        return self.input_ids[:, -self.completion_columns :][self.sampled]


def positions(mask: Tensor) -> Tensor:
    """Return each token's place in its own row, int64 [R, T] from a mask of that shape: padding does not count."""
    return (mask.cumsum(dim=1) - 1).clamp_(min=0)


def micro_batches(
    rollouts: Sequence[Rollout], places: Sequence[int], slots: Sequence[int], max_tokens: int
) -> Iterator[MicroBatch]:
    """Cut the rollouts at `places` into micro-batches of like lengths, each sorted by slot.

    Rollouts of one `batch` (role and task) are alike in length and number over the members, so they stay together;
    there the k shortest of every member go first, so that slots are equally full and need no padding in the stack.

    Args:
        rollouts: All of them.
        places: Which to take; each with at least one prompt and one sampled token.
        slots: Slot of each rollout, by place.
        max_tokens: Most tokens a micro-batch, padding included; a longer row goes alone.
    """
    chosen: list[int] = []
    prompt, completion = 0, 0
    for layer, closes in _layers(rollouts, places, slots):
        longest_prompt = max(len(rollouts[place].prompt_ids) for place in layer)
        longest_completion = max(len(rollouts[place].token_ids) for place in layer)
        prompt, completion = max(prompt, longest_prompt), max(completion, longest_completion)
        if chosen and (prompt + completion) * (len(chosen) + len(layer)) > max_tokens:
            yield _collate(rollouts, chosen, slots)
            chosen, prompt, completion = [], longest_prompt, longest_completion
        width = max(1, max_tokens // (prompt + completion))
        while len(chosen) + len(layer) > width:
            yield _collate(rollouts, layer[:width], slots)
            layer = layer[width:]
        chosen += layer
        if closes and chosen:
            yield _collate(rollouts, chosen, slots)
            chosen, prompt, completion = [], 0, 0


def _layers(
    rollouts: Sequence[Rollout], places: Sequence[int], slots: Sequence[int]
) -> Iterator[tuple[list[int], bool]]:
    """Yield the shortest rollouts of all slots, then the second shortest, ...; by batch, whose last layer says so."""
    lanes: dict[str, dict[int, list[int]]] = {}
    for place in sorted(places, key=lambda place: (_length(rollouts[place]), place)):
        lanes.setdefault(rollouts[place].batch, {}).setdefault(slots[place], []).append(place)
    for batch in sorted(lanes):
        layers = [
            [place for place in layer if place is not None]
            for layer in zip_longest(*(lanes[batch][slot] for slot in sorted(lanes[batch])))
        ]
        for number, layer in enumerate(layers, start=1):
            yield layer, number == len(layers)


def _length(rollout: Rollout) -> int:
    return len(rollout.prompt_ids) + len(rollout.token_ids)


def _collate(rollouts: Sequence[Rollout], places: Sequence[int], slots: Sequence[int]) -> MicroBatch:
    places = sorted(places, key=lambda place: (slots[place], place))
    prompt = max(len(rollouts[place].prompt_ids) for place in places)
    completion = max(len(rollouts[place].token_ids) for place in places)
    input_ids = torch.zeros(len(places), prompt + completion, dtype=torch.int64)
    mask = torch.zeros_like(input_ids)
    for row, place in enumerate(places):
        ids = (*rollouts[place].prompt_ids, *rollouts[place].token_ids)
        start = prompt - len(rollouts[place].prompt_ids)
        input_ids[row, start : start + len(ids)] = torch.tensor(ids)
        mask[row, start : start + len(ids)] = 1
    return MicroBatch(places=tuple(places), input_ids=input_ids, mask=mask, sampled=mask[:, prompt:].to(torch.bool))
