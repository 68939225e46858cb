"""The torch backend: all members of a phase in one batch, on the stack that also learns.

Owns the rows and batches of a call. The loop is in `decoding`, what a request and a completion are in `reading`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from populora_agents.backends.decoding import Decoder, Row
from populora_agents.backends.reading import Reader, Reading, SlotTable, slot_of
from populora_agents.bases import Base
from populora_agents.stack import AdapterStack
from populora_agents.stopping import StopFinder
from populora_agents.types import AdapterVersion, Completion, FinishReason, Request
from populora_env.types import Message


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
        self._slots = slots
        self._batch_tokens = batch_tokens
        self._reader = Reader(base)
        self._eos_ids = base.eos_ids
        self._decoder = Decoder(base.model, stack, self._eos_ids)
        self._stops = StopFinder(self._reader.text)
        self._has_stack = stack is not None

    def prompt_ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the token ids of a prompt, as `generate` feeds them."""
        return self._reader.prompt_ids(messages)

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete the requests, in their order.

        A completion ends at an end-of-sequence token, where its text holds one of the request's stop strings, at
        `max_new_tokens`, or where the model's context ends.

        Raises:
            ValueError: A request names a member or version that is not held, or its prompt fills the context.
        """
        readings = self._reader.read(requests)
        rows = [self._row(place, reading) for place, reading in enumerate(readings)]
        rows.sort(key=lambda row: (row.slot, len(row.prompt_ids), row.prompt_ids, row.place))
        for batch in self._batches(rows):
            self._decoder.run(batch)
        rows.sort(key=lambda row: row.place)
        return [self._completion(reading, row) for reading, row in zip(readings, rows, strict=True)]

    def close(self) -> None:
        """Hold nothing back: model and stack are the caller's."""

    def _row(self, place: int, reading: Reading) -> Row:
        request = reading.request
        return Row(
            place=place,
            slot=self._slot(request.adapter),
            prompt_ids=reading.prompt_ids,
            limit=reading.limit,
            temperature=request.temperature,
            top_p=request.top_p,
            seed=request.seed,
            ends=partial(self._stops.ends, stops=request.stop) if request.stop else None,
        )

    def _slot(self, adapter: AdapterVersion | None) -> int:
        if adapter is not None and not self._has_stack:
            raise ValueError(f"the backend does not hold member {adapter.member_id!r}")
        return slot_of(adapter, self._slots)

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

    def _completion(self, reading: Reading, row: Row) -> Completion:
        finish_reason: FinishReason | None = "stop" if row.tokens[-1] in self._eos_ids else None
        return self._reader.completion(reading, row.tokens, row.logprobs, finish_reason)
