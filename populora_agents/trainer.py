"""`Trainer`: rollouts of all members in, one update of all of them out.

Owns the update. The moments are in `optimizer`, the objective in `losses`, what a rollout counts in `lesson`, padding
in `batching`. `peft_trainer` learns the same in a slow and plain way.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from populora_agents.advantages import ESTIMATORS, Estimator, rollout_advantages
from populora_agents.batching import MicroBatch
from populora_agents.checkpointing import checkpointed_blocks
from populora_agents.config import TrainerConfig
from populora_agents.lesson import Lesson
from populora_agents.losses import Objective, clipped_objective
from populora_agents.optimizer import NonFiniteGradientError, SlotAdamW
from populora_agents.scoring import Scores, can_share_rows, score
from populora_agents.stack import AdapterStack
from populora_agents.types import DivergedError, Rollout, UpdateReport


class Trainer:
    """Learns from rollouts with one fused update of all members that took part; a `types.UpdateRule`."""

    def __init__(
        self,
        stack: AdapterStack,
        config: TrainerConfig | None = None,
        *,
        estimator: Estimator | None = None,
        objective: Objective | None = None,
    ):
        """Train the adapters of `stack`, whose model must be a causal language model of transformers.

        Args:
            stack: Whose factors learn.
            config: None is the default.
            estimator: How rewards become advantages; None is the one that `config` names.
            objective: What is minimised, per token; None is `losses.clipped_objective` with the bounds of `config`.
        """
        self._stack = stack
        self._config = config or TrainerConfig()
        self._estimator = estimator or ESTIMATORS[self._config.estimator]
        self._objective = objective or configured_objective(self._config)
        self._optimizer = SlotAdamW(stack, self._config.adam)
        self._shared_row_tokens = self._config.shared_row_tokens if can_share_rows(stack.model) else 0

    def advantages(self, rollouts: Sequence[Rollout]) -> NDArray[np.float64]:
        """Return one advantage a rollout, [N]."""
        return rollout_advantages(rollouts, self._estimator)

    def update(
        self,
        rollouts: Sequence[Rollout],
        advantages: ArrayLike,
        slots: Mapping[str, int],
        learning_rates: Mapping[str, float],
    ) -> UpdateReport:
        """Update every member that has something to learn.

        Losses of members are summed, so that they do not touch each other; within a member tokens are weighed by
        `lesson.token_weights`. Rollouts whose advantage is 0 have no gradient (KL off) and are not computed, but count
        in the means. A member that has no others stays bit-identical, moments and count included. Source:
        docs/paper.md, Policy optimisation (token-level, a mean per member, summed over members).

        Args:
            rollouts: Of any members, in any order; may be empty.
            advantages: float [N], one a rollout.
            slots: Slot by member id.
            learning_rates: By member id.

        Returns:
            One entry for each member that has rollouts.

        Raises:
            ValueError: An advantage or a log-probability is missing, an advantage is not finite, or a member has no
                slot of its own.
            DivergedError: A member's gradients, or the log-probabilities it sampled with, are not finite; nothing was
                updated.
        """
        began = time.perf_counter()
        config, stack = self._config, self._stack
        lesson = Lesson(rollouts, advantages, slots, learning_rates, config)
        active = lesson.active
        self._optimizer.zero_gradients()
        with checkpointed_blocks(stack.model) if config.gradient_checkpointing else nullcontext():
            for batch in lesson.micro_batches(config.micro_batch_tokens, shared_row_tokens=self._shared_row_tokens):
                self._backward(lesson, batch)
        try:
            norms = self._optimizer.step({slots[member]: learning_rates[member] for member in active})
        except NonFiniteGradientError as error:
            raise DivergedError([one for one in active if slots[one] in error.slots], "gradients are") from error
        members = lesson.report({member: norms[slots[member]] for member in active})
        return UpdateReport(members=members, seconds=time.perf_counter() - began)

    def reset_slot(self, slot: int) -> None:
        """Forget the optimiser state of one slot: a new member moves in."""
        self._optimizer.reset(slot)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the optimiser's state, without the factors."""
        return self._optimizer.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self._optimizer.load_state_dict(state)

    def _backward(self, lesson: Lesson, batch: MicroBatch) -> None:
        """Add the gradients of one micro-batch."""
        reference = None
        if self._config.kl_coefficient:
            with torch.no_grad():  # outside of a route the model is the bare base
                reference = self._score(batch).logprobs
        with self._stack.route(batch.row_slots):
            loss = lesson.loss(batch, self._score(batch), reference, self._objective)
            # torch's stubs leave backward untyped.
            loss.backward()  # type: ignore[no-untyped-call]

    def _score(self, batch: MicroBatch) -> Scores:
        return score(self._stack.model, batch, device=self._stack.device)


def configured_objective(config: TrainerConfig) -> Objective:
    """Return the clipped objective with the bounds of `config`."""
    return partial(clipped_objective, clip_low=config.clip_low, clip_high=config.clip_high, max_ratio=config.max_ratio)
