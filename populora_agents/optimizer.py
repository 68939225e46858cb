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

_BLOCK_ELEMENTS = {"cpu": 1 << 15, "cuda": 1 << 25}
"""Numbers updated in one go: few enough to stay in a CPU's cache, and to need little memory beside the moments."""


class NonFiniteGradientError(FloatingPointError):
    """Gradients that cannot be followed; no slot has moved."""

    def __init__(self, slots: Sequence[int]) -> None:
        """Name the slots."""
        super().__init__(f"the gradients of slots {list(slots)!r} are not finite, nothing was updated")
        self.slots = tuple(slots)


class SlotAdamW:
    """AdamW (Loshchilov and Hutter, 2019) on the rows of a stack, each with its own count and learning rate.

    A slot's trajectory is that of torch's AdamW on that member's factors alone. All slots move in the same operations;
    slots that the stack has grown since begin with zero moments.
    """

    def __init__(self, stack: AdapterStack, config: AdamConfig):
        """Begin with zero moments in every slot."""
        self._stack = stack
        self._config = config
        self._first = torch.zeros_like(stack.values)
        self._second = torch.zeros_like(stack.values)
        self._counts = torch.zeros(stack.slots, dtype=torch.int64)

    def zero_gradients(self) -> None:
        """Forget the gradients of all slots."""
        self._stack.gradients.zero_()

    @torch.no_grad()
    def step(self, learning_rates: Mapping[int, float]) -> dict[int, float]:
        """Update the slots that `learning_rates` names, and no other.

        Returns:
            The norm of each slot's gradient before clipping.

        Raises:
            NonFiniteGradientError: A gradient is not finite; no slot has moved then.
        """
        self._follow_growth()
        slots = sorted(learning_rates)
        all_norms = torch.linalg.vector_norm(self._stack.gradients, dim=1).tolist()
        norms = {slot: all_norms[slot] for slot in slots}
        broken = [slot for slot, norm in norms.items() if not norm < float("inf")]
        if broken:
            raise NonFiniteGradientError(broken)
        if slots:
            self._counts[slots] += 1
            self._move(slots, learning_rates, norms)
        return norms

    def reset(self, slot: int) -> None:
        """Forget moments and count of one slot: a new member moves in."""
        self._follow_growth()
        self._first[slot].zero_()
        self._second[slot].zero_()
        self._counts[slot] = 0

    def state_dict(self) -> dict[str, Tensor]:
        """Return copies of moments and counts, as tensors on the CPU (fit for safetensors)."""
        self._follow_growth()
        return {
            "first": self._first.to("cpu", copy=True),
            "second": self._second.to("cpu", copy=True),
            "counts": self._counts.clone(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave.

        Raises:
            ValueError: The shapes are those of another stack.
        """
        self._follow_growth()
        check_moments(state, self._first)
        self._first.copy_(state["first"])
        self._second.copy_(state["second"])
        self._counts.copy_(state["counts"])

    def _move(self, slots: Sequence[int], learning_rates: Mapping[int, float], norms: Mapping[int, float]) -> None:
        """Apply the formula to the rows of `slots`, a block of columns at a time."""
        config, values = self._config, self._stack.values
        counts = self._counts[slots].tolist()
        rates = [learning_rates[slot] for slot in slots]
        # As torch.nn.utils.clip_grad_norm_, down to its 1e-6.
        scales = self._column([min(1.0, config.max_grad_norm / (norms[slot] + 1e-6)) for slot in slots])
        decays = self._column([1 - rate * config.weight_decay for rate in rates])
        steps = self._column([-rate / (1 - config.beta1**count) for rate, count in zip(rates, counts, strict=True)])
        roots = self._column([(1 - config.beta2**count) ** 0.5 for count in counts])
        neighbours = slots[-1] - slots[0] == len(slots) - 1
        rows = slice(slots[0], slots[-1] + 1) if neighbours else torch.tensor(slots, device=values.device)
        width = max(1, _BLOCK_ELEMENTS.get(values.device.type, 1 << 20) // len(slots))
        for start in range(0, values.shape[1], width):
            parts = [
                matrix[:, start : start + width]
                for matrix in (values, self._first, self._second, self._stack.gradients)
            ]
            value, first, second, gradient = (part[rows] for part in parts)
            gradient = gradient * scales
            if config.weight_decay:
                value.mul_(decays)
            first.lerp_(gradient, 1 - config.beta1)
            second.mul_(config.beta2).addcmul_(gradient, gradient, value=1 - config.beta2)
            root = second.sqrt().div_(roots).add_(config.eps)
            value.addcdiv_(first * steps, root)
            if not neighbours:  # then these are copies
                for part, moved in zip(parts[:3], (value, first, second), strict=True):
                    part[rows] = moved

    def _column(self, numbers: Sequence[float]) -> Tensor:
        """Return one number a row, [S, 1]."""
        return torch.tensor(numbers, dtype=torch.float64).to(self._first)[:, None]

    def _follow_growth(self) -> None:
        """Add moments for slots that the stack has gained."""
        more = self._stack.slots - len(self._counts)
        if more:
            self._first, self._second = (
                torch.cat([moment, moment.new_zeros(more, moment.shape[1])]) for moment in (self._first, self._second)
            )
            self._counts = torch.cat([self._counts, self._counts.new_zeros(more)])


def check_moments(state: Mapping[str, Any], like: Tensor) -> None:
    """Raise ValueError where the moments of `state` are those of another stack."""
    if state["first"].shape != like.shape or state["second"].shape != like.shape:
        raise ValueError(
            f"expected moments {list(like.shape)!r}, got {list(state['first'].shape)!r}: "
            "the state belongs to another stack (slots, rank or targets differ)"
        )
