"""Which row of a forward is served by which slot of a stack.

Owns the plan of one forward and the switch that brings it to every layer. Owns no factors (`stack`).

Symbols: M slots, S of them active in a forward, R rows, n rows an active slot after padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

BARE = -1
"""Slot of rows that the bare base serves."""


RowSlots = Sequence[int | None] | NDArray[np.int64]
"""The slot of each row of a forward; None or -1 is the bare base."""


@dataclass(frozen=True, slots=True)
class RoutingPlan:
    """How the rows of one forward map to slots, worked out once and used by every layer."""

    rows: int
    slots: slice | Tensor
    """The active slots: a slice where they are neighbours (no copy of factors), else int64 [S]."""
    count: int
    """S."""
    width: int
    """n."""
    gather: Tensor | None
    """int64 [S * n]: the row that stands at each padded place; None when the rows stand there already."""
    places: Tensor | None
    """int64 [routed rows]: the padded place of each routed row."""
    routed: Tensor | None
    """int64 [routed rows]: the rows that `places` speaks of; None when all rows are routed, in order."""


def plan_rows(row_slots: RowSlots, slots: int, device: torch.device | str = "cpu") -> RoutingPlan | None:
    """Sort rows by slot and pad every active slot to the same count.

    Args:
        row_slots: One a row.
        slots: M.
        device: Where the index tensors live.

    Returns:
        The plan, or None when no row has an adapter.

    Raises:
        ValueError: A slot does not exist.
    """
    if isinstance(row_slots, np.ndarray):
        wanted = row_slots
    else:
        wanted = np.array([BARE if slot is None else slot for slot in row_slots], dtype=np.int64)
    if wanted.size and (wanted.min() < BARE or wanted.max() >= slots):
        raise ValueError(f"`row_slots` must lie in -1..{slots - 1}, got {sorted(set(wanted.tolist()))!r}")
    routed = np.flatnonzero(wanted != BARE)
    if not routed.size:
        return None
    order = routed[np.argsort(wanted[routed], kind="stable")]
    active, starts, counts = np.unique(wanted[order], return_index=True, return_counts=True)
    width = int(counts.max())
    neighbours = int(active[-1] - active[0]) == len(active) - 1
    chosen = slice(int(active[0]), int(active[-1]) + 1) if neighbours else torch.from_numpy(active).to(device)
    if len(routed) == len(wanted) and bool((counts == width).all()) and bool((np.diff(wanted) >= 0).all()):
        return RoutingPlan(len(wanted), chosen, len(active), width, None, None, None)
    within = np.arange(len(order)) - np.repeat(starts, counts)
    places_sorted = np.repeat(np.arange(len(active)) * width, counts) + within
    # A padded place repeats row 0: its result is never read, so no gradient flows from it.
    gather = np.zeros(len(active) * width, dtype=np.int64)
    gather[places_sorted] = order
    place_of_row = np.empty(len(wanted), dtype=np.int64)
    place_of_row[order] = places_sorted
    return RoutingPlan(
        rows=len(wanted),
        slots=chosen,
        count=len(active),
        width=width,
        gather=torch.from_numpy(gather).to(device),
        places=torch.from_numpy(place_of_row[routed]).to(device),
        routed=None if len(routed) == len(wanted) else torch.from_numpy(routed).to(device),
    )


class Switch:
    """The plan in force, shared by a stack and its layers."""

    __slots__ = ("gathered", "plan", "source", "version")

    def __init__(self) -> None:
        """Begin with the bare base."""
        self.set(None)

    def set(self, plan: RoutingPlan | None) -> None:
        """Put a plan in force, None for the bare base."""
        self.plan = plan
        self.source: Tensor | None = None
        self.gathered: Tensor | None = None
        self.version = 0

    def gather(self, x: Tensor, index: Tensor) -> Tensor:
        """Bring rows to their padded places; q, k and v (gate and up) ask for the same input and share it."""
        if x.is_inference():
            return x.index_select(0, index)
        if self.source is not x or self.version != x._version or self.gathered is None:
            self.source, self.version, self.gathered = x, x._version, x.index_select(0, index)
        return self.gathered
