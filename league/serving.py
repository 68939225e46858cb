"""Who completes the prompts of a run, from its flags.

Owns the choice and its bounds. The backends themselves are in `populora_agents.backends`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

from league.config import RunConfig
from league.options import ServeOptions
from populora_agents.backends.torch import TorchBackend
from populora_agents.backends.vllm_config import EngineConfig
from populora_agents.bases import Base
from populora_agents.stack import AdapterStack
from populora_agents.types import Backend


def make_backend(config: RunConfig, base: Base, stack: AdapterStack, slots: Mapping[str, tuple[int, int]]) -> Backend:
    """Return the backend that the configuration names, over the trainer's base and adapters.

    Raises:
        ValueError: vLLM is not installed, or settings that do not fit this machine.
        EngineError: The engine does not start, or its server does not answer.
    """
    serve = config.serve
    name = _choose(serve, base)
    engine = EngineConfig(
        max_slots=serve.vllm_slots or stack.slots,
        memory_fraction=serve.vllm_memory or None,
        dtype=serve.vllm_dtype,
        tensor_parallel_size=serve.vllm_tensor_parallel,
        sleep=serve.vllm_sleep,
    )
    if name == "vllm":
        from populora_agents.backends.vllm import VllmBackend

        return VllmBackend(base, stack, slots, engine)
    if name == "vllm-server":
        from populora_agents.backends.vllm_server import VllmServerBackend

        return VllmServerBackend(
            base, stack, slots, serve.vllm_url, max_slots=engine.max_slots, anywhere=serve.vllm_anywhere
        )
    return TorchBackend(base, stack, slots)


def _choose(serve: ServeOptions, base: Base) -> str:
    """Return the backend that `auto` stands for: vLLM on a GPU where it is installed, else torch."""
    if serve.backend != "auto":
        return serve.backend
    return "vllm" if base.model.device.type == "cuda" and importlib.util.find_spec("vllm") is not None else "torch"
