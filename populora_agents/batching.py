"""Micro-batches: which rollouts go through the model together, and the tensors they become.

Owns padding and the token budget. Owns no loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
        return (self.mask.cumsum(dim=1) - 1).clamp_(min=0)

    @property
    def targets(self) -> Tensor:
        """int64 [N]: the sampled tokens, row by row."""
        return self.input_ids[:, -self.completion_columns :][self.sampled]


def micro_batches(
    rollouts: Sequence[Rollout], places: Sequence[int], slots: Sequence[int], max_tokens: int
) -> Iterator[MicroBatch]:
    """Cut the rollouts at `places` into micro-batches of like lengths, each sorted by slot.

    Args:
        rollouts: All of them.
        places: Which to take; each with at least one prompt and one sampled token.
        slots: Slot of each rollout, by place.
        max_tokens: Most tokens a micro-batch, padding included; a longer row goes alone.
    """
    lengths = {place: (len(rollouts[place].prompt_ids), len(rollouts[place].token_ids)) for place in places}
    batch: list[int] = []
    prompt, completion = 0, 0
    for place in sorted(places, key=lambda place: (sum(lengths[place]), slots[place], place)):
        longest = max(prompt, lengths[place][0]), max(completion, lengths[place][1])
        if batch and sum(longest) * (len(batch) + 1) > max_tokens:
            yield _collate(rollouts, sorted(batch, key=lambda place: (slots[place], place)))
            batch, longest = [], lengths[place]
        batch.append(place)
        prompt, completion = longest
    if batch:
        yield _collate(rollouts, sorted(batch, key=lambda place: (slots[place], place)))


def _collate(rollouts: Sequence[Rollout], places: Sequence[int]) -> MicroBatch:
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
