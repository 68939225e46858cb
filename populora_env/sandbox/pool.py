"""The pool of zygotes: which job runs where, what happens when a zygote breaks, and the end of all of them.

Owns scheduling, the self-test and retries. Owns no judgement (that is `populora_env.verifier`).
"""

from __future__ import annotations

import logging
import os
import select
import threading
import weakref
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from populora_env.config import VerifierConfig
from populora_env.sandbox import child
from populora_env.sandbox.canaries import CANARY_CPU_S, Canary, canaries
from populora_env.sandbox.errors import SandboxError
from populora_env.sandbox.jobs import FaultError, Job, Outcome, outcome_of
from populora_env.sandbox.seccomp_filter import build_filter
from populora_env.sandbox.worker import Launch, Spawner, Worker
from populora_env.values import encode

_log = logging.getLogger(__name__)

HASH_SEEDS: Final = (1, 2, 3, 4, 5, 6, 7, 8)
"""PYTHONHASHSEED values; the first two are always at work, the others start when a job asks for them."""
PLAIN_MALLOC: Final = frozenset(HASH_SEEDS[4:])
"""Hash seeds of the zygotes that do without Python's own allocator."""
_ATTEMPTS = 2
_POLL_S = 5.0
_NO_ARGUMENTS = encode(())


class Pool:
    """Zygotes that run jobs; safe from threads, one batch at a time."""

    def __init__(self, config: VerifierConfig) -> None:
        """Start the zygotes and see every canary blocked.

        Raises:
            SandboxError: What is required is not there.
        """
        self._config = config
        self._lock = threading.Lock()
        self._bpf = build_filter()
        self._spawner: Spawner | None = Spawner()
        self._workers: list[Worker] = []
        self._n_launched = 0
        self._owner = os.getpid()
        count = max(2, config.workers or _cores())
        self._seeds = Counter(HASH_SEEDS[number % 2] for number in range(count))
        _POOLS.add(self)
        try:
            self._complete(())
        except BaseException:
            self.close()
            raise
        missing = sorted(name for name, granted in self.layers.items() if not granted)
        _log.info("sandbox: %d zygotes, layers not granted: %s", count, ", ".join(missing) or "none")

    @property
    def layers(self) -> Mapping[str, bool]:
        """The best-effort layers, and whether every zygote has each."""
        first, *others = (worker.layers for worker in self._workers)
        return {name: granted and all(other[name] for other in others) for name, granted in first.items()}

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the zygotes."""
        return tuple(worker.pid for worker in self._workers)

    @property
    def usable(self) -> bool:
        """Whether this pool is open and belongs to this process."""
        return self._spawner is not None and self._owner == os.getpid()

    def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Run jobs in parallel; outcomes come in the order of the jobs.

        Raises:
            SandboxError: The sandbox failed twice at one job, or the pool is closed.
        """
        with self._lock:
            if not self.usable:
                raise SandboxError("expected an open pool of this process, got a closed or inherited one")
            self._complete(jobs)
            return self._drive(jobs)

    def close(self) -> None:
        """End all zygotes and collect them; does nothing the second time."""
        if self._owner != os.getpid():
            return
        with self._lock:
            workers, self._workers = self._workers, []
            spawner, self._spawner = self._spawner, None
            for worker in workers:
                worker.hang_up()
            for worker in workers:
                worker.close()
            if spawner is not None:
                spawner.close()

    def abandon(self) -> None:
        """Let go of zygotes that belong to the parent of this process; called in a forked child."""
        self._lock = threading.Lock()
        self._spawner = None
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.abandon()

    def _complete(self, jobs: Sequence[Job]) -> None:
        """Start the zygotes that are missing: for a hash seed that nobody asked for so far, or after a failure."""
        self._seeds |= Counter({job.hash_seed for job in jobs if job.hash_seed is not None})
        self._add(list((self._seeds - Counter(worker.launch.hash_seed for worker in self._workers)).elements()))

    def _add(self, hash_seeds: Sequence[int]) -> None:
        """Start zygotes with these seeds, all at once, and test each."""
        if not hash_seeds:
            return
        fresh: list[Worker] = []
        try:
            for seed in hash_seeds:
                fresh.append(self._spawn(self._launch(seed)))
            for worker in fresh:
                worker.finish_start()
            self._workers += fresh
            self._self_test([worker.launch.index for worker in fresh])
        except BaseException:
            self._workers = [worker for worker in self._workers if worker not in fresh]
            for worker in fresh:
                worker.close()
            raise

    def _launch(self, hash_seed: int) -> Launch:
        self._n_launched += 1
        return Launch(
            index=self._n_launched,
            hash_seed=hash_seed,
            plain_malloc=hash_seed in PLAIN_MALLOC,
            memory_bytes=self._config.memory_bytes,
            namespaces=self._config.namespaces,
            bpf=self._bpf,
        )

    def _spawn(self, launch: Launch) -> Worker:
        if self._spawner is None:
            raise SandboxError("expected an open pool, got a closed one")
        return self._spawner.spawn(launch)

    def _self_test(self, indices: Sequence[int]) -> None:
        tests = [(canary, index) for index in indices for canary in canaries()]
        jobs = [_canary_job(canary, index, self._config) for canary, index in tests]
        for (canary, _), outcome in zip(tests, self._drive(jobs), strict=True):
            if not canary.stopped(outcome.results[0]):
                raise SandboxError(f"expected the sandbox to stop the canary {canary.name!r}, got {outcome.results[0]}")

    def _drive(self, jobs: Sequence[Job]) -> list[Outcome]:
        batch = _Batch(jobs)
        poll = select.poll()
        by_fd: dict[int, Worker] = {}
        try:
            while batch.left:
                if any([self._feed(worker, batch) for worker in list(self._workers)]):
                    continue
                busy = {worker.socket.fileno(): worker for worker in self._workers if worker.job is not None}
                if not busy:
                    raise SandboxError("expected every job to fit a zygote, got one that fits none")
                for gone in by_fd.keys() - busy.keys():
                    poll.unregister(gone)
                for new in busy.keys() - by_fd.keys():
                    poll.register(new, select.POLLIN)
                by_fd = busy
                ready = {fd for fd, _ in poll.poll(_POLL_S * 1000)}
                for fd, worker in busy.items():
                    self._collect(worker, batch, readable=fd in ready)
        except BaseException:
            self._reset()
            raise
        return batch.finished()

    def _feed(self, worker: Worker, batch: _Batch) -> bool:
        """Give an idle zygote a job; return whether it had to be replaced, and its successor is idle."""
        number = batch.take(worker.launch) if worker.job is None else None
        if number is None:
            return False
        job = batch.jobs[number]
        try:
            worker.send(job, child.encode_job(job.program, job.inputs, job.calls, tight=job.tight))
        except FaultError as fault:
            self._replace(worker, batch, fault)
            return True
        return False

    def _collect(self, worker: Worker, batch: _Batch, *, readable: bool) -> None:
        job = worker.job
        if job is None:
            return
        try:
            if not readable:
                worker.check_deadline()
                return
            reply = worker.receive()
            if reply is not None:
                batch.finish(worker.launch, outcome_of(job, reply))
        except FaultError as fault:
            self._replace(worker, batch, fault)

    def _replace(self, worker: Worker, batch: _Batch, fault: FaultError) -> None:
        """Put a fresh zygote in the place of a broken one, and its job back into the queue."""
        said = worker.close()
        _log.warning("sandbox fault: %s; %s", fault, said or "no message")
        self._workers.remove(worker)
        batch.retry(worker.launch, fault)
        fresh = self._spawn(worker.launch)
        self._workers.append(fresh)
        fresh.finish_start()

    def _reset(self) -> None:
        """End the zygotes that are busy after an interruption: their replies would be taken for those of others."""
        for worker in [worker for worker in self._workers if worker.job is not None]:
            self._workers.remove(worker)
            worker.close()


class _Batch:
    """The jobs of one call: which are waiting for whom, which are running, and what came of the others."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self.left = len(jobs)
        self._outcomes: list[Outcome | None] = [None] * len(jobs)
        self._attempts = [0] * len(jobs)
        self._running: dict[int, int] = {}
        self._waiting: dict[_Place, deque[int]] = {}
        for number, job in enumerate(jobs):
            self._waiting.setdefault(_Place(job.hash_seed, job.zygote), deque()).append(number)

    def take(self, launch: Launch) -> int | None:
        for place in launch_places(launch):
            if waiting := self._waiting.get(place):
                number = waiting.popleft()
                self._attempts[number] += 1
                self._running[launch.index] = number
                return number
        return None

    def finish(self, launch: Launch, outcome: Outcome) -> None:
        self._outcomes[self._running.pop(launch.index)] = outcome
        self.left -= 1

    def retry(self, launch: Launch, fault: FaultError) -> None:
        number = self._running.pop(launch.index)
        if self._attempts[number] >= _ATTEMPTS:
            raise SandboxError(f"the sandbox failed twice at one job: {fault}") from fault
        # The fresh zygote has the index of the broken one; any other may be broken too and not yet found out.
        self._waiting.setdefault(_Place(None, launch.index), deque()).appendleft(number)

    def finished(self) -> list[Outcome]:
        return [outcome for outcome in self._outcomes if outcome is not None]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a job may run."""

    hash_seed: int | None
    zygote: int | None


def launch_places(launch: Launch) -> Iterable[_Place]:
    """Return the queues that a zygote serves, the most particular first."""
    return (_Place(None, launch.index), _Place(launch.hash_seed, None), _Place(None, None))


def _canary_job(canary: Canary, index: int, config: VerifierConfig) -> Job:
    return Job(
        program=canary.program,
        inputs=(_NO_ARGUMENTS,),
        cpu_s=CANARY_CPU_S,
        wall_s=max(config.wall_s, 10.0),
        zygote=index,
    )


def _cores() -> int:
    return len(os.sched_getaffinity(0))


_POOLS: weakref.WeakSet[Pool] = weakref.WeakSet()


def _abandon_all() -> None:
    for pool in list(_POOLS):
        pool.abandon()


os.register_at_fork(after_in_child=_abandon_all)
