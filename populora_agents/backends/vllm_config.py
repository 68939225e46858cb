"""Settings of a vLLM engine. Imports nothing heavy, so that a command can read its flags before vLLM is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EngineDtype = Literal["auto", "float32", "bfloat16", "float16"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """How an engine of our own is started."""

    max_slots: int
    """Adapters in the engine's memory at a time, >= 1."""
    memory_fraction: float | None = None
    """On a GPU the share of its memory that the engine takes in all, on a CPU the share of the machine's memory that it
    keeps keys and values in; in (0, 1). None is 0.4 on a GPU, which leaves room for the trainer, and 0.05 on a CPU."""
    dtype: EngineDtype = "auto"
    """Of the engine's weights; auto is that of the trainer's base."""
    tensor_parallel_size: int = 1
    """GPUs that one engine spreads over, >= 1."""
    sleep: bool = False
    """Give the GPU's memory back between two calls; weights wait in the machine's memory."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.max_slots < 1 or self.tensor_parallel_size < 1:
            raise ValueError(
                f"expected `max_slots` and `tensor_parallel_size` >= 1, got {self.max_slots!r} and "
                f"{self.tensor_parallel_size!r}"
            )
        if self.memory_fraction is not None and not 0 < self.memory_fraction < 1:
            raise ValueError(f"`memory_fraction` must be in (0, 1), got {self.memory_fraction!r}")
