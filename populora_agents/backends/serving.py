"""`ServingBackend`: members through an engine that loads adapters by name; vLLM in this process or behind a URL.

Owns which versions are loaded when, and that every one is what it is called. Owns no engine: that is an `Engine`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from populora_agents.backends.canary import Canary
from populora_agents.backends.reading import Reader, Reading, Sampled, SlotTable, held, slot_of
from populora_agents.backends.shelf import Published, Shelf
from populora_agents.bases import Base
from populora_agents.stack import AdapterStack
from populora_agents.types import AdapterVersion, Completion, EngineError, Request
from populora_env.types import Message

_LOG = logging.getLogger(__name__)


class Engine(Protocol):
    """What completes prompts. Every method raises EngineError where the engine fails or is gone."""

    def load(self, adapter: Published) -> None:
        """Take an adapter in; all its modules must be bound."""
        ...

    def drop(self, adapter: Published) -> None:
        """Let an adapter go."""
        ...

    def complete(self, readings: Sequence[Reading], adapters: Sequence[Published | None]) -> list[Sampled]:
        """Complete the requests, each with its adapter (None: the bare base), all loaded; in their order."""
        ...

    def close(self) -> None:
        """Give back what the engine holds."""
        ...


class ServingBackend:
    """Implements `populora_agents.types.Backend` over an engine.

    At most `max_slots` versions are loaded at a time. A call that needs more is answered group by group, those that are
    loaded first, so that each version is loaded at most once in a call. A version stays loaded for the next call until
    its member stands at another one, or its place is needed.
    """

    name = "serving"

    def __init__(
        self, base: Base, stack: AdapterStack | None, slots: SlotTable, engine: Engine, *, max_slots: int
    ) -> None:
        """Serve the members that `slots` names.

        Args:
            base: The trainer's model and tokenizer.
            stack: The trainer's adapters; None serves the bare base only.
            slots: Looked up at every request, so that it may change between calls.
            engine: Taken over: closed with the backend.
            max_slots: Versions loaded at a time, >= 1.

        Raises:
            EngineError: The engine does not compute the same base.
        """
        self._slots = slots
        self._stack = stack
        self._engine = engine
        self._max_slots = max_slots
        self._reader = Reader(base)
        self._shelf = Shelf(stack.config, base.name) if stack else None
        self._loaded: dict[AdapterVersion, Published] = {}
        """Those used longest ago first."""
        self._canary = Canary(base, stack)
        readings = self._canary.readings(None)
        self._canary.measure_base(engine.complete(readings, [None] * len(readings)))

    @property
    def loaded(self) -> tuple[AdapterVersion, ...]:
        """Versions that the engine holds."""
        return tuple(self._loaded)

    def prompt_ids(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the token ids of a prompt, as `generate` feeds them."""
        return self._reader.prompt_ids(messages)

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete the requests, in their order.

        Raises:
            ValueError: A request names a member or version that is not held, or its prompt fills the context.
            EngineError: The engine is gone, or does not answer as the adapter that was asked for.
        """
        readings = self._reader.read(requests)
        for request in requests:
            if request.adapter is not None and self._stack is None:
                raise ValueError(f"the backend does not hold member {request.adapter.member_id!r}")
            slot_of(request.adapter, self._slots)
        self._drop_outdated()
        completions: dict[int, Completion] = {}
        for group in self._groups([request.adapter for request in requests]):
            self._load(group)
            places = [place for place, request in enumerate(requests) if request.adapter in group]
            chosen = [readings[place] for place in places]
            adapters = [self._published(reading.request.adapter) for reading in chosen]
            sampled = self._engine.complete(chosen, adapters)
            for place, reading, answer in zip(places, chosen, sampled, strict=True):
                completions[place] = self._reader.completion(reading, *answer)
        return [completions[place] for place in range(len(requests))]

    def close(self) -> None:
        """Stop the engine, and remove what was written for it."""
        for version in self.loaded:
            self._discard(version)
        try:
            self._engine.close()
        except EngineError:
            _LOG.debug("the engine could not be stopped", exc_info=True)
        finally:
            if self._shelf is not None:
                self._shelf.close()

    def _groups(self, adapters: Sequence[AdapterVersion | None]) -> list[list[AdapterVersion | None]]:
        """Cut the versions asked for into groups that fit, loaded ones first; the bare base is one of its own.

        On a CPU vLLM (0.32) serves rows without an adapter by the last one, where others of the batch have one.
        """
        distinct = list(dict.fromkeys(adapter for adapter in adapters if adapter is not None))
        distinct.sort(key=lambda version: version not in self._loaded)
        size = self._max_slots
        groups: list[list[AdapterVersion | None]] = [
            [*distinct[start : start + size]] for start in range(0, len(distinct), size)
        ]
        return [[None], *groups] if None in adapters else groups

    def _load(self, group: Sequence[AdapterVersion | None]) -> None:
        """Load what the group lacks, in the place of what was used longest ago."""
        wanted = [version for version in group if version is not None]
        for version in [version for version in wanted if version in self._loaded]:
            self._loaded[version] = self._loaded.pop(version)
        missing = [version for version in wanted if version not in self._loaded]
        for version in self.loaded[: max(0, len(self._loaded) + len(missing) - self._max_slots)]:
            self._drop(version)
        if missing:
            self._take_in(missing)

    def _take_in(self, versions: Sequence[AdapterVersion]) -> None:
        """Load versions and ask all of them the canary's questions, in one batch."""
        try:
            for version in versions:
                self._loaded[version] = self._publish(version)
                self._engine.load(self._loaded[version])
            readings = [reading for version in versions for reading in self._canary.readings(version)]
            answers = self._engine.complete(readings, [self._published(one.request.adapter) for one in readings])
            each = len(readings) // len(versions)
            for place, version in enumerate(versions):
                own = answers[place * each : (place + 1) * each]
                self._canary.check(version, slot_of(version, self._slots), own)
        except (EngineError, ValueError):
            for version in versions:
                self._discard(version)
            raise

    def _publish(self, version: AdapterVersion) -> Published:
        if self._stack is None or self._shelf is None:
            raise ValueError(f"the backend does not hold {version}")
        try:
            return self._shelf.publish(version, self._stack.adapter(slot_of(version, self._slots)))
        except OSError as error:
            raise EngineError(f"{version} cannot be written for the engine: {error}") from error

    def _discard(self, version: AdapterVersion) -> None:
        """Drop a version after a failure, which is what the caller shall hear of."""
        try:
            if version in self._loaded:
                self._drop(version)
        except EngineError:
            _LOG.debug("%s could not be dropped", version, exc_info=True)

    def _drop(self, version: AdapterVersion) -> None:
        published = self._loaded.pop(version)
        if self._shelf is not None:
            self._shelf.withdraw(published)
        self._engine.drop(published)

    def _drop_outdated(self) -> None:
        for version in self.loaded:
            found = held(version.member_id, self._slots)
            if found is None or found[1] != version.version:
                self._drop(version)

    def _published(self, version: AdapterVersion | None) -> Published | None:
        return None if version is None else self._loaded[version]
