"""`Trainer`: rollouts of all members in, one update of all of them out.

Owns the update. Advantages come from the caller (`advantages.rollout_advantages`), who stores them; the moments are in
`optimizer`, the objective in `losses`, padding in `batching`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional

from populora_agents.batching import MicroBatch, micro_batches
from populora_agents.config import TrainerConfig
from populora_agents.losses import clipped_objective
from populora_agents.optimizer import NonFiniteGradientError, SlotAdamW
from populora_agents.stack import AdapterStack
from populora_agents.types import DivergedError, MemberUpdate, Rollout, UpdateReport


class Trainer:
    """Learns from rollouts with one fused update of all members that took part."""

    def __init__(self, stack: AdapterStack, config: TrainerConfig | None = None):
        """Train the adapters of `stack`, whose model must be a causal language model of transformers."""
        self._stack = stack
        self._config = config or TrainerConfig()
        self._optimizer = SlotAdamW(stack, self._config.adam)

    def update(
        self,
        rollouts: Sequence[Rollout],
        advantages: ArrayLike,
        slots: Mapping[str, int],
        learning_rates: Mapping[str, float],
    ) -> UpdateReport:
        """Update every member that has something to learn.

        The loss of a member is the mean, per token, of the clipped objective over all its sampled tokens of all roles
        and tasks: a long rollout weighs more than a short one. Losses of members are summed, so that they do not touch
        each other. Rollouts whose advantage is 0 have no gradient and are not computed, but their tokens count in the
        mean. A member that has no others stays bit-identical, moments and count included. Source: docs/paper.md, Policy
        optimisation (token-level, a mean per member, summed over members).

        Args:
            rollouts: Of any members, in any order; may be empty.
            advantages: float [N], one a rollout.
            slots: Slot by member id.
            learning_rates: By member id.

        Returns:
            One entry for each member that has rollouts. `loss` and `clip_fraction` are over all its tokens, `entropy`
            is by the sampler's log-probabilities, `logprob_gap` over the tokens that were computed.

        Raises:
            ValueError: An advantage or a log-probability is missing, an advantage is not finite, or a member has no
                slot of its own.
            DivergedError: A member's gradients, or the log-probabilities it sampled with, are not finite; nothing was
                updated.
        """
        began = time.perf_counter()
        values = _checked(rollouts, advantages, slots, learning_rates)
        members = sorted({rollout.member_id for rollout in rollouts})
        tally = {member: _Tally() for member in members}
        for rollout in rollouts:
            tally[rollout.member_id].count(rollout)
        learning = [place for place, rollout in enumerate(rollouts) if values[place] != 0 and rollout.token_ids]
        active = sorted({rollouts[place].member_id for place in learning})
        self._optimizer.zero_gradients()
        row_slots = [slots[rollout.member_id] for rollout in rollouts]
        for batch in micro_batches(rollouts, learning, row_slots, self._config.micro_batch_tokens):
            self._backward(batch, rollouts, values, row_slots, tally)
        try:
            norms = self._optimizer.step({slots[member]: learning_rates[member] for member in active})
        except NonFiniteGradientError as error:
            raise DivergedError([one for one in active if slots[one] in error.slots], "gradients are") from error
        reports = {member: tally[member].report(norms.get(slots[member], 0.0)) for member in members}
        return UpdateReport(members=reports, seconds=time.perf_counter() - began)

    def reset_slot(self, slot: int) -> None:
        """Forget the optimiser state of one slot: a new member moves in."""
        self._optimizer.reset(slot)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the optimiser's state, without the factors."""
        return self._optimizer.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self._optimizer.load_state_dict(state)

    def _backward(
        self,
        batch: MicroBatch,
        rollouts: Sequence[Rollout],
        advantages: NDArray[np.float64],
        row_slots: Sequence[int],
        tally: Mapping[str, _Tally],
    ) -> None:
        """Add the gradients of one micro-batch, and its sums to the members' tallies."""
        config = self._config
        counts = np.array([len(rollouts[place].token_ids) for place in batch.places])
        tokens_of_member = np.array([tally[rollouts[place].member_id].tokens for place in batch.places])
        sampled = np.concatenate([rollouts[place].logprobs for place in batch.places])
        with self._stack.route([row_slots[place] for place in batch.places]):
            logprobs = self._logprobs(batch)
            loss, metrics = clipped_objective(
                logprobs,
                logprobs.new_tensor(sampled),
                logprobs.new_tensor(np.repeat(advantages[list(batch.places)], counts)),
                clip_low=config.clip_low,
                clip_high=config.clip_high,
                max_ratio=config.max_ratio,
            )
            weights = logprobs.new_tensor(np.repeat(1.0 / tokens_of_member, counts))
            # torch's stubs leave backward untyped.
            (loss * weights).sum().backward()  # type: ignore[no-untyped-call]
        names = np.repeat([rollouts[place].member_id for place in batch.places], counts)
        sums = {"loss": loss.detach(), **metrics}
        for member in sorted(set(names.tolist())):
            own = names == member
            tally[member].add({name: value.cpu().numpy()[own] for name, value in sums.items()})

    def _logprobs(self, batch: MicroBatch) -> Tensor:
        """Return the log-probability of every sampled token, float [N], row by row."""
        device = self._stack.device
        output = self._stack.model(
            input_ids=batch.input_ids.to(device),
            attention_mask=batch.mask.to(device),
            position_ids=batch.position_ids.to(device),
            use_cache=False,
            logits_to_keep=batch.completion_columns + 1,
        )
        # The column before a token predicts it, so the last one predicts nothing here.
        logits = output.logits[:, :-1][batch.sampled.to(device)]
        if logits.dtype in (torch.float16, torch.bfloat16):
            logits = logits.float()
        return -functional.cross_entropy(logits / self._config.temperature, batch.targets.to(device), reduction="none")


@dataclass(slots=True)
class _Tally:
    """Running sums of one member."""

    rollouts: int = 0
    tokens: int = 0
    computed: int = 0
    sampled_logprob: float = 0.0
    loss: float = 0.0
    clipped: float = 0.0
    gap: float = 0.0

    def count(self, rollout: Rollout) -> None:
        self.rollouts += 1
        self.tokens += len(rollout.token_ids)
        self.sampled_logprob += math.fsum(rollout.logprobs)

    def add(self, sums: Mapping[str, NDArray[Any]]) -> None:
        self.computed += len(sums["loss"])
        self.loss += float(sums["loss"].sum(dtype=np.float64))
        self.clipped += float(sums["clipped"].sum(dtype=np.float64))
        self.gap += float(sums["gap"].sum(dtype=np.float64))

    def report(self, grad_norm: float) -> MemberUpdate:
        tokens = max(1, self.tokens)
        return MemberUpdate(
            rollouts=self.rollouts,
            tokens=self.tokens,
            loss=self.loss / tokens,
            grad_norm=grad_norm,
            clip_fraction=self.clipped / tokens,
            entropy=-self.sampled_logprob / tokens,
            logprob_gap=self.gap / max(1, self.computed),
        )


def _checked(
    rollouts: Sequence[Rollout],
    advantages: ArrayLike,
    slots: Mapping[str, int],
    learning_rates: Mapping[str, float],
) -> NDArray[np.float64]:
    """Return the advantages as an array, after checking that everything fits together."""
    values = np.asarray(advantages, dtype=np.float64)
    if values.shape != (len(rollouts),) or not np.isfinite(values).all():
        raise ValueError(f"`advantages` must be {len(rollouts)} finite numbers, got shape {values.shape!r}")
    members = {rollout.member_id for rollout in rollouts}
    homeless = sorted(member for member in members if member not in slots or member not in learning_rates)
    if homeless:
        raise ValueError(f"`slots` and `learning_rates` must name every member, they lack {homeless!r}")
    if len({slots[member] for member in members}) < len(members):
        raise ValueError("`slots` puts two members into one slot")
    for place, rollout in enumerate(rollouts):
        if len(rollout.logprobs) != len(rollout.token_ids):
            raise ValueError(f"rollout {place}: expected one log-probability a token")
        if not rollout.prompt_ids:
            raise ValueError(f"rollout {place}: its prompt has no tokens, nothing predicts the first one")
    diverged = {rollout.member_id for rollout in rollouts if not np.isfinite(rollout.logprobs).all()}
    if diverged:
        raise DivergedError(sorted(diverged), "sampled log-probabilities are")
    return values
