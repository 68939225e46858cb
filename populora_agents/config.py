"""Settings of adapters, optimiser and update, and the presets that go with a base model.

Owns values and their ranges. Imports nothing heavy, so that a command can read its flags before torch is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from populora_env.config import StyleName

SEVEN_MAPS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
"""The linear maps of a Llama- or Qwen-like block."""

EstimatorName = Literal["reinforce_pp_baseline", "grpo", "rloo", "dr_grpo"]
"""How rewards become advantages; see `advantages`."""

LengthHandling = Literal["token_mean", "sequence_mean", "constant"]
"""What a token counts in its member's loss; see `lesson.token_weights`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraConfig:
    """What is adapted, and how strongly."""

    lora_rank: int = 8
    """r, >= 1."""
    alpha: float = 16.0
    """The delta is scaled by alpha / r, as PEFT does; > 0."""
    targets: tuple[str, ...] = SEVEN_MAPS
    """Last names (or full paths) of the nn.Linear modules to adapt; at least one."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.lora_rank < 1:
            raise ValueError(f"`lora_rank` must be at least 1, got {self.lora_rank!r}")
        if not self.alpha > 0:
            raise ValueError(f"`alpha` must be above 0, got {self.alpha!r}")
        if not self.targets:
            raise ValueError("`targets` must name at least one module, got none")

    @property
    def scaling(self) -> float:
        """Factor of B @ A."""
        return self.alpha / self.lora_rank


@dataclass(frozen=True, slots=True, kw_only=True)
class AdamConfig:
    """Settings of AdamW, shared by all members."""

    beta1: float = 0.9
    """Decay of the first moment, in [0, 1)."""
    beta2: float = 0.999
    """Decay of the second moment, in [0, 1)."""
    eps: float = 1e-8
    """Added to the root of the second moment, > 0."""
    weight_decay: float = 0.0
    """Decoupled, times the learning rate; >= 0."""
    max_grad_norm: float = 1.0
    """A member's gradient is scaled down to this norm, over all its factors; > 0, inf switches it off."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not (0 <= self.beta1 < 1 and 0 <= self.beta2 < 1):
            raise ValueError(f"`beta1` and `beta2` must lie in [0, 1), got {self.beta1!r} and {self.beta2!r}")
        if not (0 < self.eps < float("inf") and 0 <= self.weight_decay < float("inf") and self.max_grad_norm > 0):
            raise ValueError(
                "expected finite `eps` > 0 and `weight_decay` >= 0, and `max_grad_norm` > 0, got "
                f"{self.eps!r}, {self.weight_decay!r} and {self.max_grad_norm!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerConfig:
    """Settings of the update, shared by all members."""

    estimator: EstimatorName = "reinforce_pp_baseline"
    """How rewards become advantages."""
    length: LengthHandling = "token_mean"
    """A member's loss is its mean over tokens, the mean over rollouts of their means, or their sums divided by
    `length_constant`."""
    length_constant: int = 1024
    """Tokens that a rollout's sum is divided by under `constant`, >= 1: the longest completion allowed."""
    clip_low: float = 0.2
    """The importance ratio is clipped below 1 - clip_low; in [0, 1)."""
    clip_high: float = 0.28
    """... and above 1 + clip_high; >= 0."""
    max_ratio: float = 10.0
    """Bound on the importance ratio, > 1 + clip_high."""
    kl_coefficient: float = 0.0
    """Of the divergence from the bare base in the loss, >= 0; above 0 it costs another forward."""
    micro_batch_tokens: int = 4096
    """Most tokens in one forward and backward, padding included, >= 1; the result does not depend on it."""
    shared_row_tokens: int = 2048
    """Rollouts of one prompt share a row of at most so many tokens and compute the prompt once, where the model allows
    it; >= 0, 0 switches it off; the result does not depend on it."""
    gradient_checkpointing: bool = False
    """Compute a block's activations again in the backward instead of keeping them: less memory, more time."""
    adam: AdamConfig = field(default_factory=AdamConfig)
    """The optimiser."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not (0 <= self.clip_low < 1 and self.clip_high >= 0 and self.max_ratio > 1 + self.clip_high):
            raise ValueError(
                "expected `clip_low` in [0, 1), `clip_high` >= 0 and `max_ratio` > 1 + `clip_high`, got "
                f"{self.clip_low!r}, {self.clip_high!r} and {self.max_ratio!r}"
            )
        if not 0 <= self.kl_coefficient < float("inf"):
            raise ValueError(f"expected a finite `kl_coefficient` >= 0, got {self.kl_coefficient!r}")
        if self.micro_batch_tokens < 1 or self.shared_row_tokens < 0 or self.length_constant < 1:
            raise ValueError(
                "expected `micro_batch_tokens` >= 1, `shared_row_tokens` >= 0 and `length_constant` >= 1, got "
                f"{self.micro_batch_tokens!r}, {self.shared_row_tokens!r} and {self.length_constant!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """The settings that go with one base; large and tiny models differ by orders of magnitude."""

    style: StyleName = "chat"
    """How prompts are written."""
    references: int = 6
    """Earlier problems shown to a proposer (K)."""
    proposals: int = 4
    """Proposals from one set of references (P)."""
    attempts: int = 8
    """Attempts at one problem (G)."""
    induction_inputs: int = 10
    """Inputs of an induction proposal."""
    lora_rank: int = 32
    """r of every member."""
    alpha: float = 64.0
    """Deltas are scaled by alpha / r."""
    teacher_learning_rate: float = 1e-5
    """Of proposers."""
    student_learning_rate: float = 1e-5
    """Of solvers."""
    max_new_tokens_proposal: int = 2048
    """Longest proposal, in tokens."""
    max_new_tokens_answer: int = 2048
    """Longest answer, in tokens."""
    temperature: float = 1.0
    """Of sampling."""
    top_p: float = 1.0
    """Probability of the tokens that are drawn from."""
    evolve_every: int = 10
    """Steps between two evolutions (k)."""
    steps: int = 200
    """Steps of a run."""

    @property
    def lora(self) -> LoraConfig:
        """Rank, alpha and targets of every member."""
        return LoraConfig(lora_rank=self.lora_rank, alpha=self.alpha)


LARGE = Preset()
"""For bases of billions of parameters (the paper's setting)."""

SMALL = Preset(
    style="few_shot",
    references=3,
    attempts=4,
    induction_inputs=4,
    lora_rank=16,
    alpha=32.0,
    teacher_learning_rate=5e-5,
    student_learning_rate=5e-5,
    max_new_tokens_proposal=192,
    max_new_tokens_answer=128,
    temperature=0.8,
    top_p=0.95,
    steps=100,
)
"""For instruction-tuned bases of half a billion to three billion parameters."""

NANO = Preset(
    style="compact",
    references=2,
    attempts=4,
    induction_inputs=4,
    lora_rank=8,
    alpha=16.0,
    teacher_learning_rate=2e-3,
    student_learning_rate=1e-3,
    max_new_tokens_proposal=128,
    max_new_tokens_answer=96,
    evolve_every=5,
    steps=32,
)
"""For nano, one million parameters."""

PRESETS = {"large": LARGE, "small": SMALL, "nano": NANO}
"""Presets by name; a model folder may name its own as `populora_preset` in `config.json`."""
