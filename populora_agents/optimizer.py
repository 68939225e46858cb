"""One AdamW over all members: row m of every matrix belongs to slot m, and a slot moves only when it is told to.

Owns moments, step counts and clipping. Owns no gradients: they lie in the stack.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from populora_agents.config import AdamConfig
from populora_agents.stack import AdapterStack


class NonFiniteGradientError(FloatingPointError):
    """Gradients that cannot be followed; no slot has moved."""

    def __init__(self, slots: Sequence[int]) -> None:
        """Name the slots."""
        super().__init__(f"the gradients of slots {list(slots)!r} are not finite, nothing was updated")
        self.slots = tuple(slots)


class SlotAdamW:
    """AdamW (Loshchilov and Hutter, 2019) on the rows of a stack, each with its own count and learning rate.

    A slot's trajectory is that of torch's AdamW on that member's factors alone.
    """

    def __init__(self, stack: AdapterStack, config: AdamConfig):
        """Begin with zero moments in every slot."""
        self._values = stack.values
        self._gradients = stack.gradients
        self._config = config
        self._first = torch.zeros_like(stack.values)
        self._second = torch.zeros_like(stack.values)
        self._counts = [0] * stack.slots

    def zero_gradients(self) -> None:
        """Forget the gradients of all slots."""
        self._gradients.zero_()

    @torch.no_grad()
    def step(self, learning_rates: Mapping[int, float]) -> dict[int, float]:
        """Update the slots that `learning_rates` names, and no other.

        Returns:
            The norm of each slot's gradient before clipping.

        Raises:
            NonFiniteGradientError: A gradient is not finite; no slot has moved then.
        """
        slots = sorted(learning_rates)
        norms = {slot: float(torch.linalg.vector_norm(self._gradients[slot])) for slot in slots}
        broken = [slot for slot, norm in norms.items() if not norm < float("inf")]
        if broken:
            raise NonFiniteGradientError(broken)
        for slot in slots:
            self._step_slot(slot, learning_rates[slot], norms[slot])
        return norms

    def _step_slot(self, slot: int, learning_rate: float, norm: float) -> None:
        config = self._config
        value, first, second = self._values[slot], self._first[slot], self._second[slot]
        gradient = self._gradients[slot]
        # As torch.nn.utils.clip_grad_norm_, down to its 1e-6.
        gradient = gradient * min(1.0, config.max_grad_norm / (norm + 1e-6))
        self._counts[slot] += 1
        count = self._counts[slot]
        if config.weight_decay:
            value.mul_(1 - learning_rate * config.weight_decay)
        first.lerp_(gradient, 1 - config.beta1)
        second.mul_(config.beta2).addcmul_(gradient, gradient, value=1 - config.beta2)
        root = second.sqrt().div_((1 - config.beta2**count) ** 0.5).add_(config.eps)
        value.addcdiv_(first, root, value=-learning_rate / (1 - config.beta1**count))

    def reset(self, slot: int) -> None:
        """Forget moments and count of one slot: a new member moves in."""
        self._first[slot].zero_()
        self._second[slot].zero_()
        self._counts[slot] = 0

    def state_dict(self) -> dict[str, Tensor]:
        """Return copies of moments and counts, as tensors on the CPU (fit for safetensors)."""
        return {
            "first": self._first.to("cpu", copy=True),
            "second": self._second.to("cpu", copy=True),
            "counts": torch.tensor(self._counts, dtype=torch.int64),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave.

        Raises:
            ValueError: The shapes are those of another stack.
        """
        if state["first"].shape != self._first.shape or state["second"].shape != self._second.shape:
            raise ValueError(
                f"expected moments {list(self._first.shape)!r}, got {list(state['first'].shape)!r}: "
                "the state belongs to another stack (slots, rank or targets differ)"
            )
        self._first.copy_(state["first"])
        self._second.copy_(state["second"])
        self._counts = [int(count) for count in state["counts"]]
