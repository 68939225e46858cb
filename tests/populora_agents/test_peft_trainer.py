"""The two trainers against each other: the same weights, moments and reports, step after step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tiny_rollouts import DOUBLE, RATES, SLOTS, families, some_rollouts, stack_of

from populora_agents.config import AdamConfig, TrainerConfig
from populora_agents.peft_trainer import PeftTrainer
from populora_agents.trainer import Trainer
from populora_agents.types import DivergedError


@pytest.mark.parametrize(
    "config",
    [
        TrainerConfig(),
        TrainerConfig(length="sequence_mean", kl_coefficient=0.1, adam=AdamConfig(weight_decay=0.01)),
        TrainerConfig(length="constant", length_constant=8, micro_batch_tokens=40),
        TrainerConfig(gradient_checkpointing=True, adam=AdamConfig(max_grad_norm=float("inf"))),
    ],
    ids=["default", "kl", "constant", "checkpointing"],
)
def test_three_steps_of_both_trainers_agree(config: TrainerConfig) -> None:
    fused_stack, peft_stack = stack_of(), stack_of()
    fused, plain = Trainer(fused_stack, config), PeftTrainer(peft_stack, config)
    for step in range(3):
        rollouts, advantages = families(step)
        rollouts = [replace(one, temperature=(0.7, 1.0, 1.3)[place % 3]) for place, one in enumerate(rollouts)]
        if step == 1:  # somebody rests, somebody moves in
            advantages = np.where([one.member_id == "student_0" for one in rollouts], 0.0, advantages)
            for trainer, stack in ((fused, fused_stack), (plain, peft_stack)):
                trainer.reset_slot(0)
                stack.load(0, stack.adapter(3))
        mine = fused.update(rollouts, advantages, SLOTS, RATES)
        theirs = plain.update(rollouts, advantages, SLOTS, RATES)
        torch.testing.assert_close(fused_stack.values, peft_stack.values, rtol=0, atol=1e-10)
        for name, moments in fused.state_dict().items():
            torch.testing.assert_close(plain.state_dict()[name], moments, rtol=0, atol=1e-10)
        assert set(mine.members) == set(theirs.members)
        for member, update in mine.members.items():
            for name in ("loss", "grad_norm", "clip_fraction", "entropy", "entropy_estimate", "logprob_gap", "kl"):
                assert getattr(theirs.members[member], name) == pytest.approx(getattr(update, name), abs=1e-10)


def test_float32_trainers_agree_to_1e_5() -> None:
    fused_stack, peft_stack = stack_of(torch.float32), stack_of(torch.float32)
    trainers: list[Any] = [Trainer(fused_stack), PeftTrainer(peft_stack)]
    rates = dict.fromkeys(RATES, 1e-3)
    for step in range(3):
        rollouts, advantages = some_rollouts(seed=step)
        for trainer in trainers:
            trainer.update(rollouts, advantages, SLOTS, rates)
    # Adam divides by the root of the second moment, so that numbers whose gradient is all rounding may differ by more.
    far = (fused_stack.values - peft_stack.values).abs() > 1e-5
    assert far.double().mean() < 1e-3


def test_either_goes_on_where_the_other_stopped() -> None:
    rollouts, advantages = some_rollouts()
    first, second = stack_of(), stack_of()
    fused, plain = Trainer(first), PeftTrainer(second)
    fused.update(rollouts, advantages, SLOTS, RATES)
    second.values.copy_(first.values)
    plain.load_state_dict(fused.state_dict())
    for trainer in (fused, plain):
        trainer.update(rollouts, -advantages, SLOTS, RATES)
    torch.testing.assert_close(second.values, first.values, rtol=0, atol=1e-10)
    back = Trainer(stack_of())
    back.load_state_dict(plain.state_dict())
    assert back.state_dict()["counts"].tolist() == [2, 2, 2, 0]


@pytest.mark.parametrize("trainer", [Trainer, PeftTrainer])
def test_moments_of_another_stack_are_refused(trainer: type[Trainer] | type[PeftTrainer]) -> None:
    state = Trainer(stack_of()).state_dict()
    larger = {**state, "first": state["first"].repeat(2, 1), "second": state["second"].repeat(2, 1)}
    with pytest.raises(ValueError, match="another stack"):
        trainer(stack_of()).load_state_dict(larger)


@pytest.mark.parametrize("trainer", [Trainer, PeftTrainer])
def test_factors_that_are_not_finite_name_their_member(trainer: type[Trainer] | type[PeftTrainer]) -> None:
    rollouts, advantages = some_rollouts()
    stack = stack_of()
    stack.values[SLOTS["student_1"], 0] = float("nan")
    with pytest.raises(DivergedError, match="student_1"):
        trainer(stack).update(rollouts, advantages, SLOTS, RATES)


def test_members_of_numbers_that_overflow_are_named_and_nobody_moves() -> None:
    rollouts, advantages = some_rollouts()
    stack = stack_of()
    stack.values[SLOTS["student_1"]] *= 1e200
    before = stack.values.clone()
    with pytest.raises(DivergedError, match="student_1 diverged: gradients are not finite"):
        PeftTrainer(stack).update(rollouts, advantages, SLOTS, RATES)
    assert torch.equal(stack.values, before)


def test_nothing_to_learn_is_legal_and_the_global_generator_is_left_alone() -> None:
    stack = stack_of()
    trainer = PeftTrainer(stack)
    state = torch.get_rng_state()
    assert trainer.update([], [], SLOTS, RATES).members == {}
    rollouts, advantages = some_rollouts()
    silent = [replace(rollout, token_ids=(), logprobs=()) for rollout in rollouts]
    report = trainer.update(silent, advantages, SLOTS, RATES)
    assert all(update.grad_norm == 0.0 and update.entropy is None for update in report.members.values())
    trainer.update(rollouts, advantages, SLOTS, RATES)
    assert torch.equal(torch.get_rng_state(), state)
    assert stack.values.dtype == DOUBLE
    assert trainer.advantages(rollouts).tolist() == Trainer(stack).advantages(rollouts).tolist()
