"""All who can play: the present members in one stack, which learns, and past versions in another, which does not.

Owns the two stacks over two copies of one frozen network, and the numbering: slots of the present come first, those of
past versions behind them. Owns no names of members.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from league.classic.network import PolicyNetwork, log_chances
from populora_agents.config import LoraConfig
from populora_agents.lora import Adapter
from populora_agents.stack import AdapterStack


class Cast:
    """Players by slot."""

    def __init__(self, network: PolicyNetwork, lora: LoraConfig, present: int) -> None:
        """Put empty adapters for the present members on the network, which is taken over; nobody is past."""
        self.present = AdapterStack(network, lora, present)
        self._past = AdapterStack(self.present.bare_model(), lora, 1)
        self._frozen = 0

    @property
    def past(self) -> int:
        """How many past versions there are."""
        return self._frozen

    def freeze(self, adapter: Adapter) -> int:
        """Keep an adapter for good; return its slot."""
        if self._frozen == self._past.slots:
            self._past.grow(2 * self._past.slots)
        self._past.load(self._frozen, adapter)
        self._frozen += 1
        return self.present.slots + self._frozen - 1

    def adapter(self, slot: int) -> Adapter:
        """Return a copy of what a slot holds."""
        here = slot < self.present.slots
        return self.present.adapter(slot) if here else self._past.adapter(slot - self.present.slots)

    def chances(
        self, slots: NDArray[np.int64], seen: NDArray[np.float32], legal: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return the chances of the actions, float64 [R, A].

        Args:
            slots: Who plays each row, [R].
            seen: What is seen, [R, width].
            legal: Which actions are legal, [R, A].
        """
        chances = np.zeros(legal.shape)
        for stack, first in ((self.present, 0), (self._past, self.present.slots)):
            rows = np.flatnonzero((slots >= first) & (slots < first + stack.slots))
            if len(rows):
                with torch.no_grad(), stack.route(slots[rows] - first):
                    logits, _ = stack.model(torch.from_numpy(seen[rows]))
                    chances[rows] = log_chances(logits, torch.from_numpy(legal[rows])).double().exp().numpy()
        return chances
