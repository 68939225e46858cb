"""Real bases: what the sampler says of its tokens is what the trainer finds, to 1e-4 in float32."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from qwen_folder import qwen_folder
from tiny_bases import random_adapter
from torch import Tensor

from populora_agents.backends.decoding import Decoder
from populora_agents.backends.llama import LlamaSession
from populora_agents.backends.torch import TorchBackend
from populora_agents.bases import Base, load_base
from populora_agents.config import LoraConfig, TrainerConfig
from populora_agents.lora import LoraFactors
from populora_agents.stack import AdapterStack
from populora_agents.trainer import Trainer
from populora_agents.types import AdapterVersion, Completion, Request, Rollout
from populora_env.config import GameConfig
from populora_env.game import Round, seeded_buffer
from populora_env.prompts import get_style
from populora_env.types import Task

SLOTS = {"teacher_0": (0, 3), "student_0": (1, 5)}


def largest_gap(base: Base, game: GameConfig, *, temperature: float, new: int) -> tuple[float, int]:
    """Let two members propose, and score the same tokens as the trainer does; return the largest gap and the tokens."""
    config = LoraConfig(lora_rank=4, alpha=8.0)
    stack = AdapterStack(base.model, config, 2)
    for slot in range(2):
        # Of the size that training gives; where deltas drown the base, its own forward is off by more than 1e-4, too.
        drawn = random_adapter(base.model, config, slot)
        stack.load(slot, {path: LoraFactors(A=pair.A, B=0.1 * pair.B) for path, pair in drawn.items()})
    backend = TorchBackend(base, stack, SLOTS)
    assert Decoder(base.model, stack, [])._session is LlamaSession
    rollouts = [as_rollout(one) for one in backend.generate(list(some_requests(game, temperature, new)))]
    gaps: list[Tensor] = []

    def objective(logprobs: Tensor, sampled: Tensor, advantages: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        gaps.append((logprobs.detach() - sampled).abs())
        zeros = torch.zeros_like(sampled)
        return logprobs * advantages * 0, {"clipped": zeros, "gap": gaps[-1]}

    trainer = Trainer(stack, TrainerConfig(), objective=objective)
    slots = {member: slot for member, (slot, _) in SLOTS.items()}
    trainer.update(rollouts, np.ones(len(rollouts)), slots, dict.fromkeys(SLOTS, 1e-9))
    found = torch.cat(gaps)
    return float(found.max()), len(found)


def some_requests(game: GameConfig, temperature: float, new: int) -> Iterator[Request]:
    buffer, rng = seeded_buffer(game), np.random.default_rng(0)
    for member, (_, version) in SLOTS.items():
        for task in Task:
            references = buffer.draw(task, 1 if task is Task.INDUCTION else game.references, rng)
            seen = Round(task=task, references=references, config=game).proposer_observation()
            for seed in range(2):
                yield Request(
                    adapter=AdapterVersion(member_id=member, version=version),
                    messages=seen.messages,
                    max_new_tokens=new,
                    temperature=temperature,
                    top_p=0.95,
                    stop=get_style(game.style).stop,
                    seed=seed,
                )


def as_rollout(completion: Completion) -> Rollout:
    assert completion.request.adapter is not None
    return Rollout(
        member_id=completion.request.adapter.member_id,
        batch="b",
        group_id="g",
        prompt_ids=completion.prompt_ids,
        token_ids=completion.token_ids,
        logprobs=completion.logprobs,
        reward=0.0,
        temperature=completion.request.temperature,
    )


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_nano(temperature: float) -> None:
    gap, tokens = largest_gap(load_base("nano"), GameConfig(), temperature=temperature, new=48)
    assert tokens > 200
    assert gap < 1e-4


@pytest.mark.slow
def test_qwen_coder_half_a_billion() -> None:
    game = GameConfig(style="few_shot", references=1)
    gap, tokens = largest_gap(load_base(qwen_folder()), game, temperature=0.8, new=16)
    assert tokens > 100
    assert gap < 1e-4
