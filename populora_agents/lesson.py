"""`Lesson`: the rollouts of one update, checked and weighed, and what was seen while learning from them.

Owns what a token counts, which rollouts have to be computed, and the sums behind a report. Owns neither model nor
optimiser, so that every trainer learns from the same lesson.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from populora_agents.batching import MicroBatch, micro_batches
from populora_agents.config import LengthHandling, TrainerConfig
from populora_agents.losses import Objective, kl_k3
from populora_agents.scoring import Scores
from populora_agents.types import DivergedError, MemberUpdate, Rollout

_KNOWN = ("loss", "computed", "clipped", "entropy", "gap", "kl")


class Lesson:
    """What one update learns from. Members are counted in the order of their ids."""

    def __init__(
        self,
        rollouts: Sequence[Rollout],
        advantages: ArrayLike,
        slots: Mapping[str, int],
        learning_rates: Mapping[str, float],
        config: TrainerConfig,
    ):
        """Check that everything fits together.

        Raises:
            ValueError: An advantage or a log-probability is missing, an advantage is not finite, a temperature is not
                above 0, or a member has no slot of its own.
            DivergedError: Log-probabilities that a member sampled with are not finite.
        """
        self.members = tuple(sorted({rollout.member_id for rollout in rollouts}))
        self._advantages = _checked(rollouts, advantages, slots, learning_rates)
        self._rollouts = rollouts
        self._slots = [slots[rollout.member_id] for rollout in rollouts]
        number = {member: place for place, member in enumerate(self.members)}
        self._numbers = np.array([number[rollout.member_id] for rollout in rollouts], dtype=np.int64)
        self._lengths = np.array([len(rollout.token_ids) for rollout in rollouts], dtype=np.int64)
        self._weights = token_weights(self._lengths, self._numbers, config.length, config.length_constant)
        self._kl_coefficient = config.kl_coefficient
        teaches = (self._lengths > 0) & ((self._advantages != 0) | (config.kl_coefficient > 0))
        self._places: list[int] = np.flatnonzero(teaches).tolist()
        self._sums: dict[str, Tensor] = {}

    @property
    def active(self) -> tuple[str, ...]:
        """The members that have something to learn."""
        return tuple(sorted({self._rollouts[place].member_id for place in self._places}))

    def micro_batches(
        self, max_tokens: int, *, shared_row_tokens: int, member: str | None = None
    ) -> Iterator[MicroBatch]:
        """Yield the rollouts that have to be computed, of all members or of one."""
        places = [place for place in self._places if member in (None, self._rollouts[place].member_id)]
        return micro_batches(self._rollouts, places, self._slots, max_tokens, shared_row_tokens=shared_row_tokens)

    def loss(self, batch: MicroBatch, scores: Scores, reference: Tensor | None, objective: Objective) -> Tensor:
        """Return what to minimise, the sum over members of their losses' part in this micro-batch; note what it shows.

        Args:
            batch: One of `micro_batches`.
            scores: Of its tokens.
            reference: float [N]: their log-probabilities under the bare base, None when KL is off.
            objective: Per token.
        """
        places = list(batch.places)
        counts = self._lengths[places]
        like = scores.logprobs
        sampled = like.new_tensor(np.concatenate([self._rollouts[place].logprobs for place in places]))
        loss, metrics = objective(like, sampled, like.new_tensor(np.repeat(self._advantages[places], counts)))
        seen = {**metrics, "entropy": scores.entropies, "gap": (like.detach() - sampled).abs()}
        if reference is not None:
            divergence = kl_k3(like, reference)
            loss = loss + self._kl_coefficient * divergence
            seen["kl"] = divergence.detach()
        loss = loss * like.new_tensor(np.repeat(self._weights[places], counts))
        members = torch.from_numpy(np.repeat(self._numbers[places], counts)).to(like.device)
        self._note({**seen, "loss": loss.detach(), "computed": torch.ones_like(loss)}, members)
        return loss.sum()

    def report(self, grad_norms: Mapping[str, float]) -> dict[str, MemberUpdate]:
        """Return what each member saw; `grad_norms` names those that moved."""
        sums = {name: total.cpu().tolist() for name, total in self._sums.items()}
        return {
            member: self._member(number, {name: total[number] for name, total in sums.items()}, grad_norms)
            for number, member in enumerate(self.members)
        }

    def _note(self, seen: Mapping[str, Tensor], members: Tensor) -> None:
        """Add each token's numbers to its member's sums, on the device, without waiting for it."""
        for name, values in seen.items():
            if name not in self._sums:
                self._sums[name] = torch.zeros(len(self.members), dtype=torch.float64, device=values.device)
            self._sums[name].index_add_(0, members, values.to(torch.float64))

    def _member(self, number: int, sums: Mapping[str, float], grad_norms: Mapping[str, float]) -> MemberUpdate:
        own: list[int] = np.flatnonzero(self._numbers == number).tolist()
        tokens, computed = int(self._lengths[own].sum()), sums.get("computed", 0.0)
        means = {name: total / computed for name, total in sums.items()} if computed else {}
        sampled = math.fsum(logprob for place in own for logprob in self._rollouts[place].logprobs)
        return MemberUpdate(
            rollouts=len(own),
            tokens=tokens,
            loss=sums.get("loss", 0.0),
            grad_norm=grad_norms.get(self.members[number], 0.0),
            clip_fraction=sums.get("clipped", 0.0) / max(1, tokens),
            entropy=means.get("entropy"),
            entropy_estimate=-sampled / max(1, tokens),
            logprob_gap=means.get("gap"),
            kl=means.get("kl"),
            extra={name: mean for name, mean in means.items() if name not in _KNOWN},
        )


def token_weights(
    lengths: NDArray[np.int64], members: NDArray[np.int64], length: LengthHandling, constant: int
) -> NDArray[np.float64]:
    """Return what each token of a rollout counts in its member's loss.

    `token_mean`: 1 / (tokens of the member), a long rollout weighs more than a short one; `sequence_mean`:
    1 / (rollouts of the member x tokens of the rollout), each rollout weighs the same; `constant`: 1 / (rollouts of the
    member x `constant`), each token weighs the same however many there are.

    Source: the first is DAPO's (Yu et al., 2025), a member's whole update taken as the batch; the second GRPO's (Shao
    et al., 2024), the third Dr. GRPO's (Liu et al., 2025).

    Args:
        lengths: int [N]: tokens of each rollout, >= 0.
        members: int [N]: the rollout's member, 0, 1, ...
        length: Which.
        constant: Tokens, >= 1.

    Returns:
        float64 [N], 0 where a rollout has no tokens.
    """
    rollouts = np.bincount(members)[members]
    tokens = np.bincount(members, weights=lengths)[members]
    divisors = {"token_mean": tokens, "sequence_mean": rollouts * lengths, "constant": rollouts * constant}[length]
    return np.where(lengths > 0, 1.0 / np.maximum(divisors, 1), 0.0)


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
        if not 0 < rollout.temperature < float("inf"):
            raise ValueError(f"rollout {place}: expected a finite temperature above 0, got {rollout.temperature!r}")
        if not rollout.prompt_ids:
            raise ValueError(f"rollout {place}: its prompt has no tokens, nothing predicts the first one")
    diverged = {rollout.member_id for rollout in rollouts if not np.isfinite(rollout.logprobs).all()}
    if diverged:
        raise DivergedError(sorted(diverged), "sampled log-probabilities are")
    return values
