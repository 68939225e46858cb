"""The growing cache against transformers' own."""

from __future__ import annotations

import torch
from tiny_bases import make_model
from transformers import DynamicCache, MistralConfig

from populora_agents.kv_cache import GrowingLayer, new_cache


def columns(count: int, seed: int) -> torch.Tensor:
    return torch.randn(3, 2, count, 4, generator=torch.Generator().manual_seed(seed))


def test_it_holds_what_the_dynamic_cache_holds() -> None:
    config = make_model().config
    ours, theirs = new_cache(config), DynamicCache(config=config)
    assert all(isinstance(layer, GrowingLayer) for layer in ours.layers)
    for step, count in enumerate([5, 1, 1, 80, 1, 200, 1]):
        for layer in range(2):
            mine = ours.update(columns(count, step), columns(count, step + 50), layer)
            other = theirs.update(columns(count, step), columns(count, step + 50), layer)
            assert torch.equal(mine[0], other[0])
            assert torch.equal(mine[1], other[1])
        assert ours.get_seq_length() == theirs.get_seq_length()
    index = torch.tensor([2, 0, 0, 1])
    ours.batch_select_indices(index)
    theirs.batch_select_indices(index)
    extra = torch.ones(4, 2, 1, 4)
    for layer in range(2):
        assert torch.equal(ours.update(extra, extra, layer)[0], theirs.update(extra, extra, layer)[0])


def test_appending_one_column_copies_nothing() -> None:
    layer = GrowingLayer()
    layer.update(columns(5, 0), columns(5, 1))
    before = layer.keys.data_ptr()
    layer.update(columns(1, 2), columns(1, 3))
    assert layer.keys.data_ptr() == before


def test_sliding_windows_get_transformers_own_cache() -> None:
    cache = new_cache(MistralConfig(num_hidden_layers=2, sliding_window=16))
    assert not any(isinstance(layer, GrowingLayer) for layer in cache.layers)
