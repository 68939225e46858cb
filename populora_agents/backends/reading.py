"""From requests to what an engine is fed, and from what it sampled to completions; the same for every backend.

Owns the bounds of a request, its prompt's ids, and where a completion's text ends. Owns no sampling.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from populora_agents.bases import Base
from populora_agents.prompting import PromptEncoder
from populora_agents.routing import BARE
from populora_agents.stopping import cut
from populora_agents.types import AdapterVersion, Completion, FinishReason, Request
from populora_env.types import Message

SlotTable = Mapping[str, tuple[int, int]] | Callable[[str], tuple[int, int] | None]
"""Slot and present version of a member."""


Sampled = tuple[Sequence[int], Sequence[float], FinishReason]
"""What an engine sampled: tokens, their log-probabilities, and why they end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A request as an engine takes it."""

    request: Request
    prompt_ids: tuple[int, ...]
    limit: int
    """Most tokens to sample, >= 1: what was asked for, or what is left of the context."""


class Reader:
    """Reads requests for one base."""

    def __init__(self, base: Base) -> None:
        """Take the tokenizer and the context of `base`."""
        self._tokenizer = base.tokenizer
        self._context = base.context_tokens
        self._encoder = PromptEncoder(base.tokenizer)

    def prompt_ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the token ids of a prompt."""
        return self._encoder.encode(messages)

    def read(self, requests: Sequence[Request]) -> list[Reading]:
        """Return the requests in their order, equal prompts encoded once.

        Raises:
            ValueError: Settings that make no sense, or a prompt that fills the context.
        """
        encoded: dict[tuple[Message, ...], tuple[int, ...]] = {}
        readings = []
        for place, request in enumerate(requests):
            _check(place, request)
            if request.messages not in encoded:
                encoded[request.messages] = self.prompt_ids(request.messages)
            prompt_ids = encoded[request.messages]
            room = request.max_new_tokens if self._context is None else self._context - len(prompt_ids)
            if room < 1:
                raise ValueError(
                    f"request {place}: its prompt has {len(prompt_ids)} tokens, the base's context {self._context}"
                )
            limit = min(request.max_new_tokens, room)
            readings.append(Reading(request=request, prompt_ids=prompt_ids, limit=limit))
        return readings

    def text(self, tokens: Sequence[int]) -> str:
        """Return the text of sampled tokens, without special ones."""
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def completion(
        self, reading: Reading, tokens: Sequence[int], logprobs: Sequence[float], finish_reason: FinishReason | None
    ) -> Completion:
        """Return the completion of a request; where `finish_reason` is None, a stop string says it.

        Args:
            reading: The request.
            tokens: As sampled, those of a stop string included.
            logprobs: One a token.
            finish_reason: As the engine gives it; None is "length", unless the text holds a stop string.
        """
        text, stopped = cut(self.text(tokens), reading.request.stop)
        return Completion(
            request=reading.request,
            prompt_ids=reading.prompt_ids,
            token_ids=tuple(tokens),
            logprobs=tuple(logprobs),
            text=text,
            finish_reason=finish_reason or ("stop" if stopped else "length"),
        )


def held(member_id: str, slots: SlotTable) -> tuple[int, int] | None:
    """Return slot and present version of a member, None when there is none of that name."""
    return slots(member_id) if callable(slots) else slots.get(member_id)


def slot_of(adapter: AdapterVersion | None, slots: SlotTable) -> int:
    """Return the slot of an adapter version, `BARE` for the base.

    Raises:
        ValueError: The member is not held, or at another version.
    """
    if adapter is None:
        return BARE
    found = held(adapter.member_id, slots)
    if found is None:
        raise ValueError(f"the backend does not hold member {adapter.member_id!r}")
    slot, version = found
    if version != adapter.version:
        raise ValueError(f"the backend holds {adapter.member_id!r} at version {version}, not at {adapter.version}")
    return slot


def _check(place: int, request: Request) -> None:
    """Refuse settings that make no sense."""
    if request.max_new_tokens < 1 or not 0 <= request.temperature < float("inf"):
        raise ValueError(
            f"request {place}: expected `max_new_tokens` >= 1 and a finite `temperature` >= 0, "
            f"got {request.max_new_tokens!r} and {request.temperature!r}"
        )
    if not 0 < request.top_p <= 1 or not isinstance(request.stop, tuple) or "" in request.stop:
        raise ValueError(
            f"request {place}: expected `top_p` in (0, 1] and `stop` a tuple of strings that are not empty, "
            f"got {request.top_p!r} and {request.stop!r}"
        )
