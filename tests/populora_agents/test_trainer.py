"""The update: against a plain loop over PEFT models, micro-batches, walls between members, legal odd inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from peft import LoraConfig as PeftConfig
from peft import get_peft_model
from tiny_bases import make_model
from tiny_rollouts import CONFIG, DOUBLE, RATES, SLOTS, families, some_rollouts, stack_of
from torch import nn

from populora_agents.config import TrainerConfig
from populora_agents.losses import clipped_objective
from populora_agents.stack import AdapterStack
from populora_agents.trainer import Trainer
from populora_agents.types import DivergedError, Rollout


def peft_step(stack: AdapterStack, member: str, rollouts: Sequence[Rollout], advantages: Sequence[float]) -> Any:
    """Update one member alone with PEFT, one unpadded row at a time; return its model and the loss."""
    fields = PeftConfig(r=4, lora_alpha=8, target_modules=list(CONFIG.targets))
    model = get_peft_model(make_model(dtype=DOUBLE), fields, autocast_adapter_dtype=False).to(DOUBLE).eval()
    for path, pair in stack.adapter(SLOTS[member]).items():
        module: Any = model.get_submodule(f"base_model.model.{path}")
        module.lora_A["default"].weight.data.copy_(pair.A)
        module.lora_B["default"].weight.data.copy_(pair.B)
    losses = []
    for rollout, advantage in zip(rollouts, advantages, strict=True):
        ids = torch.tensor([*rollout.prompt_ids, *rollout.token_ids])
        logprobs = model(input_ids=ids[None]).logits[0, :-1].log_softmax(-1)
        picked = logprobs.gather(1, ids[1:, None])[len(rollout.prompt_ids) - 1 :, 0]
        sampled = torch.tensor(rollout.logprobs, dtype=DOUBLE)
        loss, _ = clipped_objective(picked, sampled, torch.full_like(sampled, advantage))
        losses.append(loss)
    loss = torch.cat(losses).mean()
    loss.backward()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    norm = nn.utils.clip_grad_norm_(trained, 1.0)
    torch.optim.AdamW(trained, lr=RATES[member], weight_decay=0.0).step()
    return model, loss.item(), norm.item()


def test_an_update_equals_separate_updates_with_peft() -> None:
    stack = stack_of()
    rollouts, advantages = some_rollouts()
    expected = {}
    for member in SLOTS:
        own = [place for place, rollout in enumerate(rollouts) if rollout.member_id == member]
        expected[member] = peft_step(stack, member, [rollouts[k] for k in own], [float(advantages[k]) for k in own])
    report = Trainer(stack).update(rollouts, advantages, SLOTS, RATES)
    for member, (model, loss, norm) in expected.items():
        assert report.members[member].loss == pytest.approx(loss, abs=1e-10)
        assert report.members[member].grad_norm == pytest.approx(norm, abs=1e-10)
        for path, pair in stack.adapter(SLOTS[member]).items():
            module = model.get_submodule(f"base_model.model.{path}")
            torch.testing.assert_close(pair.A, module.lora_A["default"].weight.data, rtol=0, atol=1e-10)
            torch.testing.assert_close(pair.B, module.lora_B["default"].weight.data, rtol=0, atol=1e-10)


@pytest.mark.parametrize("budget", [1, 20, 60])
def test_micro_batches_do_not_change_the_result(budget: int) -> None:
    rollouts, advantages = some_rollouts()
    whole, cut = stack_of(), stack_of()
    one = Trainer(whole).update(rollouts, advantages, SLOTS, RATES)
    other = Trainer(cut, TrainerConfig(micro_batch_tokens=budget)).update(rollouts, advantages, SLOTS, RATES)
    torch.testing.assert_close(cut.values, whole.values, rtol=0, atol=1e-10)
    for member in SLOTS:
        mine, theirs = other.members[member], one.members[member]
        assert mine.loss == pytest.approx(theirs.loss, abs=1e-10)
        assert mine.logprob_gap == pytest.approx(theirs.logprob_gap, abs=1e-10)
        assert mine.clip_fraction == theirs.clip_fraction


def test_order_of_rollouts_does_not_matter() -> None:
    rollouts, advantages = some_rollouts()
    one, other = stack_of(), stack_of()
    Trainer(one).update(rollouts, advantages, SLOTS, RATES)
    Trainer(other).update(rollouts[::-1], advantages[::-1], SLOTS, RATES)
    torch.testing.assert_close(other.values, one.values, rtol=0, atol=1e-10)


def test_members_without_a_signal_stay_bit_identical() -> None:
    stack = stack_of()
    trainer = Trainer(stack)
    rollouts, advantages = some_rollouts()
    trainer.update(rollouts, advantages, SLOTS, RATES)
    before, state = stack.values.clone(), trainer.state_dict()
    quiet = np.array([rollout.member_id == "teacher_0" for rollout in rollouts])
    report = trainer.update(rollouts, np.where(quiet, 0.0, advantages), SLOTS, RATES)
    after = trainer.state_dict()
    assert torch.equal(stack.values[0], before[0])
    assert torch.equal(stack.values[3], before[3])
    assert torch.equal(after["first"][0], state["first"][0])
    assert after["counts"].tolist() == [1, 2, 2, 0]
    assert report.members["teacher_0"].loss == report.members["teacher_0"].grad_norm == 0.0
    assert report.members["teacher_0"].rollouts == int(quiet.sum())


def test_skipping_rollouts_with_zero_advantage_is_exact() -> None:
    rollouts, advantages = some_rollouts()
    zero, tiny = advantages.copy(), advantages.copy()
    zero[::3], tiny[::3] = 0.0, 1e-300
    one, other = stack_of(), stack_of()
    skipped = Trainer(one).update(rollouts, zero, SLOTS, RATES)
    computed = Trainer(other).update(rollouts, tiny, SLOTS, RATES)
    torch.testing.assert_close(other.values, one.values, rtol=0, atol=1e-10)
    for member in SLOTS:
        assert skipped.members[member].loss == pytest.approx(computed.members[member].loss, abs=1e-10)
        assert skipped.members[member].entropy_estimate == computed.members[member].entropy_estimate
        assert skipped.members[member].tokens == computed.members[member].tokens


def test_report_by_hand() -> None:
    stack = stack_of()
    rollout = some_rollouts()[0][0]
    rollout = replace(rollout, member_id="student_0", token_ids=(1, 2), logprobs=(-2.0, -4.0))
    update = Trainer(stack).update([rollout], [1.0], SLOTS, RATES).members["student_0"]
    assert (update.rollouts, update.tokens, update.entropy_estimate) == (1, 2, 3.0)
    assert update.grad_norm > 0
    assert update.entropy is not None
    assert 0 < update.entropy < np.log(259)


def test_odd_but_legal_inputs_give_no_nan() -> None:
    stack = stack_of()
    trainer = Trainer(stack)
    before = stack.values.clone()
    assert trainer.update([], [], SLOTS, RATES).members == {}
    rollouts, _ = some_rollouts(1)
    empty = replace(rollouts[0], token_ids=(), logprobs=())
    for case in ([empty], [empty, rollouts[0]], rollouts):
        report = trainer.update(case, np.zeros(len(case)), SLOTS, RATES)
        for update in report.members.values():
            assert np.isfinite([update.loss, update.entropy_estimate, update.clip_fraction]).all()
            assert update.entropy is None
    trainer.update([empty], [1.0], SLOTS, RATES)
    assert torch.equal(stack.values, before)


@pytest.mark.parametrize("kl_coefficient", [0.0, 0.1])
def test_another_members_data_changes_no_bit_of_weights_or_moments(kl_coefficient: float) -> None:
    """Slot 3 is empty, slots are unequally full (so padded in the stack), and rows are padded."""
    rollouts, advantages = families()
    config = TrainerConfig(kl_coefficient=kl_coefficient)
    seen = []
    for swap in (False, True):
        stack = stack_of(torch.float32)
        stack.reset(3)
        trainer = Trainer(stack, config)
        for _ in range(2):
            given = [
                replace(one, token_ids=one.token_ids[::-1], prompt_ids=one.prompt_ids[::-1])
                if swap and one.member_id == "student_1"
                else one
                for one in rollouts
            ]
            signs = [-1 if swap and one.member_id == "student_1" else 1 for one in rollouts]
            trainer.update(given, advantages * signs, SLOTS, RATES)
        seen.append((stack.values.clone(), trainer.state_dict()))
    (one, one_state), (other, other_state) = seen
    for slot, same in ((0, True), (1, False), (2, True), (3, True)):
        assert torch.equal(one[slot], other[slot]) is same
        assert torch.equal(one_state["first"][slot], other_state["first"][slot]) is same
        assert torch.equal(one_state["second"][slot], other_state["second"][slot]) is same
    assert not one[3].any()
    assert not one_state["first"][3].any()


def test_only_the_member_whose_numbers_overflow_is_named_whatever_its_slot() -> None:
    rollouts, advantages = some_rollouts()
    for culprit, slot in SLOTS.items():
        stack = stack_of()
        with torch.no_grad():
            stack.values[slot] *= 1e200
        with pytest.raises(DivergedError) as caught:
            Trainer(stack).update(rollouts, advantages, SLOTS, RATES)
        assert caught.value.members == (culprit,)


def test_learning_raises_what_was_rewarded() -> None:
    stack = stack_of(torch.float32)
    trainer = Trainer(stack)
    good = Rollout(
        member_id="student_0",
        batch="b",
        group_id="g",
        prompt_ids=(5, 6),
        token_ids=(7, 8),
        logprobs=(-5.0, -5.0),
        reward=1,
    )
    bad = replace(good, token_ids=(9, 10), reward=0)

    def logprobs(rollout: Rollout) -> tuple[float, ...]:
        ids = torch.tensor([[*rollout.prompt_ids, *rollout.token_ids]])
        with stack.route([2]), torch.no_grad():
            picked = stack.model(input_ids=ids).logits[0, 1:3].log_softmax(-1).gather(1, ids[0, 2:, None])
        return tuple(picked[:, 0].tolist())

    before = sum(logprobs(good)), sum(logprobs(bad))
    for _ in range(5):
        on_policy = [replace(rollout, logprobs=logprobs(rollout)) for rollout in (good, bad)]
        trainer.update(on_policy, [1.0, -1.0], SLOTS, RATES)
    assert sum(logprobs(good)) > before[0]
    assert sum(logprobs(bad)) < before[1]


def test_same_inputs_same_bits() -> None:
    rollouts, advantages = some_rollouts()
    stacks = [stack_of(torch.float32) for _ in range(2)]
    for stack in stacks:
        Trainer(stack).update(rollouts, advantages, SLOTS, RATES)
    assert torch.equal(stacks[0].values, stacks[1].values)


def test_state_and_reset() -> None:
    rollouts, advantages = some_rollouts()
    trainer = Trainer(stack_of())
    trainer.update(rollouts, advantages, SLOTS, RATES)
    other = Trainer(stack_of())
    other.load_state_dict(trainer.state_dict())
    other.reset_slot(0)
    assert other.state_dict()["counts"].tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"logprobs": (-1.0,) * 99}, "log-probability a token"),
        ({"prompt_ids": ()}, "prompt has no tokens"),
        ({"member_id": "nobody"}, "'nobody'"),
    ],
)
def test_rollouts_that_do_not_fit_are_refused(change: dict[str, Any], said: str) -> None:
    rollouts, advantages = some_rollouts()
    rollouts[3] = replace(rollouts[3], **change)
    with pytest.raises(ValueError, match=said):
        Trainer(stack_of()).update(rollouts, advantages, SLOTS, RATES)


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
def test_a_member_that_samples_without_finite_numbers_is_named(value: float) -> None:
    rollouts, advantages = some_rollouts()
    rollouts[3] = replace(rollouts[3], member_id="student_1", logprobs=(value,), token_ids=(1,))
    stack = stack_of()
    before = stack.values.clone()
    with pytest.raises(DivergedError, match="student_1 diverged: sampled log-probabilities are not finite"):
        Trainer(stack).update(rollouts, advantages, SLOTS, RATES)
    assert torch.equal(stack.values, before)


def test_a_member_whose_gradients_are_not_finite_is_named_and_nobody_moves() -> None:
    rollouts, advantages = some_rollouts()
    stack = stack_of()
    with torch.no_grad():
        stack.values[SLOTS["student_1"]] *= 1e200
    before, trainer = stack.values.clone(), Trainer(stack)
    with pytest.raises(DivergedError, match="student_1 diverged: gradients are not finite") as caught:
        trainer.update(rollouts, advantages, SLOTS, RATES)
    assert caught.value.members == ("student_1",)
    assert torch.equal(stack.values, before)
    assert trainer.state_dict()["counts"].tolist() == [0, 0, 0, 0]


def test_arguments_that_do_not_fit_are_refused() -> None:
    rollouts, advantages = some_rollouts()
    trainer = Trainer(stack_of())
    with pytest.raises(ValueError, match="14 finite numbers"):
        trainer.update(rollouts, advantages[:3], SLOTS, RATES)
    with pytest.raises(ValueError, match="finite numbers"):
        trainer.update(rollouts, advantages * np.nan, SLOTS, RATES)
    with pytest.raises(ValueError, match="one slot"):
        trainer.update(rollouts, advantages, SLOTS | {"student_0": 0}, RATES)
    with pytest.raises(ValueError, match="clip_low"):
        TrainerConfig(clip_low=1.5)
    with pytest.raises(ValueError, match="kl_coefficient"):
        TrainerConfig(kl_coefficient=-1.0)
    with pytest.raises(ValueError, match="length_constant"):
        TrainerConfig(length_constant=0)
