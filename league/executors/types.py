"""The seam between the arena and whoever does its work: completing requests, judging, updating members.

Owns the protocols and the error. An executor decides where work is done, never what is computed: which rows go through
the model together is the plan's affair (`shares`), so that all executors give the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from populora_agents.lora import Adapter
from populora_agents.types import Backend, UpdateRule
from populora_env.judging import Judge


class ExecutorError(RuntimeError):
    """Work that cannot be done where it was sent; the message is one line for the user."""


class ClosingJudge(Judge, Protocol):
    """A judge that holds processes, and says what protects us from what they run."""

    @property
    def layers(self) -> Mapping[str, bool]:
        """Each layer of the sandbox, and whether it is in force."""
        ...

    def close(self) -> None:
        """Give the processes back."""
        ...


class Adapters(Protocol):
    """The present weights of all members, by slot; `populora_agents.stack.AdapterStack` is one."""

    def load(self, slot: int, adapter: Adapter) -> None:
        """Put `adapter` into a slot."""
        ...

    def adapter(self, slot: int) -> Adapter:
        """Return a copy of what a slot holds, on the CPU."""
        ...


class Executor(Protocol):
    """Does the work of one arena."""

    slots: dict[str, tuple[int, int]]
    """Slot and present version by member id; the arena writes it, the backend looks members up in it."""

    @property
    def adapters(self) -> Adapters:
        """The members' weights."""
        ...

    @property
    def rule(self) -> UpdateRule:
        """Moves what `adapters` holds."""
        ...

    @property
    def backend(self) -> Backend:
        """Completes prompts with what `adapters` holds."""
        ...

    @property
    def judge(self) -> ClosingJudge:
        """Judges proposals and answers."""
        ...

    def close(self) -> None:
        """Give back processes and memory."""
        ...
