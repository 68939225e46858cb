"""Which job waits for which zygote.

Owns the order alone: jobs of one batch in the order in which they came, batches in turn. Starts and runs nothing.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from populora_env.sandbox.errors import SandboxError
from populora_env.sandbox.jobs import Again, Job, Outcome
from populora_env.sandbox.kinds import Flavour, Kind

_ATTEMPTS = 2
MOST_SHARED: Final = 64
"""Jobs that one child does at most, of those that may share one."""
WORTH_A_CHILD: Final = 24
"""Jobs of one group from which on an idle zygote does not wait for more, as long as more are about to come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a zygote is started."""

    index: int
    kind: Kind
    plain_malloc: bool
    """Whether Python takes all memory from the C library: how addresses compare, and their lowest bits, then differ."""
    memory_bytes: int
    namespaces: bool
    bpf: bytes


@dataclass(frozen=True, slots=True)
class Place:
    """Where a job may run: in one zygote, in those of a kind, or in all of a flavour."""

    zygote: int | None = None
    hash_seed: int | None = None
    flavour: Flavour = Flavour.BARE


def place_of(job: Job) -> Place:
    """Return where a job may run."""
    return Place(zygote=job.zygote) if job.zygote is not None else Place(None, job.hash_seed, job.flavour)


def places_served(launch: Launch) -> tuple[Place, ...]:
    """Return what a zygote serves, the most particular first."""
    kind = launch.kind
    own = Place(launch.index), Place(None, kind.hash_seed, kind.flavour)
    return (*own, Place(None, None, kind.flavour)) if kind.general else own


@dataclass(slots=True, eq=False)
class Ticket:
    """A job in a queue, or at a zygote."""

    key: Hashable
    job: Job
    queue: Queue
    attempts: int = 0
    """Times that a zygote began with it and broke."""
    before: Outcome | None = None
    """What came of the inputs before those of this job, which the job before it left undone."""

    @property
    def group(self) -> Hashable:
        """Tickets of one group may go to a zygote together."""
        return id(self) if self.job.shares is None else (self.job.shares, self.job.limits)


Load: TypeAlias = tuple[Ticket, ...]
"""What one child does: tickets of one group."""


@dataclass(slots=True, eq=False)
class Queue:
    """The jobs of one caller: those that wait, and what came of the others."""

    waiting: dict[Place, OrderedDict[Hashable, deque[Ticket]]] = field(default_factory=dict)
    """By place and group, in the order in which the groups came."""
    growing: dict[Place, OrderedDict[Hashable, deque[Ticket]]] = field(default_factory=dict)
    """The same for groups that are not worth a child yet; as long as the queue is open they are left to grow."""
    finished: list[tuple[Hashable, Outcome]] = field(default_factory=list)
    open: bool = True
    """Whether more jobs are about to come; its owner does not wait yet."""
    n_waiting: int = 0
    n_running: int = 0
    error: SandboxError | None = None
    """Why nothing more will come."""

    @property
    def settled(self) -> bool:
        """Whether all has been said: nothing waits and nothing runs, or an error stopped it."""
        return self.error is not None or not (self.n_waiting or self.n_running)

    def add(self, ticket: Ticket, place: Place, *, first: bool = False) -> None:
        """Queue a job, at the end or before all others."""
        if self.error is not None:
            return
        self.n_waiting += 1
        name = ticket.group
        groups = self.waiting.setdefault(place, OrderedDict())
        group = groups.get(name)
        if group is None and self.open and ticket.job.shares is not None:
            growing = self.growing.setdefault(place, OrderedDict())
            group = growing.setdefault(name, deque())
            group.append(ticket)
            if len(group) >= WORTH_A_CHILD:
                groups[name] = growing.pop(name)
            return
        if group is None:
            groups[name] = group = deque()
        if first:
            group.appendleft(ticket)
            groups.move_to_end(name, last=False)
        else:
            group.append(ticket)

    def close(self) -> None:
        """Say that no more jobs are about to come: what was left to grow may be taken."""
        self.open = False
        for place, growing in self.growing.items():
            self.waiting.setdefault(place, OrderedDict()).update(growing)
        self.growing.clear()

    def take(self, places: tuple[Place, ...], most: int) -> Load:
        """Return the next jobs for a zygote that serves `places`: at most `most`, of one group; maybe none."""
        for place in places:
            if groups := self.waiting.get(place):
                name, group = next(iter(groups.items()))
                load = tuple(group.popleft() for _ in range(min(most, len(group))))
                if not group:
                    del groups[name]
                self.n_waiting -= len(load)
                self.n_running += len(load)
                return load[::-1] if load[0].job.last_first else load
        return ()

    def finish(self, ticket: Ticket, outcome: Outcome | Again) -> None:
        """Take what came of a job; what must run again is queued, as are inputs after one on which the child died."""
        self.n_running -= 1
        if isinstance(outcome, Again):
            if outcome is Again.IN_DOUBT:
                ticket.job = dataclasses.replace(ticket.job, shares=None)
            self.add(ticket, place_of(ticket.job), first=True)
            return
        tail = ticket.job.after(outcome)
        if ticket.before is not None:
            outcome = ticket.before.joined(outcome)
        if tail is None:
            self.finished.append((ticket.key, outcome))
        else:
            self.add(Ticket(ticket.key, tail, self, before=outcome), place_of(tail), first=True)

    def release(self, place: Place) -> None:
        """Let jobs that wait for a zygote which is gone run anywhere they fit."""
        for group in self.waiting.pop(place, {}).values():
            for ticket in group:
                self.n_waiting -= 1
                self.add(ticket, place_of(ticket.job))

    def stop(self, error: SandboxError) -> None:
        """Drop what waits; what still runs will be thrown away."""
        if self.error is None:
            self.error = error
        self.waiting.clear()
        self.growing.clear()
        self.n_waiting = 0


def next_load(queues: list[Queue], places: tuple[Place, ...], most: int) -> Load:
    """Return the next jobs for a zygote that serves `places`, maybe none; the queue that they come from goes last."""
    for number, queue in enumerate(queues):
        if queue.n_waiting and (load := queue.take(places, min(most, MOST_SHARED))):
            queues.append(queues.pop(number))
            return load
    return ()


def put_back(loads: deque[Load], place: Place, fault: BaseException) -> None:
    """Put the jobs of a broken zygote back into their queues; one that was begun twice stops its queue.

    What was begun waits at `place` for the fresh zygote: any other may be broken too and not yet found out.
    """
    for ticket in [ticket for load in reversed(loads) for ticket in reversed(load)]:
        ticket.queue.n_running -= 1
        if ticket.attempts >= _ATTEMPTS:
            error = SandboxError(f"the sandbox failed twice at one job: {fault}")
            error.__cause__ = fault
            ticket.queue.stop(error)
        else:
            ticket.queue.add(ticket, place if ticket.attempts else place_of(ticket.job), first=True)
    loads.clear()
