"""What we ask of vLLM's workers beyond its own API: how many modules an adapter really changes there.

vLLM mixes `AdapterCensus` into its worker class, by name, so it imports nothing of vLLM.
"""

from __future__ import annotations

from typing import Any

PATH = f"{__name__}.AdapterCensus"
"""What vLLM is told to mix in."""


class AdapterCensus:
    """Methods of a worker; `model_runner` is the worker's own."""

    model_runner: Any

    def count_bound_modules(self, number: int) -> int:
        """Return how many of the base's modules the adapter of that number changes, those of merged maps one by one."""
        manager = self.model_runner.lora_manager._adapter_manager
        bound = set(manager.modules)
        layers = manager.get_adapter(number).loras
        count = 0
        for name, layer in layers.items():
            if name in bound:
                parts = layer.lora_a if isinstance(layer.lora_a, list) else [layer.lora_a]
                count += sum(part is not None for part in parts)
        return count
