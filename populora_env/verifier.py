"""The verifier: the word on proposals and answers, which nobody can forge.

Owns the judgement: what is run, with what, and what is compared. Gold values and every comparison stay in this
process; a child is given programs and inputs, never an expected output. How code is run safely is the affair of
`sandbox`, what a proposal may contain that of `admission`.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Generic, Self, TypeVar, cast

from populora_env.answers import answer_key, check_answer, in_order
from populora_env.config import VerifierConfig
from populora_env.proposals import Check, check_proposal, proposal_key
from populora_env.sandbox.batch import Batch
from populora_env.sandbox.errors import SandboxError
from populora_env.sandbox.jobs import Job, Outcome
from populora_env.sandbox.pool import Pool
from populora_env.types import Answer, Problem, Proposal, ProposalVerdict, Verdict

__all__ = ["Job", "Outcome", "SandboxError", "Verifier"]

_T = TypeVar("_T")

_STRIDE = 16
"""Checks that are begun before the zygotes are looked after."""
_THREADS = 4
"""Calls from asyncio that are judged at once; the others wait."""


class Verifier:
    """Judges proposals and answers in a sandbox; safe from threads, from asyncio, and in the children of a fork.

    The zygotes start at the first use, or on entering the context. A copy (pickle, deepcopy) starts its own.
    """

    def __init__(self, config: VerifierConfig | None = None) -> None:
        """Keep the settings; None are the defaults."""
        self.config = config or VerifierConfig()
        self._lock = threading.Lock()
        self._pool: Pool | None = None
        self._end: weakref.finalize[[], Verifier] | None = None
        self._executor: ThreadPoolExecutor | None = None
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
        """End the zygotes; whoever waits for a verdict gets a SandboxError. A later use starts new ones."""
        with self._lock:
            end, self._pool, self._end = self._end, None, None
            executor, self._executor = self._executor, None
        if end is not None:
            end()
        if executor is not None:
            executor.shutdown(cancel_futures=True)

    def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Run jobs; inputs after one on which the child died are run again, in a child of their own.

        Raises:
            SandboxError: The sandbox failed twice at one job, or the verifier was closed meanwhile.
        """
        return self._attach().run(jobs)

    def check_proposals(
        self, proposals: Sequence[Proposal], *, owners: Sequence[Hashable] | None = None
    ) -> list[ProposalVerdict]:
        """Judge proposals; those that are valid come with canonical inputs and outputs.

        Args:
            proposals: What to judge.
            owners: Whose they are, one a proposal. Plain programs of one owner may then share a process, one after the
                other, which is faster; those of different owners never do. None, of all or of one: shares with none.

        Raises:
            SandboxError: The sandbox failed twice at one job, or the verifier was closed meanwhile.
            ValueError: The lengths differ.
        """
        return self._judge(self._proposal_checks(proposals, owners), self._proposal_verdicts, _Call())

    def check_answers(
        self, attempts: Sequence[tuple[Problem, Answer]], *, owners: Sequence[Hashable] | None = None
    ) -> list[Verdict]:
        """Judge answers to problems.

        Args:
            attempts: Problems, each with an answer.
            owners: Whose the programs are that run, as in `check_proposals`: for abduction the problem's, for induction
                the answer's; for deduction it does not matter. None: only inputs of one program share a process.

        Raises:
            SandboxError: The sandbox failed twice at one job, or the verifier was closed meanwhile.
            ValueError: A problem is not one of ours (its values cannot be read, or nothing of it is hidden), or the
                lengths differ.
        """
        order, checks = self._answer_checks(attempts, owners)
        return _reordered(order, self._judge(checks, self._verdicts, _Call()))

    async def acheck_proposals(
        self, proposals: Sequence[Proposal], *, owners: Sequence[Hashable] | None = None
    ) -> list[ProposalVerdict]:
        """Judge proposals as `check_proposals` does, from asyncio; a cancelled call drops its jobs."""
        checks = self._proposal_checks(proposals, owners)
        return await self._in_thread(lambda call: self._judge(checks, self._proposal_verdicts, call))

    async def acheck_answers(
        self, attempts: Sequence[tuple[Problem, Answer]], *, owners: Sequence[Hashable] | None = None
    ) -> list[Verdict]:
        """Judge answers as `check_answers` does, from asyncio; a cancelled call drops its jobs."""
        order, checks = self._answer_checks(attempts, owners)
        return _reordered(order, await self._in_thread(lambda call: self._judge(checks, self._verdicts, call)))

    def _proposal_checks(
        self, proposals: Sequence[Proposal], owners: Sequence[Hashable] | None
    ) -> Iterator[tuple[Hashable, Check[ProposalVerdict]]]:
        for proposal, owner in zip(proposals, _owners(proposals, owners), strict=True):
            yield proposal_key(proposal), check_proposal(proposal, self.config, owner=owner)

    def _answer_checks(
        self, attempts: Sequence[tuple[Problem, Answer]], owners: Sequence[Hashable] | None
    ) -> tuple[list[int], Iterator[tuple[Hashable, Check[Verdict]]]]:
        """Return an order in which to begin with the answers, and the checks in that order."""
        whose = _owners(attempts, owners)
        order = in_order([problem for problem, _ in attempts])
        return order, (
            (answer_key(problem, answer), check_answer(problem, answer, self.config, owner=whose[place]))
            for place in order
            for problem, answer in (attempts[place],)
        )

    def _judge(self, checks: Iterator[tuple[Hashable, Check[_T]]], cache: _Cache[_T], call: _Call) -> list[_T]:
        """Bring checks to their verdicts, each content once, and only where the cache has none.

        The zygotes work on the first ones while the later ones are still being read.
        """
        keys: list[Hashable] = []
        known: dict[Hashable, _T] = {}
        with _Running[_T](self._attach, call) as running:
            for key, check in checks:
                keys.append(key)
                if key in known or key in running:
                    continue
                verdict = cache.get(key)
                if verdict is None:
                    running.begin(key, check)
                    if len(keys) % _STRIDE == 0:
                        running.go_on(wait=False)
                else:
                    known[key] = verdict
            running.go_on(wait=True)
        for key, verdict in running.verdicts.items():
            known[key] = verdict
            cache.put(key, verdict)
        return [known[key] for key in keys]

    async def _in_thread(self, judge: Callable[[_Call], _T]) -> _T:
        call = _Call()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads(), judge, call)
        except asyncio.CancelledError:
            call.cancel()
            raise

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="populora-verifier")
            return self._executor

    def forget_parent(self) -> None:
        """In the child of a fork: let go of the parent's zygotes, and of locks that another thread may have held."""
        self._lock = threading.Lock()
        if self._end is not None:
            self._end.detach()
        self._pool = self._end = self._executor = None
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


class _Running(Generic[_T]):
    """Checks under way in one batch, which is made when the first job needs it."""

    def __init__(self, pool: Callable[[], Pool], call: _Call) -> None:
        self.verdicts: dict[Hashable, _T] = {}
        self._pool = pool
        self._call = call
        self._batch: Batch | None = None
        self._checks: dict[Hashable, Check[_T]] = {}
        self._outcomes: dict[Hashable, list[Outcome | None]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._batch is not None:
            self._batch.cancel()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._checks or key in self.verdicts

    def begin(self, key: Hashable, check: Check[_T]) -> None:
        """Start a check."""
        self._checks[key] = check
        self._advance(key, None)

    def go_on(self, *, wait: bool) -> None:
        """Let the jobs go on, and the checks whose jobs are done; with `wait` until all are."""
        if self._batch is None:
            return
        for name, outcome in self._batch.results() if wait else self._batch.poll():
            key, number = cast(tuple[Hashable, int], name)
            outcomes = self._outcomes[key]
            outcomes[number] = outcome
            if None not in outcomes:
                self._advance(key, tuple(each for each in outcomes if each is not None))

    def _advance(self, key: Hashable, outcomes: tuple[Outcome, ...] | None) -> None:
        try:
            jobs = self._checks[key].send(outcomes)  # type: ignore[arg-type]
        except StopIteration as end:
            self.verdicts[key] = end.value
            del self._checks[key]
            return
        if self._batch is None:
            self._batch = self._pool().batch()
            self._call.begin(self._batch)
        self._outcomes[key] = [None] * len(jobs)
        for number, job in enumerate(jobs):
            self._batch.submit((key, number), job)


class _Call:
    """One call from asyncio, which may be cancelled before, while and after it is judged."""

    def __init__(self) -> None:
        """Begin without a batch."""
        self._lock = threading.Lock()
        self._batch: Batch | None = None
        self._cancelled = False

    def begin(self, batch: Batch) -> None:
        """Take the batch in which the call is judged."""
        with self._lock:
            self._batch = batch
            cancelled = self._cancelled
        if cancelled:
            batch.cancel()

    def cancel(self) -> None:
        """Drop the call's jobs."""
        with self._lock:
            self._cancelled = True
            batch = self._batch
        if batch is not None:
            batch.cancel()


def _reordered(order: Sequence[int], verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return verdicts, given in some order of their places, in the order of the places."""
    return [verdict for _, verdict in sorted(zip(order, verdicts, strict=True), key=lambda pair: pair[0])]


def _owners(items: Sequence[object], owners: Sequence[Hashable] | None) -> Sequence[Hashable]:
    if owners is None:
        return [None] * len(items)
    if len(owners) != len(items):
        raise ValueError(f"`owners` must be {len(items)}, one an item, got {len(owners)}")
    return owners


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
