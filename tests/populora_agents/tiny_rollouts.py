"""A small stack and rollouts of its members, for the tests of trainers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from tiny_bases import make_model, random_adapter

from populora_agents.config import LoraConfig
from populora_agents.stack import AdapterStack
from populora_agents.types import Rollout

CONFIG = LoraConfig(lora_rank=4, alpha=8.0)
DOUBLE = torch.float64
SLOTS = {"teacher_0": 0, "student_0": 2, "student_1": 1}
RATES = {"teacher_0": 1e-2, "student_0": 3e-3, "student_1": 1e-3}


def stack_of(dtype: torch.dtype = DOUBLE) -> AdapterStack:
    model = make_model(dtype=dtype)
    adapters = [random_adapter(model, CONFIG, seed, dtype=dtype) for seed in range(4)]
    stack = AdapterStack(model, CONFIG, 4, dtype=dtype)
    for slot, adapter in enumerate(adapters):
        stack.load(slot, adapter)
    return stack


def some_rollouts(count: int = 14, seed: int = 0) -> tuple[list[Rollout], np.ndarray]:
    rng = np.random.default_rng(seed)
    members = sorted(SLOTS)
    rollouts = [
        Rollout(
            member_id=members[int(rng.integers(3))],
            batch="solver/deduction",
            group_id=str(place // 2),
            prompt_ids=tuple(rng.integers(0, 256, rng.integers(1, 9)).tolist()),
            token_ids=tuple(rng.integers(0, 256, (length := int(rng.integers(1, 7)))).tolist()),
            logprobs=tuple((-5 - rng.random(length)).tolist()),
            reward=float(rng.integers(2)),
        )
        for place in range(count)
    ]
    return rollouts, rng.normal(size=count)


def families(seed: int = 0) -> tuple[list[Rollout], np.ndarray]:
    """Return rollouts of which several have the same prompt, as a group's have."""
    rollouts, advantages = some_rollouts(18, seed)
    prompts = {}
    for place, rollout in enumerate(rollouts):
        prompt = prompts.setdefault((rollout.member_id, place % 2), rollout.prompt_ids)
        rollouts[place] = replace(rollout, prompt_ids=prompt)
    return rollouts, advantages
