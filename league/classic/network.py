"""The base of classic members: a small frozen network of random weights, which adapters turn into policies.

Owns the network and the way from its output to chances. Owns no learning.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

TARGETS = ("first", "second", "choice", "worth")
"""Its linear maps, all of which are adapted."""


class PolicyNetwork(nn.Module):
    """Two hidden layers, then a logit an action and a guess of the gain."""

    def __init__(self, width: int, actions: int, hidden: int, generator: torch.Generator) -> None:
        """Draw the weights.

        Args:
            width: Numbers seen.
            actions: Logits given.
            hidden: Units of each hidden layer.
            generator: Of the weights.
        """
        super().__init__()
        self.first = nn.Linear(width, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.choice = nn.Linear(hidden, actions)
        self.worth = nn.Linear(hidden, 1)
        with torch.no_grad():
            # Play starts uneven: nearly even play is the answer of rock, paper, scissors already.
            for layer, gain in ((self.first, 1.4), (self.second, 1.4), (self.choice, 1.0), (self.worth, 0.01)):
                nn.init.orthogonal_(layer.weight, gain, generator=generator)
                layer.bias.zero_()

    def forward(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Return logits [R, actions] and guessed gains [R] of what is seen, float [R, width]."""
        inner = torch.tanh(self.second(torch.tanh(self.first(seen))))
        return self.choice(inner), self.worth(inner).squeeze(-1)


def log_chances(logits: Tensor, legal: Tensor) -> Tensor:
    """Return log-probabilities [R, A] of the actions, -inf for those that bool `legal` [R, A] rules out."""
    return torch.log_softmax(logits.masked_fill(~legal, float("-inf")), dim=-1)
