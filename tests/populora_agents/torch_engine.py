"""An engine for tests: torch under the names and numbers of an engine, which can be told to go wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from populora_agents.backends.reading import Reading, Sampled
from populora_agents.backends.shelf import Published
from populora_agents.backends.torch import TorchBackend
from populora_agents.bases import Base
from populora_agents.config import LoraConfig
from populora_agents.lora import load_adapter
from populora_agents.stack import AdapterStack
from populora_agents.types import AdapterVersion, EngineError, Request

Flaw = Literal["answers as the base", "answers as the first", "greedy", "gone"]


class TorchEngine:
    """Implements `serving.Engine` over a base of its own; adapters come from their files."""

    def __init__(self, base: Base, config: LoraConfig, *, max_slots: int) -> None:
        """Hold at most `max_slots` adapters."""
        self.stack = AdapterStack(base.model, config, max_slots)
        self.flaw: Flaw | None = None
        self.loads: list[str] = []
        """Names, in the order in which they were loaded."""
        self.held: dict[int, int] = {}
        """Slot by number."""
        self.closed = False
        self._torch = TorchBackend(base, self.stack, lambda name: (int(name), 0))

    def load(self, adapter: Published) -> None:
        """Copy the files into a free slot; a name or number used before fails the test."""
        self._live()
        free = min(set(range(self.stack.slots)) - set(self.held.values()))
        factors, _ = load_adapter(adapter.folder)
        self.stack.load(free, factors)
        assert adapter.number not in self.held
        assert adapter.name not in self.loads
        self.held[adapter.number] = free
        self.loads.append(adapter.name)

    def drop(self, adapter: Published) -> None:
        """Free the slot."""
        self._live()
        self.held.pop(adapter.number, None)

    def complete(self, readings: Sequence[Reading], adapters: Sequence[Published | None]) -> list[Sampled]:
        """Complete with torch, or wrongly."""
        self._live()
        requests = [self._request(reading, one) for reading, one in zip(readings, adapters, strict=True)]
        return [(one.token_ids, one.logprobs, one.finish_reason) for one in self._torch.generate(requests)]

    def close(self) -> None:
        """Note it."""
        self.closed = True

    def _live(self) -> None:
        if self.flaw == "gone":
            raise EngineError("the engine is gone")

    def _request(self, reading: Reading, adapter: Published | None) -> Request:
        slot = None if adapter is None else self.held[adapter.number]
        if self.flaw == "answers as the base":
            slot = None
        elif self.flaw == "answers as the first" and slot is not None:
            slot = min(self.held.values())
        asked = reading.request
        return Request(
            adapter=None if slot is None else AdapterVersion(member_id=str(slot), version=0),
            messages=asked.messages,
            max_new_tokens=reading.limit,
            temperature=0.0 if self.flaw == "greedy" else asked.temperature,
            top_p=asked.top_p,
            stop=asked.stop,
            seed=asked.seed,
        )
