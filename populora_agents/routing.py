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


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutingPlan:
    """How the rows of one forward map to slots, worked out once and used by every layer."""

    rows: int
    slots: slice | Tensor
    """The active slots: a slice where they are neighbours (no copy of factors), else int64 [S]."""
    count: int
    """S."""
    width: int
    """n."""
    gather: Tensor | None = None
    """int64 [S * n]: the row that stands at each padded place; None when the rows stand there already."""
    places: Tensor | None = None
    """int64 [routed rows]: the padded place of each routed row."""
    routed: Tensor | None = None
    """int64 [routed rows]: the rows that `places` speaks of; None when all rows are routed, in order."""
    ends: Tensor | None = None
    """int32 [S]: the row at which each active slot ends; None when rows are not sorted by slot, or bare."""

    def select(self, stacked: Tensor) -> Tensor:
        """Return the rows of the active slots, [M, ...] to [S, ...]."""
        if not isinstance(self.slots, slice):
            return stacked.index_select(0, self.slots)
        return stacked if self.count == stacked.shape[0] else stacked[self.slots]

    def padded(self, rows: Tensor) -> Tensor:
        """Return rows [R, ...] at their padded places, [S, n, ...]."""
        rows = rows if self.gather is None else rows.index_select(0, self.gather)
        return rows.view(self.count, self.width, *rows.shape[1:])


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
    whole = len(routed) == len(wanted)
    in_order = whole and bool((np.diff(wanted) >= 0).all())
    ends = torch.from_numpy(np.cumsum(counts).astype(np.int32)).to(device) if in_order else None
    if in_order and bool((counts == width).all()):
        return RoutingPlan(rows=len(wanted), slots=chosen, count=len(active), width=width, ends=ends)
    within = np.arange(len(order)) - np.repeat(starts, counts)
    places_sorted = np.repeat(np.arange(len(active)) * width, counts) + within
    # A padded place repeats a row of its own slot. Its result is never read, so no gradient flows from it; were it
    # another slot's row, whose numbers may have overflowed, 0 times infinity would bring NaN into this slot.
    gather = np.repeat(order[starts], width)
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
        routed=None if whole else torch.from_numpy(routed).to(device),
        ends=ends,
    )


class Switch:
    """The plan in force, shared by a stack and its layers."""

    __slots__ = ("_ends", "_gathered", "_source", "_tokens", "_version", "grouped", "plan")

    def __init__(self, *, grouped: bool = False) -> None:
        """Begin with the bare base; `grouped` asks for grouped products where rows allow it."""
        self.grouped = grouped
        self.set(None)

    def set(self, plan: RoutingPlan | None) -> None:
        """Put a plan in force, None for the bare base."""
        self.plan = plan
        self._source: Tensor | None = None
        self._gathered: Tensor | None = None
        self._version = 0
        self._ends: Tensor | None = None
        self._tokens = 0

    def gather(self, x: Tensor, index: Tensor) -> Tensor:
        """Bring rows to their padded places; q, k and v (gate and up) ask for the same input and share it."""
        if x.is_inference():
            return x.index_select(0, index)
        if self._source is not x or self._version != x._version or self._gathered is None:
            self._source, self._version, self._gathered = x, x._version, x.index_select(0, index)
        return self._gathered

    def token_ends(self, ends: Tensor, tokens: int) -> Tensor:
        """Return where each slot ends, in tokens, for rows of `tokens` tokens each; all layers share it."""
        if self._ends is None or self._tokens != tokens:
            self._ends, self._tokens = ends * tokens, tokens
        return self._ends
