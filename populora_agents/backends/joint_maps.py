"""Linear maps that read the same input, with the deltas of the slots in play: one product for all their A factors.

For decoding, where a row is one token and no gradient is asked for; training goes through `stack.StackedLinear`.

Symbols: R rows, S active slots, n rows a slot after padding, r rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from populora_agents.routing import RoutingPlan
from populora_agents.stack import AdapterStack
from populora_agents.stacked_product import add_padded


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """What the active slots add to one map: `scaling * x A^T B^T`."""

    down: Tensor
    """A, float [S, r, d_in]."""
    up: Tensor
    """B, float [S, d_out, r]."""
    scaling: float


def active_deltas(stack: AdapterStack, plan: RoutingPlan) -> dict[nn.Module, Delta]:
    """Return the deltas of the active slots of every adapted module, in the module's own dtype."""
    factors = [plan.select(parameter.detach()) for parameter in stack.parameters()]
    deltas: dict[nn.Module, Delta] = {}
    for path, down, up in zip(stack.modules(), factors[::2], factors[1::2], strict=True):
        module = stack.model.get_submodule(path)
        if not isinstance(module, nn.Linear):
            raise ValueError(f"{path!r} is a {type(module).__name__}, an adapted module must be linear")
        dtype = module.weight.dtype
        deltas[module] = Delta(down=down.to(dtype), up=up.to(dtype), scaling=stack.config.scaling)
    return deltas


class JointMaps:
    """Maps of one input."""

    def __init__(self, linears: Sequence[nn.Linear], deltas: Mapping[nn.Module, Delta]) -> None:
        """Take the maps, and of the deltas those that belong to them."""
        self._linears = tuple(linears)
        self._deltas: list[tuple[int, slice, Delta]] = []
        """Which map, its columns of the hidden product, and what it adds."""
        start = 0
        for place, linear in enumerate(linears):
            if (delta := deltas.get(linear)) is not None:
                end = start + delta.down.shape[1]
                self._deltas.append((place, slice(start, end), delta))
                start = end
        downs = [delta.down for _, _, delta in self._deltas]
        self._down = None if not downs else downs[0] if len(downs) == 1 else torch.cat(downs, dim=1)

    def __call__(self, x: Tensor, plan: RoutingPlan | None) -> list[Tensor]:
        """Map [R, d_in] to one [R, d_out] a map; `plan` must be about the slots of the deltas."""
        outputs = [functional.linear(x, linear.weight, linear.bias) for linear in self._linears]
        if self._down is None or plan is None:
            return outputs
        hidden = torch.bmm(plan.padded(x), self._down.mT)
        for place, columns, delta in self._deltas:
            part = hidden if len(self._deltas) == 1 else hidden[..., columns]
            add_padded(outputs[place], part.mT, delta.up.mT, plan, delta.scaling)
        return outputs
