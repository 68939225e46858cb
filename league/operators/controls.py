"""What the operators are compared with: a copy, and the plain mean of two parents."""

from __future__ import annotations

import torch

from league.operators.crossovers import combined
from league.operators.groups import copied
from populora_agents.lora import Adapter


@torch.no_grad()
def copy_parent(parent: Adapter, *, generator: torch.Generator) -> Adapter:  # noqa: ARG001
    """Return the parent bit for bit, in memory of its own.

    Source: docs/paper.md, Controls. `generator` is not used.
    """
    return {name: copied(factors) for name, factors in parent.items()}


@torch.no_grad()
def linear_0_5(first: Adapter, second: Adapter, *, generator: torch.Generator) -> Adapter:
    """Return the nearest delta of rank r to the mean of the parents' deltas.

    Delta = (Delta_1 + Delta_2) / 2, of rank up to 2 r, truncated by SVD. Not the mean of the factors, which would add
    the cross terms B_1 A_2 and B_2 A_1. The order of the parents does not matter. Source: docs/paper.md, Controls.

    Args:
        first: Factors of one rank.
        second: Same modules and shapes.
        generator: Draws rows of A for components that are dead in the child.
    """
    return combined(first, second, (0.5, 0.5), generator)
