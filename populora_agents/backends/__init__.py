"""Backends: engines that complete prompts. Imported only when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from populora_agents.backends.torch import TorchBackend

__all__ = ["TorchBackend"]

_WHERE = {"TorchBackend": "populora_agents.backends.torch"}


def __getattr__(name: str) -> Any:
    """Import the module that defines `name`."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)
