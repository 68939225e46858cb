"""LoRA adapters as data: factors by module, fresh ones, and PEFT's files on disk.

Owns what an adapter *is* and how it is written. Owns no forward pass (`stack`) and no arithmetic on adapters
(`league.operators`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from populora_agents.config import LoraConfig

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"

_KEY = re.compile(r"base_model\.model\.(?P<module>.+)\.lora_(?P<factor>[AB])\.weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraFactors:
    """The factors of one module: its weight is changed by `scaling * B @ A`."""

    A: Tensor
    """float [r, d_in]."""
    B: Tensor
    """float [d_out, r]."""

    def __post_init__(self) -> None:
        """Check that the two fit each other."""
        if self.A.ndim != 2 or self.B.ndim != 2 or self.A.shape[0] != self.B.shape[1]:
            raise ValueError(
                f"expected `A` [r, d_in] and `B` [d_out, r], got {list(self.A.shape)!r} and {list(self.B.shape)!r}"
            )

    @property
    def lora_rank(self) -> int:
        """The r of the factors."""
        return int(self.A.shape[0])


Adapter = dict[str, LoraFactors]
"""Factors by module path in the base model (`model.layers.0.self_attn.q_proj`)."""


def target_modules(model: nn.Module, targets: Iterable[str]) -> dict[str, nn.Linear]:
    """Return the modules of `model` that `targets` names, by path, in the model's order.

    Raises:
        ValueError: A target matches nothing, or something other than an nn.Linear.
    """
    found: dict[str, nn.Linear] = {}
    missing = set(targets)
    for path, module in model.named_modules():
        names = {target for target in targets if path == target or path.endswith(f".{target}")}
        if not names:
            continue
        if type(module).__name__ == "Conv1D":
            raise ValueError(f"{path!r} is a Conv1D (GPT-2 and its kin), only nn.Linear can be adapted")
        if not isinstance(module, nn.Linear):
            raise ValueError(f"{path!r} is a {type(module).__name__}, only nn.Linear can be adapted")
        found[path] = module
        missing -= names
    if missing:
        linear = sorted({path.rpartition(".")[2] for path, module in model.named_modules() if _is_linear(module)})
        raise ValueError(f"`targets` {sorted(missing)!r} match no module; the model's linear modules are {linear!r}")
    return found


def check_rank(model: nn.Module, config: LoraConfig) -> None:
    """Raise if the rank is larger than that of any matrix it is for: beyond, factors only take memory.

    Raises:
        ValueError: As said, or a target matches nothing that can be adapted.
    """
    most = max(min(linear.weight.shape) for linear in target_modules(model, config.targets).values())
    if config.lora_rank > most:
        got = config.lora_rank
        raise ValueError(f"`lora_rank` must be at most {most}, the full rank of what is adapted, got {got}")


def _is_linear(module: nn.Module) -> bool:
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


def fresh_adapter(model: nn.Module, config: LoraConfig, generator: torch.Generator) -> Adapter:
    """Return an adapter that changes nothing yet: A uniform in +-1/sqrt(d_in), B zero (PEFT's initialisation).

    Args:
        model: The base model, stacked or not.
        config: Rank and targets.
        generator: CPU generator; modules draw in the model's order.

    Returns:
        float32 factors on the CPU.
    """
    adapter: Adapter = {}
    for path, linear in target_modules(model, config.targets).items():
        bound = linear.in_features**-0.5
        uniform = torch.rand(config.lora_rank, linear.in_features, generator=generator)
        adapter[path] = LoraFactors(A=(2 * uniform - 1) * bound, B=torch.zeros(linear.out_features, config.lora_rank))
    return adapter


def save_adapter(folder: str | Path, adapter: Adapter, config: LoraConfig, base_name: str) -> str:
    """Write `adapter` as PEFT would, so that PEFT, vLLM and transformers load the folder as it lies.

    Args:
        folder: Made when it does not exist; files of the same names are replaced.
        adapter: Factors; all of rank `config.lora_rank`, finite.
        config: Written to `adapter_config.json`.
        base_name: `base_model_name_or_path` there.

    Returns:
        The sha256 of `adapter_model.safetensors`; equal factors give equal bytes.

    Raises:
        ValueError: A rank differs from the config's, or a factor is not finite.
    """
    state, fields = peft_form(adapter, config, base_name)
    payload = _payload(state)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / WEIGHTS_FILE).write_bytes(payload)
    text = json.dumps(fields, indent=2, sort_keys=True)
    (folder / CONFIG_FILE).write_text(text + "\n", encoding="utf-8")
    return hashlib.sha256(payload).hexdigest()


def adapter_sha256(adapter: Adapter, config: LoraConfig) -> str:
    """Return what `save_adapter` would return, without writing anything; raises as it does."""
    return hashlib.sha256(_payload(peft_form(adapter, config, "")[0])).hexdigest()


def _payload(state: dict[str, Tensor]) -> bytes:
    """Return the bytes of `adapter_model.safetensors`."""
    return save_tensors(state, metadata={"format": "pt"})


def peft_form(adapter: Adapter, config: LoraConfig, base_name: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return an adapter as PEFT keeps it: its state dict, on the CPU, and the fields of its configuration.

    Raises:
        ValueError: A rank differs from the config's, or a factor is not finite.
    """
    tensors: dict[str, Tensor] = {}
    for module in sorted(adapter):
        _check_factors(module, adapter[module], config.lora_rank)
        for name, factor in (("A", adapter[module].A), ("B", adapter[module].B)):
            key = f"base_model.model.{module}.lora_{name}.weight"
            tensors[key] = factor.detach().to("cpu").contiguous()
    return tensors, peft_config(config, base_name)


def load_adapter(folder: str | Path) -> tuple[Adapter, LoraConfig]:
    """Read an adapter that we or PEFT wrote.

    Returns:
        The factors in the file's dtype on the CPU, and their settings.

    Raises:
        ValueError: Not a LoRA adapter, or one with a feature that is not supported (the message says which).
    """
    folder = Path(folder)
    raw = _read_config(folder)
    _refuse_unsupported(raw, folder)
    factors = _read_factors(folder)
    names = raw.get("target_modules")
    targets = tuple(sorted(names)) if isinstance(names, list) else _last_names(factors)
    config = LoraConfig(lora_rank=int(raw["r"]), alpha=float(raw["lora_alpha"]), targets=targets)
    adapter: Adapter = {}
    for module, pair in factors.items():
        if set(pair) != {"A", "B"}:
            raise ValueError(f"{folder / WEIGHTS_FILE}: {module!r} has only lora_{next(iter(pair))}")
        adapter[module] = LoraFactors(A=pair["A"], B=pair["B"])
        _check_factors(module, adapter[module], config.lora_rank)
    return adapter, config


def _last_names(modules: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({module.rpartition(".")[2] for module in modules}))


def _check_factors(module: str, factors: LoraFactors, lora_rank: int) -> None:
    if factors.lora_rank != lora_rank:
        raise ValueError(f"{module!r} has rank {factors.lora_rank!r}, the config says {lora_rank!r}")
    if not (torch.isfinite(factors.A).all() and torch.isfinite(factors.B).all()):
        raise ValueError(f"{module!r} has factors that are not finite")


def peft_config(config: LoraConfig, base_name: str) -> dict[str, Any]:
    """Return the fields of a `peft.LoraConfig`."""
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base_name or None,
        "r": config.lora_rank,
        "lora_alpha": int(config.alpha) if config.alpha == int(config.alpha) else config.alpha,
        "target_modules": sorted(config.targets),
        "lora_dropout": 0.0,
        "bias": "none",
        "fan_in_fan_out": False,
        "use_dora": False,
        "use_rslora": False,
        "rank_pattern": {},
        "alpha_pattern": {},
        "modules_to_save": None,
        "init_lora_weights": True,
        "inference_mode": True,
    }


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise ValueError(f"{folder} is not a PEFT adapter: it has no {CONFIG_FILE}")
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not JSON: {error}") from error
    if not isinstance(raw, dict) or not isinstance(raw.get("r"), int) or "lora_alpha" not in raw:
        raise ValueError(f"{path} must hold an object with `r` and `lora_alpha`")
    return raw


def _refuse_unsupported(raw: Mapping[str, Any], folder: Path) -> None:
    """Raise for features that change what the factors mean, or that lie outside of them."""
    initialisation = str(raw.get("init_lora_weights", True)).partition("_")[0].lower()
    reasons = {
        f"peft_type {raw.get('peft_type')!r} (only LORA)": raw.get("peft_type") != "LORA",
        "use_dora (DoRA rescales whole columns, B @ A alone is not its delta)": raw.get("use_dora"),
        "use_rslora (it scales by alpha / sqrt(r), members scale by alpha / r)": raw.get("use_rslora"),
        f"bias {raw.get('bias')!r} (adapters hold no biases)": raw.get("bias", "none") != "none",
        "lora_bias (adapters hold no biases)": raw.get("lora_bias"),
        "rank_pattern (all modules of all members share one rank)": raw.get("rank_pattern"),
        "alpha_pattern (all modules of all members share one alpha)": raw.get("alpha_pattern"),
        "modules_to_save (adapters hold factors only)": raw.get("modules_to_save"),
        "trainable_token_indices (adapters hold factors only)": raw.get("trainable_token_indices"),
        "target_parameters (only nn.Linear can be adapted)": raw.get("target_parameters"),
        "layer_replication (it changes the base)": raw.get("layer_replication"),
        "fan_in_fan_out (Conv1D cannot be adapted)": raw.get("fan_in_fan_out"),
        f"init_lora_weights {initialisation!r} (it changes the base)": initialisation in {"pissa", "olora", "corda"},
    }
    refused = [reason for reason, present in reasons.items() if present]
    if refused:
        raise ValueError(f"{folder / CONFIG_FILE}: not supported: {'; '.join(refused)}")


def _read_factors(folder: Path) -> dict[str, dict[str, Tensor]]:
    path = folder / WEIGHTS_FILE
    if not path.is_file():
        raise ValueError(f"{folder} is not a PEFT adapter: it has no {WEIGHTS_FILE}")
    try:
        tensors = load_tensors(path.read_bytes())
    except SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file: {error}") from error
    factors: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        match = _KEY.fullmatch(key)
        if match is None:
            raise ValueError(f"{path}: {key!r} is no factor of a linear module")
        factors.setdefault(match["module"], {})[match["factor"]] = tensor
    if not factors:
        raise ValueError(f"{path} holds no factors")
    return factors
