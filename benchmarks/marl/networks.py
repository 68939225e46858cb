"""The networks of all algorithms: two hidden layers, one network for each kind of agent."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from benchmarks.marl.config import HIDDEN


def network(inputs: int, outputs: int, *, scale: float) -> nn.Sequential:
    """Return two hidden layers of `HIDDEN` units; `scale` is the gain of the output layer's weights."""
    last = nn.Linear(HIDDEN, outputs)
    nn.init.orthogonal_(last.weight, scale)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(inputs, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), last)


class PerKind(nn.Module):
    """A network for each kind of agent, shared by the agents of the kind."""

    def __init__(self, kinds: Sequence[Sequence[int]], inputs: int, outputs: int, *, scale: float) -> None:
        """Make untrained networks; `kinds` are places of agents, together 0, 1, ... in order."""
        super().__init__()
        self._sizes = [len(kind) for kind in kinds]
        self.networks = nn.ModuleList(network(inputs, outputs, scale=scale) for _ in kinds)

    def forward(self, seen: Tensor) -> Tensor:
        """Return [..., A, outputs] for [..., A, inputs]."""
        parts = torch.split(seen, self._sizes, dim=-2)
        return torch.cat([own(part) for own, part in zip(self.networks, parts, strict=True)], dim=-2)


class Central(nn.Module):
    """From what all see together to a value for each agent; one network for each kind of agent, too."""

    def __init__(self, kinds: Sequence[Sequence[int]], inputs: int) -> None:
        """Make untrained networks."""
        super().__init__()
        self.networks = nn.ModuleList(network(inputs, len(kind), scale=1.0) for kind in kinds)

    def forward(self, state: Tensor) -> Tensor:
        """Return [..., A, 1] for [..., inputs]."""
        return torch.cat([own(state) for own in self.networks], dim=-1).unsqueeze(-1)
