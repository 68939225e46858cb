"""A backend held against transformers and PEFT: log-probabilities of what it sampled, and its likeliest tokens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from peft import PeftModel
from torch import Tensor

from populora_agents.bases import Base
from populora_agents.config import LoraConfig
from populora_agents.lora import LoraFactors, fresh_adapter, save_adapter
from populora_agents.stack import AdapterStack
from populora_agents.types import AdapterVersion, Backend, Completion, Request
from populora_env.types import Message

ADAPTERS, PROMPTS = 8, 64


def random_stack(base: Base, config: LoraConfig) -> tuple[AdapterStack, dict[str, tuple[int, int]]]:
    """Put eight random adapters on the base, of the size that training gives; return the stack, and who is where."""
    stack = AdapterStack(base.model, config, ADAPTERS)
    for slot in range(ADAPTERS):
        generator = torch.Generator().manual_seed(slot)
        drawn = fresh_adapter(base.model, config, generator)
        stack.load(slot, {path: spread(pair, generator) for path, pair in drawn.items()})
    return stack, {f"m{slot}": (slot, 0) for slot in range(ADAPTERS)}


def spread(pair: LoraFactors, generator: torch.Generator) -> LoraFactors:
    """Return the factors with a B that is not zero."""
    return LoraFactors(A=pair.A, B=0.02 * torch.randn(pair.B.shape, generator=generator))


def prompts(slots: Mapping[str, tuple[int, int]], *, temperature: float, new: int) -> list[Request]:
    """Return 64 requests, all members in turn."""
    names = list(slots)
    return [
        Request(
            adapter=AdapterVersion(member_id=names[place % len(names)], version=slots[names[place % len(names)]][1]),
            messages=(
                Message(role="user", content=f"def f(a, b):\n    return a{' + b' * (place % 7)} * {place}\n\nf("),
            ),
            max_new_tokens=new,
            temperature=temperature,
            seed=place,
        )
        for place in range(PROMPTS)
    ]


def largest_differences(
    base: Base, stack: AdapterStack, backend: Backend, folder: Path, *, new: int
) -> tuple[float, int]:
    """Return the largest gap between log-probabilities, and how many greedy tokens are not PEFT's likeliest ones.

    Tokens whose two likeliest are less than 1e-3 nats apart do not count.
    """
    slots = {f"m{slot}": (slot, 0) for slot in range(ADAPTERS)}
    sampled = backend.generate(prompts(slots, temperature=1.0, new=new))
    greedy = backend.generate(prompts(slots, temperature=0.0, new=new))
    for slot in range(ADAPTERS):
        save_adapter(folder / f"m{slot}", stack.adapter(slot), stack.config, base.name)
    model = PeftModel.from_pretrained(stack.bare_model(), str(folder / "m0"), adapter_name="m0")
    for slot in range(1, ADAPTERS):
        model.load_adapter(str(folder / f"m{slot}"), adapter_name=f"m{slot}")
    gap, wrong = 0.0, 0
    for one in sampled:
        expected = spreads(model, one).gather(1, torch.tensor([one.token_ids]).mT).squeeze(1)
        gap = max(gap, float((expected - torch.tensor(one.logprobs)).abs().max()))
    for one in greedy:
        best = spreads(model, one).topk(2)
        sure = best.values[:, 0] - best.values[:, 1] > 1e-3
        wrong += int((best.indices[:, 0] != torch.tensor(one.token_ids))[sure].sum())
    return gap, wrong


@torch.no_grad()
def spreads(model: PeftModel, completion: Completion) -> Tensor:
    """Return PEFT's log-probabilities where the tokens of a completion were sampled, float32 [T, V]."""
    assert completion.request.adapter is not None
    model.set_adapter(completion.request.adapter.member_id)
    ids = torch.tensor([[*completion.prompt_ids, *completion.token_ids]])
    logits: Tensor = model(input_ids=ids).logits
    return logits[0, len(completion.prompt_ids) - 1 : -1].log_softmax(dim=-1)
