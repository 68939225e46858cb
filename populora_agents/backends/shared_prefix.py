"""Attention of one new token a row over a prompt that rows share and over the row's own tokens.

Rows with the same prompt (the proposals from one set of references, the attempts at one problem) read its keys and
values together, once, as one matrix product; a row's own tokens are few. Owns the keys and values of all layers. Source
of the idea: Juravsky et al., Hydragen (2024); here the two parts meet in one softmax instead of being rescaled.

Symbols: R rows, P prompts, w rows a prompt after padding, T columns of the longest prompt, t own tokens so far, H
key heads, g query heads a key head, D size of a head.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from populora_agents.kv_cache import Columns
from populora_agents.routing import RoutingPlan, plan_rows


class SharedPrefix:
    """Keys and values of a batch: of each prompt once, and of each row's own tokens."""

    def __init__(
        self,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
        mask: Tensor,
        of_row: NDArray[np.int64],
    ) -> None:
        """Begin with the prompts.

        Args:
            keys: A layer each, float [P, H, T, D], rotated.
            values: As `keys`.
            mask: int64 [P, T], 0 where a prompt is padded.
            of_row: int64 [R], sorted: the prompt of each row; every prompt has a row.
        """
        self._keys, self._values = list(keys), list(values)
        hidden = mask == 0
        self._hidden = hidden[:, None, None, None] if bool(hidden.any()) else None
        self._own = [(Columns(3), Columns(2)) for _ in keys]
        self._of_row = of_row
        self._plan = self._planned()

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Add a token to every row of a layer and return what it attends to.

        Args:
            layer: Which one.
            query: float [R, H, g, D], rotated and scaled.
            key: float [R, H, D], rotated.
            value: float [R, H, D].

        Returns:
            float [R, H * g * D].
        """
        plan, rows = self._plan, query.shape[0]
        own_keys, own_values = self._own[layer]
        columns = own_keys.append(key[..., None]).flatten(0, 1)
        own = torch.bmm(query.flatten(0, 1), columns).view(*query.shape[:3], -1)
        keys, values = self._keys[layer].flatten(0, 1), self._values[layer].flatten(0, 1)
        width = keys.shape[1]
        # All queries of a prompt stand one below the other: [P * H, w * g, D].
        asked = plan.padded(query).transpose(1, 2).flatten(2, 3).flatten(0, 1)
        shared = torch.bmm(asked, keys.mT).view(plan.count, -1, plan.width, query.shape[2], width)
        if self._hidden is not None:
            shared.masked_fill_(self._hidden, float("-inf"))
        scores = torch.cat([shared, plan.padded(own).transpose(1, 2)], dim=-1)
        weights = scores.softmax(dim=-1, dtype=torch.promote_types(query.dtype, torch.float32)).to(query.dtype)
        found = torch.bmm(weights[..., :width].flatten(2, 3).flatten(0, 1), values)
        found = _rows(found.view(plan.count, -1, plan.width, query.shape[2], query.shape[3]), plan)
        own_weights = _rows(weights[..., width:], plan)
        columns = own_values.append(value[:, :, None]).flatten(0, 1)
        return found.reshape(rows, -1) + torch.bmm(own_weights.flatten(0, 1), columns).view(rows, -1)

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Forget all rows but these, and the prompts that have none left."""
        index = torch.from_numpy(rows).to(self._keys[0].device)
        for pair in self._own:
            for columns in pair:
                columns.select(index)
        left, self._of_row = np.unique(self._of_row[rows], return_inverse=True)
        if len(left) < len(self._keys[0]):
            index = torch.from_numpy(left).to(index.device)
            self._keys = [keys.index_select(0, index) for keys in self._keys]
            self._values = [values.index_select(0, index) for values in self._values]
            self._hidden = None if self._hidden is None else self._hidden[index]
        self._plan = self._planned()

    def _planned(self) -> RoutingPlan:
        """Return which rows go together; prompts take the part of slots."""
        plan = plan_rows(self._of_row, len(self._keys[0]), self._keys[0].device)
        if plan is None:
            raise ValueError("expected at least one row")
        return plan


def _rows(padded: Tensor, plan: RoutingPlan) -> Tensor:
    """Return the rows [R, H, ...] of [P, H, w, ...]."""
    flat = padded.transpose(1, 2).flatten(0, 1)
    return flat if plan.places is None else flat.index_select(0, plan.places)
