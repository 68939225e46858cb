"""Settings: the presets' numbers, and ranges."""

from __future__ import annotations

from typing import Any

import pytest

from populora_agents.config import LARGE, NANO, SMALL, AdamConfig


def test_presets_are_the_documented_ones() -> None:
    assert (NANO.style, NANO.references, NANO.proposals, NANO.attempts) == ("compact", 2, 4, 4)
    assert (NANO.lora.lora_rank, NANO.lora.alpha, NANO.lora.scaling) == (8, 16.0, 2.0)
    assert (NANO.teacher_learning_rate, NANO.student_learning_rate) == (2e-3, 1e-3)
    assert (NANO.max_new_tokens_proposal, NANO.max_new_tokens_answer) == (128, 96)
    assert (SMALL.style, SMALL.references, SMALL.attempts, SMALL.induction_inputs) == ("few_shot", 3, 4, 4)
    assert (SMALL.temperature, SMALL.top_p) == (0.8, 0.95)
    assert {(preset.temperature, preset.top_p) for preset in (NANO, LARGE)} == {(1.0, 1.0)}
    assert (LARGE.style, LARGE.references, LARGE.proposals, LARGE.attempts) == ("chat", 6, 4, 8)
    assert (LARGE.lora.lora_rank, LARGE.lora.alpha) == (32, 64.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"beta1": 1.0},
        {"beta2": -0.1},
        {"eps": 0.0},
        {"eps": float("inf")},
        {"weight_decay": float("nan")},
        {"max_grad_norm": 0.0},
    ],
)
def test_adam_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"`(beta1|eps)`"):
        AdamConfig(**wrong)


def test_no_clipping_is_an_infinite_norm() -> None:
    assert AdamConfig(max_grad_norm=float("inf")).max_grad_norm == float("inf")
