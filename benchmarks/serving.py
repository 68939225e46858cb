"""Completing prompts by vLLM and by torch: eight adapters against one, and what a new version costs.

    python benchmarks/serving.py [--repeats N]

Prints one JSON object: milliseconds a token of wall clock (medians; all kinds take turns within one run, with the
same prompts and limits), their ratio `vllm_8_vs_1`, and the seconds in which a version is dropped and its
successor loaded and checked. Other work on the machine moves the ratio by a quarter: measure on idle cores.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch

from populora_agents.backends.torch import TorchBackend
from populora_agents.backends.vllm import VllmBackend
from populora_agents.backends.vllm_config import EngineConfig
from populora_agents.bases import load_base
from populora_agents.config import LoraConfig
from populora_agents.lora import LoraFactors, fresh_adapter
from populora_agents.stack import AdapterStack
from populora_agents.types import AdapterVersion, Backend, Request
from populora_env.types import Message

ADAPTERS, PROMPTS, TOKENS = 8, 64, 24


def ask(backend: Backend, requests: Sequence[Request]) -> float:
    """Return milliseconds a sampled token."""
    began = time.perf_counter()
    tokens = sum(len(one.token_ids) for one in backend.generate(requests))
    return (time.perf_counter() - began) / tokens * 1e3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="measurements of each kind (default: 5)")
    repeats = parser.parse_args().repeats

    base = load_base("nano")
    stack = AdapterStack(base.model, LoraConfig(), ADAPTERS)
    for slot in range(ADAPTERS):
        generator = torch.Generator().manual_seed(slot)
        fresh = fresh_adapter(base.model, stack.config, generator).items()
        moved = {path: LoraFactors(A=p.A, B=0.02 * torch.randn(p.B.shape, generator=generator)) for path, p in fresh}
        stack.load(slot, moved)
    slots = {f"m{slot}": (slot, 0) for slot in range(ADAPTERS)}
    eight = [
        Request(
            adapter=AdapterVersion(member_id=f"m{place % ADAPTERS}", version=0),
            messages=(Message(role="user", content=f"def f(a, b):\n    return a * {place}\n\nf("),),
            max_new_tokens=TOKENS,
            seed=place,
        )
        for place in range(PROMPTS)
    ]
    one = [replace(request, adapter=eight[0].adapter) for request in eight]
    vllm = VllmBackend(base, stack, slots, EngineConfig(max_slots=ADAPTERS))
    kinds = {"vllm_8": (vllm, eight), "vllm_1": (vllm, one)}
    plain = TorchBackend(base, stack, slots)
    kinds |= {"torch_8": (plain, eight), "torch_1": (plain, one)}
    for backend, requests in kinds.values():
        ask(backend, requests)
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(repeats):
        for name, (backend, requests) in kinds.items():
            times[name].append(ask(backend, requests))
    found = {f"{name}_ms": round(statistics.median(values), 3) for name, values in times.items()}
    found["vllm_8_vs_1"] = round(found["vllm_8_ms"] / found["vllm_1_ms"], 3)
    slots["m0"] = (0, 1)
    short = replace(one[0], adapter=AdapterVersion(member_id="m0", version=1), max_new_tokens=1)
    began = time.perf_counter()
    vllm.generate([short])
    found["vllm_swap_s"] = round(time.perf_counter() - began, 3)
    vllm.close()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
