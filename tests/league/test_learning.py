"""What learns: rollouts of played rounds, settings of the update, and its numbers by side."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from scripted import make_base
from test_rows import played, rows_of

from league.config import RunConfig, resolve
from league.learning import (
    learning_rate,
    lora_config,
    make_trainer,
    rollouts_of,
    trainer_config,
    update_metrics,
)
from league.options import LearnOptions, PlayOptions
from league.types import Side
from populora_agents.config import NANO, AdamConfig, TrainerConfig
from populora_agents.peft_trainer import PeftTrainer
from populora_agents.stack import AdapterStack
from populora_agents.trainer import Trainer
from populora_agents.types import MemberUpdate, UpdateReport

__all__ = ["played"]


def test_trainer_rollouts_are_the_rows(played: list[Any]) -> None:
    _, rollouts = rows_of(played)
    learnt = dict(pair for one in played for pair in rollouts_of(one))
    assert list(learnt) == [row["rollout_id"] for row in rollouts]
    for row in rollouts:
        rollout = learnt[row["rollout_id"]]
        assert (rollout.member_id, rollout.reward) == (row["member_id"], row["reward"])
        assert (rollout.group_id, list(rollout.token_ids)) == (row["group_id"], row["completion_ids"])
        assert rollout.batch == f"{row['role']}/{row['task']}"


def test_settings_of_the_update_are_those_of_the_configuration() -> None:
    adam = AdamConfig(beta1=0.5, max_grad_norm=2.0)
    learn = LearnOptions(
        lora_rank=3,
        alpha=9.0,
        targets=("q_proj",),
        teacher_learning_rate=0.1,
        student_learning_rate=0.2,
        clip_low=0.1,
        clip_high=0.4,
        adam=adam,
    )
    config = resolve(RunConfig(learn=learn, play=PlayOptions(temperature=0.7)), NANO, {"copy_parent": True})
    lora, trainer = lora_config(config), trainer_config(config)
    assert (lora.lora_rank, lora.alpha, lora.scaling, lora.targets) == (3, 9.0, 3.0, ("q_proj",))
    assert (trainer.clip_low, trainer.clip_high, trainer.adam) == (0.1, 0.4, adam)
    assert [learning_rate(config, side) for side in (Side.TEACHER, Side.STUDENT)] == [0.1, 0.2]


def test_numbers_of_an_update_are_means_over_the_members_of_a_side() -> None:
    def update(tokens: int, loss: float) -> MemberUpdate:
        return MemberUpdate(
            rollouts=1,
            tokens=tokens,
            loss=loss,
            grad_norm=1.0,
            clip_fraction=0.0,
            entropy=2.0 if loss > 1 else None,
            entropy_estimate=3.0,
            logprob_gap=None,
            extra={"surprise": loss},
        )

    members = {"student_0": update(10, 1.0), "student_12": update(30, 4.0)}
    metrics = update_metrics(UpdateReport(members=members, seconds=1.0))
    assert metrics["student/tokens"] == 20
    assert metrics["student/loss"] == pytest.approx(2.5)
    assert metrics["student/surprise"] == pytest.approx(2.5)
    assert metrics["student/entropy"] == 2.0  # of the one who has it
    assert set(metrics) == {
        f"student/{name}"
        for name in ("tokens", "loss", "grad_norm", "clip_fraction", "entropy", "entropy_estimate", "surprise")
    }


@pytest.mark.parametrize(("estimator", "length"), [("dr_grpo", "constant"), ("rloo", "token_mean")])
def test_length_handling_goes_with_the_estimator_unless_it_is_said(estimator: Any, length: str) -> None:
    config = resolve(RunConfig(learn=LearnOptions(estimator=estimator)), NANO, {"copy_parent": True})
    assert trainer_config(config).estimator == estimator
    assert trainer_config(config).length == length
    assert trainer_config(config).length_constant == max(NANO.max_new_tokens_proposal, NANO.max_new_tokens_answer)
    said = LearnOptions(estimator=estimator, length="sequence_mean", length_constant=7)
    trainer = trainer_config(resolve(RunConfig(learn=said), NANO, {"copy_parent": True}))
    assert (trainer.length, trainer.length_constant) == ("sequence_mean", 7)


def test_every_setting_of_the_update_can_be_said() -> None:
    learn = LearnOptions(kl_coefficient=0.5, shared_row_tokens=9, gradient_checkpointing=True, micro_batch_tokens=7)
    trainer = trainer_config(resolve(RunConfig(learn=learn), NANO, {"copy_parent": True}))
    assert (trainer.kl_coefficient, trainer.shared_row_tokens) == (0.5, 9)
    assert (trainer.gradient_checkpointing, trainer.micro_batch_tokens) == (True, 7)
    assert {field.name for field in fields(TrainerConfig)} - {"temperature"} <= {
        field.name for field in fields(LearnOptions)
    }


@pytest.mark.parametrize(("name", "kind"), [("fused", Trainer), ("peft", PeftTrainer)])
def test_trainers_by_name(name: Any, kind: type) -> None:
    config = resolve(RunConfig(learn=LearnOptions(trainer=name, lora_rank=2)), NANO, {"copy_parent": True})
    stack = AdapterStack(make_base().model, lora_config(config), 1)
    assert type(make_trainer(config, stack)) is kind
