"""The torch backend: against a plain loop, independence of the batch, agreement with the trainer, refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_bases import random_adapter
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    MistralConfig,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3Config,
)

from populora_agents.backends.torch import TorchBackend
from populora_agents.bases import Base
from populora_agents.config import LoraConfig
from populora_agents.sampling import uniforms
from populora_agents.stack import AdapterStack
from populora_agents.trainer import Trainer
from populora_agents.types import AdapterVersion, Backend, Completion, Request, Rollout
from populora_env.types import Message

SHAPE = {
    "vocab_size": 259,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "eos_token_id": 256,
}
SLOTS = {"teacher_0": (0, 4), "student_0": (2, 1), "student_1": (1, 0)}


def request(member: str | None, text: str, *, seed: int = 0, new: int = 12, temperature: float = 1.0) -> Request:
    adapter = None if member is None else AdapterVersion(member_id=member, version=SLOTS[member][1])
    return Request(
        adapter=adapter,
        messages=(Message(role="user", content=text),),
        max_new_tokens=new,
        temperature=temperature,
        seed=seed,
    )


def some_requests(count: int = 24) -> list[Request]:
    members = ["student_0", None, "teacher_0", "student_1"]
    return [
        request(members[k % 4], f"prompt {'x' * (k // 8)}", seed=k, new=1 + k % 13, temperature=(1.0, 0.7, 0.0)[k % 3])
        for k in range(count)
    ]


@pytest.fixture
def stack(base: Base, lora_config: LoraConfig) -> AdapterStack:
    stack = AdapterStack(base.model, lora_config, 3)
    for slot in range(3):
        stack.load(slot, random_adapter(base.model, lora_config, slot))
    return stack


@pytest.fixture
def backend(base: Base, stack: AdapterStack) -> TorchBackend:
    return TorchBackend(base, stack, SLOTS)


def plain_loop(base: Base, stack: AdapterStack, asked: Request) -> tuple[list[int], list[float]]:
    """Complete one request without cache, batch or padding."""
    slot = None if asked.adapter is None else SLOTS[asked.adapter.member_id][0]
    prompt = list(base.tokenizer(asked.messages[0].content).input_ids)
    tokens: list[int] = []
    logprobs: list[float] = []
    for draw in uniforms(asked.seed, asked.max_new_tokens):
        with torch.no_grad(), stack.route([slot]):
            logits = base.model(input_ids=torch.tensor([prompt + tokens]), use_cache=False).logits[0, -1].double()
        scaled = torch.log_softmax(logits / (asked.temperature or 1.0), dim=0)
        cumulative = scaled.exp().cumsum(0)
        drawn = int(np.searchsorted(cumulative.numpy(), draw * float(cumulative[-1]), side="right"))
        token = drawn if asked.temperature else int(logits.argmax())
        tokens.append(token)
        logprobs.append(float(scaled[token]))
        if token == base.tokenizer.eos_token_id:
            break
    return tokens, logprobs


def test_a_mixed_batch_equals_a_plain_loop(base: Base, stack: AdapterStack, backend: Backend) -> None:
    requests = some_requests()
    for asked, completion in zip(requests, backend.generate(requests), strict=True):
        tokens, logprobs = plain_loop(base, stack, asked)
        assert completion.request is asked
        assert list(completion.token_ids) == tokens
        np.testing.assert_allclose(completion.logprobs, logprobs, atol=1e-4)


@pytest.mark.parametrize(
    "config",
    [
        Qwen2Config(**SHAPE),
        Qwen3Config(**SHAPE, head_dim=8),
        MistralConfig(**SHAPE, sliding_window=8),
        Gemma2Config(**SHAPE, head_dim=8, sliding_window=8),
    ],
    ids=lambda config: config.model_type,
)
def test_other_families_equal_a_plain_loop_too(base: Base, lora_config: LoraConfig, config: PreTrainedConfig) -> None:
    # The global generator only makes the random weights here.
    with torch.random.fork_rng():
        torch.manual_seed(0)
        base = replace(base, model=AutoModelForCausalLM.from_config(config).float().eval())
    stack = AdapterStack(base.model, lora_config, 3)
    for slot in range(3):
        stack.load(slot, random_adapter(base.model, lora_config, slot))
    requests = some_requests(12)
    for asked, completion in zip(requests, TorchBackend(base, stack, SLOTS).generate(requests), strict=True):
        tokens, logprobs = plain_loop(base, stack, asked)
        assert list(completion.token_ids) == tokens
        np.testing.assert_allclose(completion.logprobs, logprobs, atol=1e-4)


def test_a_completion_does_not_depend_on_the_batch(base: Base, stack: AdapterStack, backend: Backend) -> None:
    requests = some_requests()
    together = [completion.token_ids for completion in backend.generate(requests)]
    backwards = [completion.token_ids for completion in backend.generate(requests[::-1])][::-1]
    alone = [backend.generate([asked])[0].token_ids for asked in requests]
    small = TorchBackend(base, stack, SLOTS, batch_tokens=60).generate(requests)
    assert together == backwards == alone == [completion.token_ids for completion in small]


def test_alone_in_a_batch_of_64_or_in_another_order_it_says_the_same(backend: Backend) -> None:
    asked = replace(request("student_0", "prompt xx", seed=5, new=30), top_p=0.9)
    crowd = [replace(asked, seed=seed, temperature=0.5 + seed % 7) for seed in range(100, 131)]
    crowd += [request("teacher_0", "z" * (1 + seed % 40), seed=seed, new=1 + seed % 50) for seed in range(32)]
    order = np.random.default_rng(0).permutation(64)
    requests = [[asked, *crowd][place] for place in order]
    (alone,) = backend.generate([asked])
    together = backend.generate(requests)[int(np.flatnonzero(order == 0)[0])]
    assert alone.token_ids == together.token_ids
    assert alone.text == together.text
    np.testing.assert_allclose(alone.logprobs, together.logprobs, atol=1e-5)


def test_a_stop_string_ends_the_text_before_it_and_the_tokens_with_it(base: Base, backend: Backend) -> None:
    requests = [request("teacher_0", "a", seed=seed, new=40) for seed in range(30)]
    free = backend.generate(requests)
    characters = [character for one in free for character in one.text if character.isascii()]
    stops = (max(set(characters), key=characters.count), "never to be seen")
    stopped = 0
    for before, after in zip(free, backend.generate([replace(one, stop=stops) for one in requests]), strict=True):
        count = len(after.token_ids)
        assert after.token_ids == before.token_ids[:count]
        assert len(after.logprobs) == count
        assert stops[0] not in after.text
        if stops[0] in before.text:
            stopped += 1
            assert after.finish_reason == "stop"
            assert after.text == before.text[: before.text.index(stops[0])]
            assert stops[0] in base.tokenizer.decode(after.token_ids)
            assert stops[0] not in base.tokenizer.decode(after.token_ids[:-1])
        else:
            assert after.token_ids == before.token_ids
            assert after.finish_reason == before.finish_reason
    assert 0 < stopped < 30


def test_same_seeds_same_bits(backend: Backend) -> None:
    first, second = (backend.generate(some_requests()) for _ in range(2))
    assert first == second


def test_rows_end_at_the_end_token_or_at_their_limit(base: Base, backend: Backend) -> None:
    # Random weights rarely say the end token, so a common token is declared to be one.
    requests = [request("teacher_0", "a", seed=seed, new=40) for seed in range(30)]
    common = int(np.bincount([t for c in backend.generate(requests) for t in c.token_ids]).argmax())
    base.model.generation_config.eos_token_id = [common]
    completions = backend_of(base, backend).generate(requests)
    reasons = {completion.finish_reason for completion in completions}
    assert reasons == {"stop", "length"}
    for completion in completions:
        stops = [token in (common, base.tokenizer.eos_token_id) for token in completion.token_ids]
        assert not any(stops[:-1])
        assert stops[-1] is (completion.finish_reason == "stop")
        assert len(completion.token_ids) == len(completion.logprobs) <= 40
        assert len(completion.token_ids) == 40 or completion.finish_reason == "stop"


def backend_of(base: Base, backend: Backend) -> TorchBackend:
    assert isinstance(backend, TorchBackend)
    return TorchBackend(base, backend._decoder._stack, SLOTS)


def test_sampler_and_trainer_agree_on_log_probabilities(stack: AdapterStack, backend: Backend) -> None:
    members = ["teacher_0", "student_0", "student_1"]
    requests = [request(members[k % 3], "y" * (1 + k % 5), seed=k) for k in range(18)]
    # Neither a stop string nor top-p changes what a token's log-probability is.
    completions = backend.generate([replace(one, top_p=0.8, stop=("e", "t")) for one in requests])
    rollouts = [as_rollout(completion) for completion in completions]
    slots = {member: slot for member, (slot, _) in SLOTS.items()}
    report = Trainer(stack).update(rollouts, np.ones(18), slots, dict.fromkeys(SLOTS, 1e-3))
    assert all(update.logprob_gap < 1e-5 for update in report.members.values())
    assert all(update.clip_fraction == 0 for update in report.members.values())


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


def test_text_is_decoded_without_control_tokens(base: Base, backend: Backend) -> None:
    for completion in backend.generate([request(None, "a", seed=seed, new=30) for seed in range(8)]):
        assert completion.text == base.tokenizer.decode(completion.token_ids, skip_special_tokens=True)
        assert "<|end|>" not in completion.text


def test_a_chat_prompt_is_the_templates(make_base: Callable[..., Base]) -> None:
    base = make_base(chat=True, split=False)
    (completion,) = TorchBackend(base, None, {}).generate([request(None, "hi")])
    assert base.tokenizer.decode(completion.prompt_ids) == "<|start|>user\nhi<|end|>\n<|start|>assistant\n"


def test_no_requests_no_completions(backend: Backend) -> None:
    assert backend.generate([]) == []
    backend.close()


def test_slots_are_looked_up_at_every_call(base: Base, stack: AdapterStack) -> None:
    table = dict(SLOTS)
    backend = TorchBackend(base, stack, table.get)
    asked = request("student_0", "a")
    backend.generate([asked])
    table["student_0"] = (2, 2)
    with pytest.raises(ValueError, match="version 2, not at 1"):
        backend.generate([asked])
    del table["student_0"]
    with pytest.raises(ValueError, match="does not hold member 'student_0'"):
        backend.generate([asked])


def test_prompts_that_fill_the_context_are_refused_and_completions_end_with_it(backend: Backend) -> None:
    with pytest.raises(ValueError, match=r"request 1: its prompt has 256 tokens.*256"):
        backend.generate([request(None, "a"), request(None, "x" * 256)])
    (completion,) = backend.generate([request(None, "x" * 250, new=99, temperature=0.0)])
    assert len(completion.token_ids) <= 6


def test_settings_that_make_no_sense_are_refused(backend: Backend) -> None:
    with pytest.raises(ValueError, match="max_new_tokens"):
        backend.generate([request(None, "a", new=0)])
    with pytest.raises(ValueError, match="temperature"):
        backend.generate([replace(request(None, "a"), temperature=float("nan"))])
    for changes in ({"top_p": 0.0}, {"top_p": 1.1}, {"top_p": float("nan")}, {"stop": ("",)}, {"stop": "end"}):
        with pytest.raises(ValueError, match="request 0: expected `top_p`"):
            backend.generate([replace(request(None, "a"), **changes)])  # type: ignore[arg-type]
