"""Checkpointing: on inside, off outside, and no dropout because of it."""

from __future__ import annotations

import pytest
from tiny_bases import make_model
from torch import nn

from populora_agents.checkpointing import checkpointable_blocks, checkpointed_blocks


def test_blocks_train_inside_and_nothing_else_does() -> None:
    model = make_model()
    blocks = checkpointable_blocks(model)
    assert len(blocks) == 2
    with checkpointed_blocks(model):
        assert [module for module in model.modules() if module.training] == blocks
        assert all(block.gradient_checkpointing for block in blocks)
    assert not any(module.training for module in model.modules())
    assert not any(block.gradient_checkpointing for block in blocks)


def test_a_model_without_blocks_is_refused() -> None:
    with pytest.raises(ValueError, match="Sequential has no blocks"), checkpointed_blocks(nn.Sequential()):
        pass
