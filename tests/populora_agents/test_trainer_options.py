"""What the trainer can be told: rows, memory, lengths, divergence, estimators; and that no option breaks it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_bases import make_model, random_adapter
from tiny_rollouts import CONFIG, DOUBLE, RATES, SLOTS, families, some_rollouts, stack_of

from populora_agents.advantages import ESTIMATORS, rollout_advantages
from populora_agents.backends.torch import TorchBackend
from populora_agents.bases import load_base
from populora_agents.config import AdamConfig, TrainerConfig
from populora_agents.stack import AdapterStack
from populora_agents.trainer import Trainer
from populora_agents.types import AdapterVersion, Request, Rollout
from populora_env.types import Message


@pytest.mark.parametrize("budget", [20, 1000])
def test_sharing_rows_does_not_change_the_result(budget: int) -> None:
    rollouts, advantages = families()
    one, other = stack_of(), stack_of()
    apart = Trainer(one, TrainerConfig(shared_row_tokens=0)).update(rollouts, advantages, SLOTS, RATES)
    shared = Trainer(other, TrainerConfig(micro_batch_tokens=budget)).update(rollouts, advantages, SLOTS, RATES)
    torch.testing.assert_close(other.gradients, one.gradients, rtol=0, atol=1e-12)
    for member in SLOTS:
        assert shared.members[member].loss == pytest.approx(apart.members[member].loss, abs=1e-12)
        assert shared.members[member].entropy == pytest.approx(apart.members[member].entropy, abs=1e-12)


@pytest.mark.parametrize("shared", [0, 2048])
def test_checkpointing_does_not_change_the_gradients(shared: int) -> None:
    rollouts, advantages = families()
    one, other = stack_of(), stack_of()
    Trainer(one, TrainerConfig(shared_row_tokens=shared)).update(rollouts, advantages, SLOTS, RATES)
    config = TrainerConfig(gradient_checkpointing=True, shared_row_tokens=shared)
    Trainer(other, config).update(rollouts, advantages, SLOTS, RATES)
    assert one.gradients.any()
    torch.testing.assert_close(other.gradients, one.gradients, rtol=0, atol=1e-10)
    assert not any(module.training for module in other.model.modules())


def test_checkpointing_keeps_less_for_the_backward() -> None:
    rollouts, advantages = families()
    kept = {}
    for checkpointing in (False, True):
        trainer = Trainer(stack_of(), TrainerConfig(gradient_checkpointing=checkpointing))
        sizes: list[int] = []

        def note(tensor: torch.Tensor, sizes: list[int] = sizes) -> torch.Tensor:
            sizes.append(tensor.nbytes)
            return tensor

        # Tensors kept inside of a checkpointed block pass hooks of its own and are not counted, as they are not kept.
        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            trainer.update(rollouts, advantages, SLOTS, RATES)
        kept[checkpointing] = sum(sizes)
    assert kept[True] < kept[False] / 2


def test_a_bf16_base_learns_in_float32_factors_as_a_float32_base_does() -> None:
    rollouts, advantages = some_rollouts()
    moved = {}
    for dtype in (torch.float32, torch.bfloat16):
        model = make_model(dtype=dtype)
        stack = AdapterStack(model, CONFIG, 4)
        for slot in range(4):
            stack.load(slot, random_adapter(model, CONFIG, slot))
        report = Trainer(stack).update(rollouts, advantages, SLOTS, RATES)
        assert stack.values.dtype == stack.gradients.dtype == torch.float32
        assert torch.isfinite(stack.values).all()
        moved[dtype] = stack.gradients.clone(), [report.members[member].loss for member in sorted(SLOTS)]
    for slot in SLOTS.values():
        mine, theirs = moved[torch.bfloat16][0][slot], moved[torch.float32][0][slot]
        assert torch.nn.functional.cosine_similarity(mine, theirs, dim=0) > 0.99
        assert float(mine.norm()) == pytest.approx(float(theirs.norm()), rel=0.05)
    assert moved[torch.bfloat16][1] == pytest.approx(moved[torch.float32][1], rel=0.05, abs=0.05)


def test_kl_pulls_towards_the_base_even_without_a_reward() -> None:
    rollouts, _ = some_rollouts()
    stack = stack_of()
    trainer = Trainer(stack, TrainerConfig(kl_coefficient=1.0))
    first = trainer.update(rollouts, np.zeros(len(rollouts)), SLOTS, RATES).members
    for _ in range(5):
        last = trainer.update(rollouts, np.zeros(len(rollouts)), SLOTS, RATES).members
    for member in SLOTS:
        before, after = first[member].kl, last[member].kl
        assert before is not None
        assert after is not None
        assert 0 <= after < before
        assert first[member].loss == pytest.approx(before)


def test_members_like_the_base_have_no_divergence() -> None:
    stack = AdapterStack(make_model(dtype=DOUBLE), CONFIG, 4, dtype=DOUBLE)
    rollouts, advantages = some_rollouts()
    report = Trainer(stack, TrainerConfig(kl_coefficient=1.0)).update(rollouts, advantages, SLOTS, RATES)
    assert [update.kl for update in report.members.values()] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("length", ["token_mean", "sequence_mean", "constant"])
def test_length_handling_by_hand_at_ratio_one(length: Any) -> None:
    """On-policy the loss of a token is minus its advantage, so that a member's loss can be worked out by hand."""
    stack = stack_of()
    rollouts, _ = some_rollouts()
    short = replace(rollouts[0], member_id="student_0", token_ids=(1,), logprobs=(0.0,))
    long = replace(short, token_ids=(2, 3, 4), logprobs=(0.0,) * 3)
    config = TrainerConfig(length=length, length_constant=10, adam=AdamConfig(max_grad_norm=float("inf")))

    def on_policy(rollout: Rollout) -> Rollout:
        ids = torch.tensor([[*rollout.prompt_ids, *rollout.token_ids]])
        with stack.route([2]), torch.no_grad():
            rows = stack.model(input_ids=ids).logits[0, len(rollout.prompt_ids) - 1 : -1].log_softmax(-1)
        picked = rows.gather(1, torch.tensor(rollout.token_ids)[:, None])[:, 0]
        return replace(rollout, logprobs=tuple(picked.tolist()))

    report = Trainer(stack, config).update([on_policy(short), on_policy(long)], [3.0, -1.0], SLOTS, RATES)
    expected = {
        "token_mean": -(3.0 - 1 - 1 - 1) / 4,
        "sequence_mean": -(3.0 - 1) / 2,
        "constant": -(3.0 - 3) / 20,
    }[length]
    assert report.members["student_0"].loss == pytest.approx(expected, abs=1e-12)
    assert report.members["student_0"].logprob_gap == pytest.approx(0, abs=1e-12)


def test_estimators_are_taken_by_name_or_as_they_are() -> None:
    rollouts, _ = some_rollouts()
    rewards = [rollout.reward for rollout in rollouts]
    for name, estimator in ESTIMATORS.items():
        named = Trainer(stack_of(), TrainerConfig(estimator=name)).advantages(rollouts)
        assert named.tolist() == rollout_advantages(rollouts, estimator).tolist()
    assert len({tuple(rollout_advantages(rollouts, e)) for e in ESTIMATORS.values()}) == len(ESTIMATORS)
    own = Trainer(stack_of(), estimator=lambda rewards, *_: np.asarray(rewards) * 2)
    assert own.advantages(rollouts).tolist() == [2 * reward for reward in rewards]


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.integers(0, 4), st.floats(-1, 1)), max_size=8),
    st.sampled_from(sorted(ESTIMATORS)),
    st.sampled_from(["token_mean", "sequence_mean", "constant"]),
    st.sampled_from([0.0, 0.1]),
)
def test_whatever_was_rolled_out_nothing_becomes_nan(
    rows: list[tuple[int, int, int, float]], estimator: Any, length: Any, kl_coefficient: float
) -> None:
    stack = stack_of(torch.float32)
    rollouts = [
        Rollout(
            member_id=sorted(SLOTS)[member],
            batch="proposer/deduction",
            group_id=str(place % 2),
            prompt_ids=tuple(range(1, 1 + prompt)),
            token_ids=tuple(range(tokens)),
            logprobs=(-1.0,) * tokens,
            reward=reward,
        )
        for place, (member, prompt, tokens, reward) in enumerate(rows)
    ]
    trainer = Trainer(stack, TrainerConfig(estimator=estimator, length=length, kl_coefficient=kl_coefficient))
    report = trainer.update(rollouts, trainer.advantages(rollouts), SLOTS, RATES)
    assert torch.isfinite(stack.values).all()
    assert set(report.members) == {rollout.member_id for rollout in rollouts}
    for update in report.members.values():
        assert np.isfinite([update.loss, update.grad_norm, update.entropy_estimate]).all()


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_sampler_and_trainer_agree_on_nano(temperature: float) -> None:
    base = load_base("nano")
    stack = AdapterStack(base.model, base.preset.lora, 4)
    for slot in range(4):
        stack.load(slot, random_adapter(base.model, base.preset.lora, slot))
    backend = TorchBackend(base, stack, {member: (slot, 0) for member, slot in SLOTS.items()})
    requests = [
        Request(
            adapter=AdapterVersion(member_id=member, version=0),
            messages=(Message(role="user", content=f"f({place % 2})"),),
            max_new_tokens=24,
            temperature=temperature,
            seed=place,
        )
        for place, member in enumerate([*SLOTS] * 4)
    ]
    rollouts = [
        Rollout(
            member_id=completion.request.adapter.member_id if completion.request.adapter else "",
            batch="b",
            group_id="g",
            prompt_ids=completion.prompt_ids,
            token_ids=completion.token_ids,
            logprobs=completion.logprobs,
            reward=0.0,
            temperature=completion.request.temperature,
        )
        for completion in backend.generate(requests)
    ]
    trainer = Trainer(stack, TrainerConfig())
    report = trainer.update(rollouts, np.ones(len(rollouts)), SLOTS, RATES)
    for update in report.members.values():
        assert update.logprob_gap is not None
        assert update.logprob_gap < 1e-5
        assert update.clip_fraction == 0.0
