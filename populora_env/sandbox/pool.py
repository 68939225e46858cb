"""The pool of zygotes: which job runs where, what happens when a zygote breaks, and the end of all of them.

Owns the drive, the self-test and retries. Owns no judgement (that is `populora_env.verifier`).

There is no thread of its own: whoever waits for jobs drives the zygotes, for all that wait; when it has what it wants,
another takes over. So a lone caller pays for no hand-over between threads.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading
import weakref
from collections.abc import Hashable, Iterator, Mapping, Sequence

from populora_env.config import VerifierConfig
from populora_env.sandbox.batch import Batch
from populora_env.sandbox.canaries import canaries, canary_job, require_stopped
from populora_env.sandbox.errors import SandboxError
from populora_env.sandbox.jobs import FaultError, Job, Outcome, outcomes_of
from populora_env.sandbox.kinds import PLAIN_MALLOC, Flavour, Kind, Wanted
from populora_env.sandbox.queues import (
    Launch,
    Load,
    Place,
    Queue,
    Ticket,
    next_load,
    place_of,
    put_back,
)
from populora_env.sandbox.seccomp_filter import build_filter
from populora_env.sandbox.worker import Spawner, Worker

_log = logging.getLogger(__name__)

_POLL_S = 5.0
_AHEAD = 2
"""Jobs that a zygote is given at once while many wait: it then begins with the next without waiting for us."""
_MANY = 4
"""Waiting jobs a zygote from which on it is given more than one: near the end of a batch a job must not wait behind
another."""
_SHARED_AT_LEAST = 8
"""Jobs of one group that are not spread over several zygotes, even if some are idle: a fork costs as much."""


class Pool:
    """Zygotes that run jobs; safe from threads."""

    def __init__(self, config: VerifierConfig) -> None:
        """Start the zygotes and see every canary blocked.

        Raises:
            SandboxError: What is required is not there.
        """
        self._config = config
        self._changed = threading.Condition(threading.Lock())
        """Its lock guards all that follows; it is told when a queue may have settled, and when nobody drives."""
        self._driven = False
        self._queues: list[Queue] = []
        self._workers: list[Worker] = []
        self._n_launched = 0
        self._bpf = build_filter()
        self._spawner: Spawner | None = Spawner()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        """Wakes the thread that drives."""
        self._owner = os.getpid()
        self._count = max(2, config.workers or len(os.sched_getaffinity(0)))
        self._wanted = Wanted(self._count)
        _POOLS.add(self)
        try:
            with self._changed:
                self._wanted.add(Flavour.BARE)
                self._complete()
        except BaseException:
            self.close()
            raise
        missing = sorted(name for name, granted in self.layers.items() if not granted)
        _log.info("sandbox: %d zygotes, layers not granted: %s", self._count, ", ".join(missing) or "none")

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

        Inputs after one on which the child died are run again, in a child of their own.

        Raises:
            SandboxError: The sandbox failed twice at one job, or the pool is closed.
        """
        with self.batch() as batch:
            for number, job in enumerate(jobs):
                batch.submit(number, job)
            outcomes = dict(batch.results())
        return [outcomes[number] for number in range(len(jobs))]

    def batch(self) -> Batch:
        """Return an empty batch."""
        return Batch(self)

    def submit(self, queue: Queue, key: Hashable, job: Job) -> None:
        """Queue a job; a zygote that it needs and that is not there yet is started when somebody drives.

        Raises:
            SandboxError: The pool is closed, or the queue has failed.
        """
        with self._changed:
            self._require_usable()
            if queue.error is not None:
                raise queue.error
            if queue not in self._queues:
                self._queues.append(queue)
            queue.add(Ticket(key, job, queue), place_of(job))
            if job.zygote is None:
                self._wanted.add(job.flavour, hash_seed=job.hash_seed)
            if self._driven:
                self._ring()

    def drive(self, queue: Queue, *, wait: bool) -> None:
        """Let jobs go on.

        Args:
            queue: Whose jobs the caller is after.
            wait: Whether to return only when one of them has finished, or none is left.

        Raises:
            SandboxError: The sandbox failed twice at one of them, or the pool is closed.
        """
        with self._changed:
            if queue.open and wait:
                queue.close()
                if self._driven:
                    self._ring()
            while True:
                if queue.error is not None:
                    raise queue.error
                if queue.finished or queue.settled:
                    return
                self._require_usable()
                if not self._driven:
                    self._lead(0.0 if not wait else _POLL_S)
                elif wait:
                    self._changed.wait()
                if not wait:
                    return

    def forget(self, queue: Queue) -> None:
        """Drop what is left of a queue; jobs that already run end by themselves."""
        with self._changed:
            queue.stop(SandboxError("expected a batch that is still wanted, got one that was cancelled"))
            if queue in self._queues:
                self._queues.remove(queue)
            self._changed.notify_all()

    def close(self) -> None:
        """End all zygotes and collect them; whoever waits gets a SandboxError. Does nothing the second time."""
        if self._owner != os.getpid():
            return
        with self._changed:
            for queue in self._queues:
                queue.stop(_closed())
            self._queues.clear()
            workers, self._workers = self._workers, []
            spawner, self._spawner = self._spawner, None
            if spawner is None:
                return
            self._ring()
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._driven)
            for worker in workers:
                worker.hang_up()
            for worker in workers:
                worker.close()
            spawner.close()
            os.close(self._bell)

    def abandon(self) -> None:
        """Let go of zygotes that belong to the parent of this process; called in a forked child."""
        self._changed = threading.Condition(threading.Lock())
        self._driven = False
        self._queues.clear()
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.abandon()
        if self._spawner is not None:
            self._spawner = None
            os.close(self._bell)

    # What follows is called with the lock held.

    def _require_usable(self) -> None:
        if not self.usable:
            raise _closed()

    def _ring(self) -> None:
        os.eventfd_write(self._bell, 1)

    def _lead(self, timeout_s: float) -> None:
        """Drive the zygotes for one round, for all queues."""
        self._driven = True
        try:
            self._complete()
            self._round(timeout_s)
        except SandboxError as error:
            for queue in self._queues:
                queue.stop(error)
            self._queues.clear()
            self._reset()
            raise
        except BaseException:
            self._reset()
            raise
        finally:
            self._driven = False
            self._changed.notify_all()

    def _round(self, timeout_s: float) -> None:
        """Give jobs out, wait until something has happened, take in what has come."""
        if self._feed():
            return
        poll = select.poll()
        poll.register(self._bell, select.POLLIN)
        busy = {worker.socket.fileno(): worker for worker in self._workers if worker.loads}
        if not busy and any(queue.open for queue in self._queues):
            return
        if not busy:
            raise SandboxError("expected every job to fit a zygote, got one that fits none")
        for descriptor, worker in busy.items():
            poll.register(descriptor, select.POLLIN | (select.POLLOUT if worker.wants_to_send else 0))
        with self._unlocked():
            events = dict(poll.poll(timeout_s * 1000))
        if not self.usable:
            return
        if self._bell in events:
            os.eventfd_read(self._bell)
        for descriptor, worker in busy.items():
            self._attend(worker, events.get(descriptor, 0))

    @contextlib.contextmanager
    def _unlocked(self) -> Iterator[None]:
        self._changed.release()
        try:
            yield
        finally:
            self._changed.acquire()

    def _feed(self) -> bool:
        """Give every zygote a job, and one ahead where many wait; return whether one had to be replaced."""
        replaced = False
        waiting = sum(queue.n_waiting for queue in self._queues)
        for ahead in range(_AHEAD if waiting >= _MANY * len(self._workers) else 1):
            for worker in list(self._workers):
                if len(worker.loads) == ahead and (load := self._next_for(worker, waiting)):
                    try:
                        worker.send(load)
                    except FaultError as fault:
                        self._replace(worker, fault)
                        replaced = True
        return replaced

    def _next_for(self, worker: Worker, waiting: int) -> Load:
        places = worker.places if worker.trusted else (Place(worker.launch.index),)
        return next_load(self._queues, places, max(_SHARED_AT_LEAST, -(-waiting // self._count)))

    def _attend(self, worker: Worker, event: int) -> None:
        """Do what a zygote's socket asks for."""
        try:
            if event & select.POLLOUT:
                worker.flush()
            if not event & ~select.POLLOUT:
                worker.check_deadline()
                return
            worker.receive()
            while (reply := worker.reply()) is not None:
                outcomes = outcomes_of([ticket.job for ticket in worker.loads[0]], reply)
                for ticket, outcome in zip(worker.turn_to_next(), outcomes, strict=True):
                    ticket.queue.finish(ticket, outcome)
            self._queues = [queue for queue in self._queues if not queue.settled]
        except FaultError as fault:
            self._replace(worker, fault)

    def _replace(self, worker: Worker, fault: FaultError) -> None:
        """Put a fresh zygote in the place of a broken one, and its jobs back into their queues."""
        self._workers.remove(worker)
        said = worker.close()
        _log.warning("sandbox fault: %s; %s", fault, said or "no message")
        for ticket in worker.loads[0] if worker.loads else ():
            ticket.attempts += 1
        put_back(worker.loads, Place(worker.launch.index), fault)
        fresh = self._spawn(worker.launch)
        try:
            fresh.finish_start()
        except BaseException:
            fresh.close()
            raise
        fresh.trusted = worker.trusted
        self._workers.append(fresh)

    def _reset(self) -> None:
        """End the zygotes that are busy after an interruption: their replies would be taken for those of others."""
        for worker in [worker for worker in self._workers if worker.loads or not worker.trusted]:
            self._workers.remove(worker)
            put_back(worker.loads, Place(worker.launch.index), InterruptedError())
            for queue in self._queues:
                queue.release(Place(worker.launch.index))
            worker.close()
        self._wanted.changed = True

    def _complete(self) -> None:
        """Start the zygotes that are missing: of a kind that nobody asked for so far, or after an interruption."""
        while self._wanted.changed:
            self._wanted.changed = False  # before: while zygotes start, other threads may ask for more kinds
            self._add(self._wanted.missing(worker.launch.kind for worker in self._workers))

    def _add(self, kinds: Sequence[Kind]) -> None:
        """Start zygotes, all at once, and test each."""
        fresh: list[Worker] = []
        try:
            for kind in kinds:
                fresh.append(self._spawn(self._launch(kind)))
            for worker in fresh:
                worker.finish_start()
            self._workers += fresh
            self._self_test(fresh)
        except BaseException:
            self._workers = [worker for worker in self._workers if worker not in fresh]
            for worker in fresh:
                worker.close()
            raise

    def _launch(self, kind: Kind) -> Launch:
        self._n_launched += 1
        return Launch(
            index=self._n_launched,
            kind=kind,
            plain_malloc=kind.hash_seed in PLAIN_MALLOC,
            memory_bytes=self._config.memory_bytes,
            namespaces=self._config.namespaces,
            bpf=self._bpf,
        )

    def _spawn(self, launch: Launch) -> Worker:
        if self._spawner is None:
            raise _closed()
        return self._spawner.spawn(launch)

    def _self_test(self, fresh: Sequence[Worker]) -> None:
        """See every canary stopped by every fresh zygote; until then it gets no other job."""
        queue = Queue(open=False)
        self._queues.append(queue)
        try:
            for worker in fresh:
                index = worker.launch.index
                for canary in canaries():
                    ticket = Ticket(canary, canary_job(canary, index, self._config), queue)
                    queue.add(ticket, place_of(ticket.job))
            while not queue.settled:
                self._round(_POLL_S)
                self._require_usable()
        finally:
            if queue in self._queues:
                self._queues.remove(queue)
        if queue.error is not None:
            raise queue.error
        require_stopped(queue.finished)
        for worker in self._workers:
            worker.trusted = True


def _closed() -> SandboxError:
    return SandboxError("expected an open pool of this process, got a closed or inherited one")


_POOLS: weakref.WeakSet[Pool] = weakref.WeakSet()


def _abandon_all() -> None:
    for pool in list(_POOLS):
        pool.abandon()


os.register_at_fork(after_in_child=_abandon_all)
