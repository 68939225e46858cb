"""Gradient checkpointing: a block's activations are computed again in the backward instead of being kept.

Owns switching it on and off. What is computed again runs under the same route, so the stack needs no part in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from torch import nn
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

_recompute = partial(checkpoint, use_reentrant=False)


@contextmanager
def checkpointed_blocks(model: nn.Module) -> Iterator[None]:
    """Checkpoint every block of `model` inside; forward and backward must both lie inside.

    Blocks checkpoint only while they train, so the blocks alone (not what they hold: no dropout) are told that they do.

    Raises:
        ValueError: The model has no blocks that can be checkpointed.
    """
    blocks = checkpointable_blocks(model)
    if not blocks:
        raise ValueError(
            f"{type(model).__name__} has no blocks that can be checkpointed, switch `gradient_checkpointing` off"
        )
    before = [(block.training, block.gradient_checkpointing) for block in blocks]
    for block in blocks:
        block.training, block.gradient_checkpointing = True, True
        block._gradient_checkpointing_func = _recompute  # type: ignore[assignment]
    try:
        yield
    finally:
        for block, (training, checkpointing) in zip(blocks, before, strict=True):
            block.training, block.gradient_checkpointing = training, checkpointing


def checkpointable_blocks(model: nn.Module) -> list[GradientCheckpointingLayer]:
    """Return the model's blocks (decoder layers), in its order."""
    return [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]
