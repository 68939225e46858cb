"""A key/value cache that grows in place: one column is written for each token, instead of copying all columns.

Owns nothing but memory; what is attended to is transformers' affair.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers import Cache, DynamicCache, PretrainedConfig
from transformers.cache_utils import DynamicLayer

_SPARE_COLUMNS = 64


class GrowingLayer(DynamicLayer):
    """One layer's keys and values [R, heads, length, size]: views of buffers that have columns to spare."""

    def __init__(self) -> None:
        """Begin empty."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._buffers: tuple[Tensor, Tensor] | None = None
        self._length = 0

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append columns and return all of them; as in transformers, where this is called by attention modules."""
        del args, kwargs
        end = self._length + key_states.shape[-2]
        keys, values = self._room(key_states, value_states, end)
        keys[:, :, self._length : end] = key_states
        values[:, :, self._length : end] = value_states
        return self._show(keys, values, end)

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep (or repeat) rows."""
        if self._buffers is not None:
            # Indexing copies whole buffers at once; unfilled columns are few, and cheaper than a second copy.
            keys, values = (buffer.index_select(0, indices) for buffer in self._buffers)
            self._show(keys, values, self._length)

    def _room(self, key_states: Tensor, value_states: Tensor, end: int) -> tuple[Tensor, Tensor]:
        """Return buffers with at least `end` columns that hold what was written so far."""
        if self._buffers is not None and end <= self._buffers[0].shape[2]:
            return self._buffers
        columns = end + max(_SPARE_COLUMNS, end // 2)
        held = (key_states[:, :, :0], value_states[:, :, :0])
        if self._buffers is not None:
            held = (self._buffers[0][:, :, : self._length], self._buffers[1][:, :, : self._length])
        return _widen(held[0], columns), _widen(held[1], columns)

    def _show(self, keys: Tensor, values: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """Take over buffers of which `length` columns are filled; return the filled part."""
        self._buffers, self._length = (keys, values), length
        self.device, self.dtype = keys.device, keys.dtype
        self.is_initialized = True
        filled = keys[:, :, :length], values[:, :, :length]
        self.keys, self.values = filled
        return filled


def _widen(part: Tensor, columns: int) -> Tensor:
    buffer = part.new_empty(*part.shape[:2], columns, part.shape[3])
    buffer[:, :, : part.shape[2]] = part
    return buffer


def new_cache(config: PretrainedConfig) -> Cache:
    """Return an empty cache for a model; transformers' own where layers are of a special kind (sliding windows)."""
    cache = DynamicCache(config=config)
    if cache.layers and all(type(layer) is DynamicLayer for layer in cache.layers):
        return Cache(layers=[GrowingLayer() for _ in cache.layers])
    return cache
