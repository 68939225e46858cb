"""The nouns between the league and a language model: requests, completions, rollouts, update reports.

Imports nothing heavy, so that the league's pure parts can use it without torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from populora_env.types import Message

if TYPE_CHECKING:
    from torch import Tensor

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterVersion:
    """The name of one state of one member's weights; `version` grows by one with every step in which it plays."""

    member_id: str
    version: int

    def __str__(self) -> str:
        """Return `member@version`."""
        return f"{self.member_id}@{self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One prompt for one adapter."""

    adapter: AdapterVersion | None
    """None asks the bare base model."""
    messages: tuple[Message, ...]
    max_new_tokens: int
    temperature: float = 1.0
    """0 is greedy."""
    top_p: float = 1.0
    """Draw from the most likely tokens that together have at least this probability, in (0, 1]; 1 draws from all."""
    stop: tuple[str, ...] = ()
    """Strings, none empty, that end the completion as soon as its text holds one of them."""
    seed: int = 0
    """Draws are keyed by it, not by the place in the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What a backend answers: text, token ids, and the log-probability of each token as it was sampled.

    Where a stop string ended it, `text` ends before that string, as in vLLM; `token_ids` and `logprobs` keep all that
    was sampled, the tokens of the stop string too, since they are what the policy did.
    """

    request: Request
    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    """Sampled tokens, the end-of-sequence token included where it was sampled."""
    logprobs: tuple[float, ...]
    """One a token, in nats, under the sampling temperature (under 1 where that is 0), of the whole distribution, also
    where `top_p` cut it: what a trainer computes again from the tokens."""
    text: str
    """Decoded, without special tokens, cut before the first stop string."""
    finish_reason: FinishReason
    """stop: an end-of-sequence token or a stop string; length: the limit, or the end of the context."""


class Backend(Protocol):
    """Something that completes prompts for all members of a phase in one batch."""

    name: str

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete the requests, in their order.

        Raises:
            ValueError: A request names an adapter version that the backend does not hold.
        """
        ...

    def close(self) -> None:
        """Give back what the backend holds."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """One role's part of one round, as the trainer needs it."""

    member_id: str
    batch: str
    """Rollouts that are whitened together: role and task."""
    group_id: str
    """Rollouts that share a baseline."""
    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    reward: float
    temperature: float = 1.0
    """At which it was sampled, > 0."""


class DivergedError(FloatingPointError):
    """Members whose numbers are no longer finite; what they did in this step is lost, nothing was updated."""

    def __init__(self, members: Sequence[str], what: str) -> None:
        """Name the members, and what of theirs is not finite."""
        super().__init__(f"{' and '.join(members)} diverged: {what} not finite")
        self.members = tuple(members)
        self._what = what

    def __reduce__(self) -> tuple[type[DivergedError], tuple[tuple[str, ...], str]]:
        """Survive pickling, which would call the class with the message alone."""
        return type(self), (self.members, self._what)


class EngineError(RuntimeError):
    """The engine behind a backend did not start, is gone, or answers for another adapter; one line for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberUpdate:
    """What one update did to one member. None where there was nothing to measure."""

    rollouts: int
    tokens: int
    """Sampled by the member, also in rollouts that had nothing to teach and were not computed."""
    loss: float
    """Reduced as the trainer's length handling says, KL term included."""
    grad_norm: float
    """Before clipping."""
    clip_fraction: float
    """Share of all tokens whose gradient clipping took away."""
    entropy: float | None
    """Of the distributions that tokens were drawn from, in nats: mean over the tokens that were computed."""
    entropy_estimate: float
    """Minus the mean log-probability of all sampled tokens, in nats; by the sampler's numbers."""
    logprob_gap: float | None
    """Mean absolute difference between the sampler's log-probabilities and the trainer's, over computed tokens."""
    kl: float | None = None
    """Divergence from the bare base, in nats a token (k3): mean over the tokens that were computed, when it is on."""
    extra: Mapping[str, float] = field(default_factory=dict)
    """Whatever else the objective measures, by name: means over the tokens that were computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReport:
    """What one update did."""

    members: Mapping[str, MemberUpdate]
    seconds: float
    """Wall clock of the whole update."""


class UpdateRule(Protocol):
    """Something that learns: the seam at which another algorithm takes the place of `trainer.Trainer`."""

    def advantages(self, rollouts: Sequence[Rollout]) -> NDArray[np.float64]:
        """Return one advantage a rollout, [N]; the caller keeps them beside the rollouts and hands them to `update`."""
        ...

    def update(
        self,
        rollouts: Sequence[Rollout],
        advantages: ArrayLike,
        slots: Mapping[str, int],
        learning_rates: Mapping[str, float],
    ) -> UpdateReport:
        """Update the adapters of the members that the rollouts are of, in their slots of the stack.

        Args:
            rollouts: Of any members, in any order; may be empty.
            advantages: float [N], one a rollout.
            slots: Slot by member id.
            learning_rates: By member id.

        Returns:
            One entry for each member that has rollouts.

        Raises:
            DivergedError: A member's numbers are not finite; nothing was updated.
        """
        ...

    def reset_slot(self, slot: int) -> None:
        """Forget what was learnt about one slot beside its adapter (moments): a new member moves in."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """Return what a resumed run needs beside the adapters, as tensors on the CPU (fit for safetensors)."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        ...
