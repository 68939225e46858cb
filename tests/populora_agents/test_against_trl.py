"""GRPO and Dr. GRPO against TRL on the same numbers: advantages, and the gradient of the loss. Needs TRL."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_bases import make_model, make_tokenizer, random_adapter

from populora_agents.advantages import dr_grpo, grpo
from populora_agents.config import AdamConfig, LoraConfig, TrainerConfig
from populora_agents.stack import AdapterStack
from populora_agents.trainer import Trainer
from populora_agents.types import Rollout

trl = pytest.importorskip("trl", reason="TRL is not installed")
datasets = pytest.importorskip("datasets", reason="datasets is not installed")

REWARDS = [1.0, -0.5, -1.0, 1.0, 1.0, 1.0, 0.25, -0.5]
"""Two groups of four."""
LENGTHS = [3, 1, 4, 2, 2, 5, 1, 3]
CONFIG = LoraConfig(lora_rank=4, alpha=8.0)


def trl_trainer(model: Any, folder: Path, **settings: Any) -> Any:
    """Return TRL's trainer of `model`, of groups of four, that has not trained."""
    arguments = trl.GRPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=6,
        use_cpu=True,
        bf16=False,
        report_to=[],
        epsilon=0.2,
        epsilon_high=0.28,
        delta=10.0,
        use_bias_correction_kl=False,
        **settings,
    )
    return trl.GRPOTrainer(
        model=model,
        reward_funcs=lambda completions, **_: REWARDS[: len(completions)],
        args=arguments,
        train_dataset=datasets.Dataset.from_list([{"prompt": "ab"}, {"prompt": "cd"}]),
        processing_class=make_tokenizer(),
    )


@pytest.mark.parametrize(("scale", "estimator"), [("group", grpo), ("none", dr_grpo)])
def test_advantages_are_trls(tmp_path: Path, scale: str, estimator: Any) -> None:
    theirs = trl_trainer(make_model(), tmp_path, scale_rewards=scale)
    inputs = theirs._generate_and_score_completions([{"prompt": "ab"}] * 4 + [{"prompt": "cd"}] * 4)
    mine = estimator(REWARDS, ["ab"] * 4 + ["cd"] * 4, ["x"] * 8)
    np.testing.assert_allclose(inputs["advantages"].numpy(), mine, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("beta", [0.0, 0.3])
@pytest.mark.parametrize(
    ("loss_type", "length"), [("grpo", "sequence_mean"), ("bnpo", "token_mean"), ("dr_grpo", "constant")]
)
def test_loss_and_its_gradient_are_trls(tmp_path: Path, loss_type: str, length: Any, beta: float) -> None:
    """TRL differentiates the merged weight W: dL/dB = scaling dL/dW A^T, dL/dA = scaling B^T dL/dW."""
    stack = AdapterStack(make_model(), CONFIG, 1)
    adapter = random_adapter(stack.model, CONFIG, 3)
    stack.load(0, adapter)
    generator = np.random.default_rng(0)
    prompts = [tuple(generator.integers(0, 256, 3).tolist()) for _ in range(2)]
    rollouts = [
        Rollout(
            member_id="m",
            batch="b",
            group_id=str(place // 4),
            prompt_ids=prompts[place // 4],
            token_ids=tuple(generator.integers(0, 256, length_).tolist()),
            logprobs=tuple((-math.log(259) + generator.normal(size=length_)).tolist()),
            reward=reward,
        )
        for place, (reward, length_) in enumerate(zip(REWARDS, LENGTHS, strict=True))
    ]
    advantages = grpo(REWARDS, [rollout.group_id for rollout in rollouts], ["x"] * 8)
    config = TrainerConfig(
        length=length, length_constant=6, kl_coefficient=beta, adam=AdamConfig(max_grad_norm=float("inf"))
    )

    merged = make_model()
    with torch.no_grad():
        for path, pair in adapter.items():
            merged.get_submodule(path).weight += CONFIG.scaling * pair.B @ pair.A  # type: ignore[operator]
    theirs = trl_trainer(merged.requires_grad_(True), tmp_path, loss_type=loss_type)
    theirs.beta = beta  # later, since TRL would fetch a reference model of its own
    columns = max(LENGTHS)
    tokens, mask, old = torch.zeros(8, columns, dtype=torch.int64), torch.zeros(8, columns), torch.zeros(8, columns)
    for row, rollout in enumerate(rollouts):
        tokens[row, : LENGTHS[row]], mask[row, : LENGTHS[row]] = torch.tensor(rollout.token_ids), 1
        old[row, : LENGTHS[row]] = torch.tensor(rollout.logprobs)
    inputs = {
        "prompt_ids": torch.tensor([rollout.prompt_ids for rollout in rollouts]),
        "prompt_mask": torch.ones(8, 3, dtype=torch.int64),
        "completion_ids": tokens,
        "completion_mask": mask.to(torch.int64),
        "advantages": torch.tensor(advantages, dtype=torch.float32),
        "old_per_token_logps": old,
    }
    if beta:
        with torch.no_grad():
            ids = torch.cat([inputs["prompt_ids"], tokens], dim=1)
            rows = make_model()(input_ids=ids).logits[:, 2:-1].log_softmax(-1)
            inputs["ref_per_token_logps"] = rows.gather(2, tokens[:, :, None])[:, :, 0]
    merged.eval()  # TRL divides by its accumulation steps only in training
    loss = theirs._compute_loss(merged, inputs)
    loss.backward()

    report = Trainer(stack, config).update(rollouts, advantages, {"m": 0}, {"m": 1e-3}).members["m"]
    assert report.loss == pytest.approx(loss.item(), rel=1e-4, abs=1e-5)
    for path, layer in stack._layers.items():
        weight: Any = merged.get_submodule(path).weight.grad
        down, up = (factor.grad[0] for factor in layer.factors if factor.grad is not None)
        expected_down = CONFIG.scaling * adapter[path].B.T @ weight
        expected_up = CONFIG.scaling * weight @ adapter[path].A.T
        torch.testing.assert_close(down, expected_down, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(up, expected_up, rtol=1e-3, atol=1e-5)
