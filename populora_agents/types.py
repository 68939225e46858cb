"""The nouns between the league and a language model: requests, completions, rollouts, update reports.

Imports nothing heavy, so that the league's pure parts can use it without torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from populora_env.types import Message

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
    seed: int = 0
    """Draws are keyed by it, not by the place in the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What a backend answers: text, token ids, and the log-probability of each token as it was sampled."""

    request: Request
    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    """Sampled tokens, the end-of-sequence token included when `finish_reason` is stop."""
    logprobs: tuple[float, ...]
    """One a token, in nats, under the sampling temperature (under 1 where that is 0)."""
    text: str
    """Decoded, without special tokens."""
    finish_reason: FinishReason


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


class DivergedError(FloatingPointError):
    """Members whose numbers are no longer finite; what they did in this step is lost, nothing was updated."""

    def __init__(self, members: Sequence[str], what: str) -> None:
        """Name the members, and what of theirs is not finite."""
        super().__init__(f"{' and '.join(members)} diverged: {what} not finite")
        self.members = tuple(members)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberUpdate:
    """What one update did to one member; floats are means over the member's rollouts or tokens."""

    rollouts: int
    tokens: int
    loss: float
    grad_norm: float
    """Before clipping."""
    clip_fraction: float
    entropy: float
    """Estimated as minus the mean log-probability of the sampled tokens, in nats."""
    logprob_gap: float
    """Mean absolute difference between the sampler's log-probabilities and the trainer's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateReport:
    """What one update did."""

    members: Mapping[str, MemberUpdate]
    seconds: float
