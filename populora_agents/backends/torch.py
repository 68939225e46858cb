"""The torch backend: all members of a phase in one batch, on the stack that also learns.

Owns the way from requests to completions. The loop is in `decoding`, the ids of a prompt in `prompting`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from populora_agents.backends.decoding import Decoder, Row
from populora_agents.bases import Base
from populora_agents.prompting import PromptEncoder
from populora_agents.routing import BARE
from populora_agents.stack import AdapterStack
from populora_agents.stopping import StopFinder, cut
from populora_agents.types import AdapterVersion, Completion, Request
from populora_env.types import Message

SlotTable = Mapping[str, tuple[int, int]] | Callable[[str], tuple[int, int] | None]
"""Slot and present version of a member."""


class TorchBackend:
    """Completes prompts with a base and an adapter stack; implements `populora_agents.types.Backend`."""

    name = "torch"

    def __init__(self, base: Base, stack: AdapterStack | None, slots: SlotTable, *, batch_tokens: int = 1 << 17):
        """Serve the members that `slots` names.

        Args:
            base: Model and tokenizer; the stack lies on this model.
            stack: None serves the bare base only.
            slots: Looked up at every request, so that it may change between calls.
            batch_tokens: Most tokens (prompt and new, padded) held in one batch; more rows wait for the next.
        """
        if batch_tokens < 1:
            raise ValueError(f"`batch_tokens` must be at least 1, got {batch_tokens!r}")
        self._base = base
        self._slots = slots
        self._batch_tokens = batch_tokens
        self._encoder = PromptEncoder(base.tokenizer)
        self._eos_ids = base.eos_ids
        self._decoder = Decoder(base.model, stack, self._eos_ids)
        self._stops = StopFinder(self._text)
        self._has_stack = stack is not None

    def prompt_ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the token ids of a prompt, as `generate` feeds them."""
        return self._encoder.encode(messages)

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete the requests, in their order.

        A completion ends at an end-of-sequence token, where its text holds one of the request's stop strings, at
        `max_new_tokens`, or where the model's context ends.

        Raises:
            ValueError: A request names a member or version that is not held, or its prompt fills the context.
        """
        encoded: dict[tuple[Message, ...], tuple[int, ...]] = {}
        rows = []
        for place, request in enumerate(requests):
            if request.messages not in encoded:
                encoded[request.messages] = self.prompt_ids(request.messages)
            rows.append(self._row(place, request, encoded[request.messages]))
        rows.sort(key=lambda row: (row.slot, len(row.prompt_ids), row.prompt_ids, row.place))
        for batch in self._batches(rows):
            self._decoder.run(batch)
        rows.sort(key=lambda row: row.place)
        return [self._completion(request, row) for request, row in zip(requests, rows, strict=True)]

    def close(self) -> None:
        """Hold nothing back: model and stack are the caller's."""

    def _row(self, place: int, request: Request, prompt_ids: tuple[int, ...]) -> Row:
        _check(place, request)
        context = self._base.context_tokens
        room = request.max_new_tokens if context is None else context - len(prompt_ids)
        if room < 1:
            raise ValueError(f"request {place}: its prompt has {len(prompt_ids)} tokens, the base's context {context}")
        return Row(
            place=place,
            slot=self._slot(request.adapter),
            prompt_ids=prompt_ids,
            limit=min(request.max_new_tokens, room),
            temperature=request.temperature,
            top_p=request.top_p,
            seed=request.seed,
            ends=partial(self._stops.ends, stops=request.stop) if request.stop else None,
        )

    def _slot(self, adapter: AdapterVersion | None) -> int:
        if adapter is None:
            return BARE
        held = self._slots(adapter.member_id) if callable(self._slots) else self._slots.get(adapter.member_id)
        if held is None or not self._has_stack:
            raise ValueError(f"the backend does not hold member {adapter.member_id!r}")
        slot, version = held
        if version != adapter.version:
            raise ValueError(f"the backend holds {adapter.member_id!r} at version {version}, not at {adapter.version}")
        return slot

    def _batches(self, rows: Sequence[Row]) -> Iterator[list[Row]]:
        """Cut the sorted rows so that each batch, padded to its longest prompt and completion, fits the budget."""
        batch: list[Row] = []
        prompt, new = 0, 0
        for row in rows:
            longest = max(prompt, len(row.prompt_ids)), max(new, row.limit)
            if batch and sum(longest) * (len(batch) + 1) > self._batch_tokens:
                yield batch
                batch, longest = [], (len(row.prompt_ids), row.limit)
            batch.append(row)
            prompt, new = longest
        if batch:
            yield batch

    def _completion(self, request: Request, row: Row) -> Completion:
        text, stopped = cut(self._text(row.tokens), request.stop)
        return Completion(
            request=request,
            prompt_ids=row.prompt_ids,
            token_ids=row.tokens,
            logprobs=row.logprobs,
            text=text,
            finish_reason="stop" if stopped or row.tokens[-1] in self._eos_ids else "length",
        )

    def _text(self, tokens: Sequence[int]) -> str:
        tokenizer = self._base.tokenizer
        return str(tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False))


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
