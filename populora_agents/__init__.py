"""LoRA policies: how a member speaks and how it learns. Heavy modules are imported only when asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from populora_env.installation import require

if TYPE_CHECKING:
    from populora_agents.backends.torch import TorchBackend
    from populora_agents.bases import Base, BaseError, load_base
    from populora_agents.config import LoraConfig, Preset, TrainerConfig
    from populora_agents.lora import Adapter, LoraFactors, fresh_adapter, load_adapter, save_adapter
    from populora_agents.peft_trainer import PeftTrainer
    from populora_agents.policies import LoraPolicy
    from populora_agents.stack import AdapterStack
    from populora_agents.trainer import Trainer
    from populora_agents.types import AdapterVersion, Backend, Completion, Request, Rollout, UpdateReport, UpdateRule

__all__ = [
    "Adapter",
    "AdapterStack",
    "AdapterVersion",
    "Backend",
    "Base",
    "BaseError",
    "Completion",
    "LoraConfig",
    "LoraFactors",
    "LoraPolicy",
    "PeftTrainer",
    "Preset",
    "Request",
    "Rollout",
    "TorchBackend",
    "Trainer",
    "TrainerConfig",
    "UpdateReport",
    "UpdateRule",
    "fresh_adapter",
    "load_adapter",
    "load_base",
    "save_adapter",
]

require("agents", ("peft", "safetensors", "tokenizers", "torch", "transformers"))

_MODULES = {
    "backends.torch": ("TorchBackend",),
    "bases": ("Base", "BaseError", "load_base"),
    "config": ("LoraConfig", "Preset", "TrainerConfig"),
    "lora": ("Adapter", "LoraFactors", "fresh_adapter", "load_adapter", "save_adapter"),
    "peft_trainer": ("PeftTrainer",),
    "policies": ("LoraPolicy",),
    "stack": ("AdapterStack",),
    "trainer": ("Trainer",),
    "types": ("AdapterVersion", "Backend", "Completion", "Request", "Rollout", "UpdateReport", "UpdateRule"),
}
_WHERE = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import the module that defines `name`."""
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHERE[name]), name)
