"""Jobs of one caller, as the caller sees them: it adds some, takes what has finished, and may give up.

Owns no scheduling (that is `pool`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from populora_env.sandbox.jobs import Job, Outcome
from populora_env.sandbox.queues import Queue

if TYPE_CHECKING:
    from populora_env.sandbox.pool import Pool


class Batch:
    """Jobs of one caller, which may add more while they run; leaving the context drops what is left."""

    def __init__(self, pool: Pool) -> None:
        """Begin without jobs."""
        self._pool = pool
        self._queue = Queue()

    def __enter__(self) -> Self:
        """Return the batch."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Drop what is left."""
        self.cancel()

    def submit(self, key: Hashable, job: Job) -> None:
        """Queue a job under a name for its outcome.

        Raises:
            SandboxError: The pool is closed, or the batch was cancelled.
        """
        self._pool.submit(self._queue, key, job)

    def poll(self) -> list[tuple[Hashable, Outcome]]:
        """Let jobs go on without waiting; return what has finished since the last call.

        Raises:
            SandboxError: The sandbox failed twice at one job, the pool is closed, or the batch was cancelled.
        """
        self._pool.drive(self._queue, wait=False)
        return self._taken()

    def results(self) -> Iterator[tuple[Hashable, Outcome]]:
        """Wait for the jobs, and for those that are added meanwhile; yield each outcome as it comes.

        Raises:
            SandboxError: The sandbox failed twice at one job, the pool is closed, or the batch was cancelled.
        """
        while True:
            self._pool.drive(self._queue, wait=True)
            taken = self._taken()
            if not taken:
                return
            yield from taken

    def cancel(self) -> None:
        """Drop what is left; whoever waits for it gets a SandboxError. May be called from any thread."""
        self._pool.forget(self._queue)

    def _taken(self) -> list[tuple[Hashable, Outcome]]:
        taken, self._queue.finished = self._queue.finished, []
        return taken
