"""What every algorithm is to the training loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tensordict import TensorDict
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Of what is learned from."""

    kinds: tuple[tuple[int, ...], ...]
    """Places of the agents that share a network."""
    width: int
    """Numbers an agent sees (D)."""
    choices: int
    """Actions, the illegal ones among them (C)."""
    gamma: float
    """Discount of a step."""

    @property
    def agents(self) -> int:
        """A."""
        return sum(map(len, self.kinds))


class Learner(Protocol):
    """An algorithm with its networks."""

    def act(self, seen: TensorDict) -> Tensor:
        """Return a choice for each agent, [N, A], as it is made while learning; `seen` takes what learning needs."""

    def best(self, seen: TensorDict) -> Tensor:
        """Return the choice held best for each agent, [N, A]."""

    def learn(self, batch: TensorDict, progress: float) -> None:
        """Learn from a batch of play, [N, T], with what followed under `next`.

        Args:
            batch: What `act` saw and chose.
            progress: Share of the run that is over, in [0, 1).
        """
