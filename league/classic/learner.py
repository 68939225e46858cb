"""One update of all members from what they have just played: an actor with a critic, through the stack.

Owns the loss and the optimiser. Owns no games.

Symbols: N choices of all members together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from league.classic.network import log_chances
from populora_agents.config import AdamConfig
from populora_agents.losses import clipped_objective
from populora_agents.optimizer import SlotAdamW
from populora_agents.stack import AdapterStack


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What members chose, one choice a row."""

    slots: NDArray[np.int64]
    """Of who chose, [N]."""
    seen: NDArray[np.float32]
    """[N, width]."""
    legal: NDArray[np.bool_]
    """[N, A]."""
    actions: NDArray[np.int64]
    """[N]."""
    logprobs: NDArray[np.float32]
    """Of the action when it was chosen, [N]."""
    gains: NDArray[np.float32]
    """What who chose gained in the end, in stakes, [N]."""


class Learner:
    """Owns the moments of every slot."""

    def __init__(self, stack: AdapterStack, *, entropy: float, passes: int) -> None:
        """Prepare to learn.

        Args:
            stack: Over a `PolicyNetwork`.
            entropy: What a nat of a member's entropy is worth to it, in its gains' standard deviations, >= 0.
            passes: Updates from the same choices, >= 1.
        """
        self._stack = stack
        self._optimiser = SlotAdamW(stack, AdamConfig(beta2=0.95, max_grad_norm=0.5))
        self._entropy, self._passes = entropy, passes

    def update(self, choices: Choices, learning_rate: float) -> Mapping[str, float]:
        """Improve every member by its own choices; return mean entropy and error of the guessed gains.

        A member's loss is the mean over its choices of clip(rho, A) + (V - gain)^2 / 2 - entropy x H, with
        A = (gain - V) as it was before, less its mean and over its standard deviation (of this member's choices).
        """
        seen, gains = torch.from_numpy(choices.seen), torch.from_numpy(choices.gains)
        legal, actions = torch.from_numpy(choices.legal), torch.from_numpy(choices.actions)
        before = torch.from_numpy(choices.logprobs)
        members, places, counts = np.unique(choices.slots, return_inverse=True, return_counts=True)
        shares = torch.from_numpy((1.0 / counts)[places].astype(np.float32))
        advantages: Tensor | None = None
        entropy_mean = error_mean = 0.0
        for _ in range(self._passes):
            self._optimiser.zero_gradients()
            with self._stack.route(choices.slots), torch.enable_grad():
                logits, worth = self._stack.model(seen)
                logs = log_chances(logits, legal)
                if advantages is None:
                    advantages = _whitened((gains - worth.detach()).numpy(), places, counts)
                objective, _ = clipped_objective(logs.gather(1, actions[:, None]).squeeze(1), before, advantages)
                entropy = -(logs.exp() * logs.masked_fill(~legal, 0.0)).sum(dim=1)
                error = (worth - gains).square()
                loss = (shares * (objective + 0.5 * error - self._entropy * entropy)).sum()
                loss.backward()
            self._optimiser.step(dict.fromkeys(map(int, members), learning_rate))
            entropy_mean, error_mean = float(entropy.detach().mean()), float(error.detach().mean())
        return {"entropy": entropy_mean, "gain_error": error_mean}

    def forget(self, slot: int) -> None:
        """A new member moves into the slot."""
        self._optimiser.reset(slot)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the moments, fit for safetensors."""
        return self._optimiser.state_dict()

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Take over what `state_dict` gave."""
        self._optimiser.load_state_dict(state)


def _whitened(advantages: NDArray[np.float32], places: NDArray[np.int64], counts: NDArray[np.int64]) -> Tensor:
    """Return advantages less the mean and over the standard deviation of their member; a deviation of 0 counts as 1."""
    means = np.bincount(places, advantages) / counts
    centred = advantages - means[places]
    spreads = np.sqrt(np.bincount(places, np.square(centred)) / counts)
    return torch.from_numpy((centred / np.where(spreads > 1e-6, spreads, 1.0)[places]).astype(np.float32))
