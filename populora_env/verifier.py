"""The verifier: the word on proposals and answers, which nobody can forge.

Owns the judgement: what is run, with what, and what is compared. Gold values and every comparison stay in this
process; a child is given programs and inputs, never an expected output. How code is run safely is the affair of
`sandbox`, what a proposal may contain that of `admission`.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Hashable, Mapping, Sequence
from types import TracebackType
from typing import Generic, Self, TypeVar

from populora_env.answers import answer_key, check_answer
from populora_env.config import VerifierConfig
from populora_env.proposals import Check, check_proposal, proposal_key
from populora_env.sandbox.errors import SandboxError
from populora_env.sandbox.jobs import Job, Outcome
from populora_env.sandbox.pool import Pool
from populora_env.types import Answer, Problem, Proposal, ProposalVerdict, Verdict

__all__ = ["Job", "Outcome", "SandboxError", "Verifier"]

_T = TypeVar("_T")


class Verifier:
    """Judges proposals and answers in a sandbox; safe from threads, and in the children of a fork.

    The zygotes start at the first use, or on entering the context. A copy (pickle, deepcopy) starts its own.
    """

    def __init__(self, config: VerifierConfig | None = None) -> None:
        """Keep the settings; None are the defaults."""
        self.config = config or VerifierConfig()
        self._lock = threading.Lock()
        self._pool: Pool | None = None
        self._end: weakref.finalize[[], Verifier] | None = None
        self._verdicts = _Cache[Verdict](self.config.cache_size)
        self._proposal_verdicts = _Cache[ProposalVerdict](self.config.cache_size)
        _VERIFIERS.add(self)

    def __reduce__(self) -> tuple[type[Verifier], tuple[VerifierConfig]]:
        """Pickle the settings alone."""
        return type(self), (self.config,)

    def __enter__(self) -> Self:
        """Start the zygotes.

        Raises:
            SandboxError: What the sandbox requires is not there.
        """
        self._attach()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the zygotes."""
        self.close()

    @property
    def layers(self) -> Mapping[str, bool]:
        """The best-effort layers of the sandbox: granted or not."""
        return self._attach().layers

    def close(self) -> None:
        """End the zygotes; a later use starts new ones."""
        with self._lock:
            end, self._pool, self._end = self._end, None, None
        if end is not None:
            end()

    def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Run jobs; inputs after one on which the child died are run again, in a child of their own.

        Raises:
            SandboxError: The sandbox failed twice at one job.
        """
        pool = self._attach()
        outcomes = pool.run(jobs)
        while rest := [number for number, job in enumerate(jobs) if job.after(outcomes[number]) is not None]:
            tails = [tail for number in rest if (tail := jobs[number].after(outcomes[number])) is not None]
            for number, outcome in zip(rest, pool.run(tails), strict=True):
                outcomes[number] = outcomes[number].joined(outcome)
        return outcomes

    def check_proposals(self, proposals: Sequence[Proposal]) -> list[ProposalVerdict]:
        """Judge proposals; those that are valid come with canonical inputs and outputs.

        Raises:
            SandboxError: The sandbox failed twice at one job.
        """
        return self._judge(
            [(proposal_key(proposal), check_proposal(proposal, self.config)) for proposal in proposals],
            self._proposal_verdicts,
        )

    def check_answers(self, attempts: Sequence[tuple[Problem, Answer]]) -> list[Verdict]:
        """Judge answers to problems.

        Raises:
            SandboxError: The sandbox failed twice at one job.
            ValueError: A problem is not one of ours: its values cannot be read, or nothing of it is hidden.
        """
        return self._judge(
            [(answer_key(problem, answer), check_answer(problem, answer, self.config)) for problem, answer in attempts],
            self._verdicts,
        )

    def _judge(self, checks: Sequence[tuple[Hashable, Check[_T]]], cache: _Cache[_T]) -> list[_T]:
        """Bring checks to their verdicts, each content once, and only where the cache has none."""
        known: dict[Hashable, _T] = {}
        running: dict[Hashable, Check[_T]] = {}
        for key, check in checks:
            verdict = cache.get(key)
            if verdict is not None:
                known[key] = verdict
            elif key not in running:
                running[key] = check
        ready: dict[Hashable, tuple[Outcome, ...] | None] = dict.fromkeys(running)
        while ready:
            wanted: dict[Hashable, tuple[Job, ...]] = {}
            for key, outcomes in ready.items():
                try:
                    wanted[key] = running[key].send(outcomes)  # type: ignore[arg-type]
                except StopIteration as end:
                    known[key] = end.value
                    cache.put(key, end.value)
            jobs = [job for some in wanted.values() for job in some]
            done = iter(self._attach().run(jobs) if jobs else ())
            ready = {key: tuple(itertools.islice(done, len(some))) for key, some in wanted.items()}
        return [known[key] for key, _ in checks]

    def forget_parent(self) -> None:
        """In the child of a fork: let go of the parent's zygotes, and of locks that another thread may have held."""
        self._lock = threading.Lock()
        if self._end is not None:
            self._end.detach()
        self._pool = self._end = None
        self._verdicts.new_lock()
        self._proposal_verdicts.new_lock()

    def _attach(self) -> Pool:
        """Return the pool of this process, started if need be."""
        with self._lock:
            if self._pool is None or not self._pool.usable:
                if self._end is not None:
                    self._end()
                self._pool = Pool(self.config)
                self._end = weakref.finalize(self, self._pool.close)
            return self._pool


class _Cache(Generic[_T]):
    """Verdicts by content; the one used longest ago goes first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._entries: OrderedDict[Hashable, _T] = OrderedDict()

    def new_lock(self) -> None:
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> _T | None:
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
            return self._entries.get(key)

    def put(self, key: Hashable, verdict: _T) -> None:
        with self._lock:
            self._entries[key] = verdict
            while len(self._entries) > self._size:
                self._entries.popitem(last=False)


_VERIFIERS: weakref.WeakSet[Verifier] = weakref.WeakSet()


def _forget_parent_everywhere() -> None:
    for verifier in list(_VERIFIERS):
        verifier.forget_parent()


os.register_at_fork(after_in_child=_forget_parent_everywhere)
