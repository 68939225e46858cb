"""What one child costs at the size of a 7B model, for each operator, beside a copy of its parents and beside PEFT.

    python benchmarks/operators.py [--json] [--rounds N] [--layers N] [--square N]

Parents have the shapes of Qwen2.5-7B: 28 layers, seven maps each, rank 32, 80.7 million parameters in float32. In each
round every operator makes one child; seconds are medians over the rounds. A copy reads both parents and writes as
much. PEFT's `add_weighted_adapter` is timed on one matrix: its `linear` adds factors, so that products of one
parent's B with the other's A come in (the error is that of the delta, relative to the right one); its `svd` forms
the delta in full.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from peft import LoraConfig as PeftConfig
from peft import get_peft_model
from torch import nn

from league.operators import OPERATORS, apply
from populora_agents.lora import Adapter, LoraFactors

LORA_RANK = 32
HIDDEN, KEYS, INNER = 3584, 512, 18944
MAPS = {
    "self_attn.q_proj": (HIDDEN, HIDDEN),
    "self_attn.k_proj": (HIDDEN, KEYS),
    "self_attn.v_proj": (HIDDEN, KEYS),
    "self_attn.o_proj": (HIDDEN, HIDDEN),
    "mlp.gate_proj": (HIDDEN, INNER),
    "mlp.up_proj": (HIDDEN, INNER),
    "mlp.down_proj": (INNER, HIDDEN),
}
"""Inputs and outputs of the adapted maps of a block of Qwen2.5-7B."""
LAYERS = 28
CEILING_S, CEILING_COPIES = 3.0, 3.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default: 5)")
    parser.add_argument("--layers", type=int, default=LAYERS, help=f"layers of the model (default: {LAYERS})")
    parser.add_argument("--square", type=int, default=HIDDEN, help=f"size of PEFT's one matrix (default: {HIDDEN})")
    arguments = parser.parse_args()
    figures = measure(arguments.rounds, arguments.layers) | {"peft_one_matrix": peft_figures(arguments.square)}
    print(json.dumps(figures) if arguments.json else as_text(figures))


def measure(rounds: int, layers: int) -> dict[str, Any]:
    """Return seconds by operator and their ratios to a copy."""
    parents = [trained_like(layers, seed) for seed in range(2)]
    seconds: dict[str, list[float]] = {name: [] for name in ("copy", *OPERATORS)}
    for _ in range(rounds):
        seconds["copy"].append(timed(lambda: [copy_of(parent) for parent in parents]))
        for name, operator in OPERATORS.items():
            some = parents[: operator.arity]
            generator = torch.Generator().manual_seed(0)
            seconds[name].append(timed(lambda name=name, some=some, drawn=generator: apply(name, some, drawn)))
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    slowest = max(OPERATORS, key=medians.__getitem__)
    return {
        "parameters": sum(factors.A.numel() + factors.B.numel() for factors in parents[0].values()),
        "seconds": medians,
        "slowest_operator": slowest,
        "ratios": {
            "slowest_operator_s": medians[slowest],
            "slowest_vs_copy": medians[slowest] / medians["copy"],
        },
    }


def trained_like(layers: int, seed: int) -> Adapter:
    """Return an adapter with entries everywhere, as after some training."""
    draw = torch.Generator().manual_seed(seed)
    return {
        f"model.layers.{layer}.{name}": LoraFactors(
            A=torch.randn(LORA_RANK, d_in, generator=draw) * d_in**-0.5,
            B=torch.randn(d_out, LORA_RANK, generator=draw) * 0.01,
        )
        for layer in range(layers)
        for name, (d_in, d_out) in MAPS.items()
    }


def copy_of(adapter: Adapter) -> Adapter:
    """Return the same factors in memory of their own."""
    return {name: LoraFactors(A=factors.A.clone(), B=factors.B.clone()) for name, factors in adapter.items()}


def timed(call: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def peft_figures(size: int) -> dict[str, float]:
    """Return what PEFT's merging of two adapters costs on one square matrix, and how far it is from the mean delta."""
    model = get_peft_model(nn.Sequential(nn.Linear(size, size, bias=False)), PeftConfig(**_peft_settings()))
    model.add_adapter("second", PeftConfig(**_peft_settings()))
    layer: Any = model.base_model.model[0]
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for adapter in ("default", "second"):
            layer.lora_A[adapter].weight.copy_(torch.randn(LORA_RANK, size, generator=draw) * size**-0.5)
            layer.lora_B[adapter].weight.copy_(torch.randn(size, LORA_RANK, generator=draw) * 0.01)
    figures: dict[str, float] = {"size": size}
    with torch.no_grad():
        mean = (layer.get_delta_weight("default") + layer.get_delta_weight("second")) / 2
        for way in ("linear", "svd"):
            figures[f"{way}_s"] = timed(
                lambda way=way: model.add_weighted_adapter(
                    ["default", "second"], [0.5, 0.5], way, combination_type=way, svd_rank=LORA_RANK
                )
            )
            error = torch.linalg.vector_norm(layer.get_delta_weight(way) - mean) / torch.linalg.vector_norm(mean)
            figures[f"{way}_error"] = float(error)
        parents = [
            {"map": LoraFactors(A=layer.lora_A[name].weight.detach(), B=layer.lora_B[name].weight.detach())}
            for name in ("default", "second")
        ]
        figures["ours_s"] = timed(lambda: apply("linear_0_5", parents, torch.Generator().manual_seed(0)))
        child = apply("linear_0_5", parents, torch.Generator().manual_seed(0))["map"]
        error = torch.linalg.vector_norm(child.B @ child.A - mean) / torch.linalg.vector_norm(mean)
        figures["ours_error"] = float(error)
    return figures


def _peft_settings() -> dict[str, Any]:
    return {"r": LORA_RANK, "lora_alpha": LORA_RANK, "target_modules": ["0"]}


def as_text(figures: dict[str, Any]) -> str:
    """Return the figures for people."""
    copy = figures["seconds"]["copy"]
    lines = [f"{figures['parameters'] / 1e6:.1f} million parameters a parent", "", "  seconds a child, and in copies"]
    lines += [f"  {name:16}{seconds:8.2f}{seconds / copy:8.1f}" for name, seconds in figures["seconds"].items()]
    ceilings = {"slowest_operator_s": CEILING_S, "slowest_vs_copy": CEILING_COPIES}
    lines += ["", "one of the two must hold:"]
    lines += [f"  {name:20}{ratio:8.2f}   at most {ceilings[name]:g}" for name, ratio in figures["ratios"].items()]
    peft = figures["peft_one_matrix"]
    lines += [
        "",
        f"mean of two adapters, one matrix of size {peft['size']}: seconds, relative error of the delta",
    ]
    for name, way in (("PEFT linear", "linear"), ("PEFT svd", "svd"), ("linear_0_5", "ours")):
        lines.append(f"  {name:16}{peft[f'{way}_s']:8.3f}{peft[f'{way}_error']:12.4f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
