"""Keys and values that grow in place: one column is written for each token, instead of copying all columns.

Owns nothing but memory; what is attended to is transformers' affair, or `backends.shared_prefix`'s.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from transformers import Cache, DynamicCache, PretrainedConfig
from transformers.cache_utils import DynamicLayer

_SPARE_COLUMNS = 64


class Columns:
    """A tensor that grows along one dimension: a view of a buffer that has columns to spare."""

    def __init__(self, dim: int) -> None:
        """Begin empty; `dim` is where columns are counted, not 0, which counts rows."""
        self._dim = dim
        self._buffer: Tensor | None = None
        self._length = 0

    def append(self, new: Tensor) -> Tensor:
        """Write columns behind those there are, and return all of them; earlier returns stay views of the past."""
        end = self._length + new.shape[self._dim]
        if self._buffer is None or end > self._buffer.shape[self._dim]:
            self._buffer = self._wider(new, end + max(_SPARE_COLUMNS, end // 2))
        self._buffer.narrow(self._dim, self._length, new.shape[self._dim]).copy_(new)
        self._length = end
        return self._buffer.narrow(self._dim, 0, end)

    def select(self, rows: Tensor) -> Tensor | None:
        """Keep (or repeat) rows, and return all columns; None when there are none yet."""
        if self._buffer is None:
            return None
        # Indexing copies the whole buffer at once; unfilled columns are few, and cheaper than a second copy.
        self._buffer = self._buffer.index_select(0, rows)
        return self._buffer.narrow(self._dim, 0, self._length)

    def _wider(self, like: Tensor, columns: int) -> Tensor:
        shape = list(like.shape)
        shape[self._dim] = columns
        buffer = like.new_empty(shape)
        if self._buffer is not None:
            held = self._buffer.narrow(self._dim, 0, self._length)
            buffer.narrow(self._dim, 0, self._length).copy_(held)
        return buffer


class GrowingLayer(DynamicLayer):
    """One layer's keys and values [R, heads, length, size] of a transformers cache."""

    def __init__(self) -> None:
        """Begin empty."""
        super().__init__()  # type: ignore[no-untyped-call]
        self._columns = Columns(2), Columns(2)

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append columns and return all of them; as in transformers, where this is called by attention modules."""
        del args, kwargs
        return self._show(self._columns[0].append(key_states), self._columns[1].append(value_states))

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep (or repeat) rows."""
        keys, values = (columns.select(indices) for columns in self._columns)
        if keys is not None and values is not None:
            self._show(keys, values)

    def _show(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        self.device, self.dtype = keys.device, keys.dtype
        self.is_initialized = True
        self.keys, self.values = keys, values
        return keys, values


def new_cache(config: PretrainedConfig) -> Cache:
    """Return an empty cache for a model; transformers' own where layers are of a special kind (sliding windows)."""
    cache = DynamicCache(config=config)
    if cache.layers and all(type(layer) is DynamicLayer for layer in cache.layers):
        return Cache(layers=[GrowingLayer() for _ in cache.layers])
    return cache
