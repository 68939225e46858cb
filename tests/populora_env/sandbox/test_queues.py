"""Who gets which job: hand-worked cases of the order."""

from __future__ import annotations

from typing import Any

from populora_env.sandbox.errors import SandboxError
from populora_env.sandbox.jobs import Again, CallResult, Job, Outcome
from populora_env.sandbox.kinds import Flavour, Kind
from populora_env.sandbox.queues import (
    MOST_SHARED,
    WORTH_A_CHILD,
    Launch,
    Place,
    Queue,
    Ticket,
    next_load,
    place_of,
    places_served,
)
from populora_env.types import Status

ANYWHERE = (Place(),)


def job(program: str = "def f(): pass", *, inputs: int = 1, **settings: Any) -> Job:
    return Job(program=program, inputs=(b"u0:",) * inputs, cpu_s=1.0, wall_s=1.0, **settings)


def add(queue: Queue, key: str, asked: Job) -> None:
    queue.add(Ticket(key, asked, queue), place_of(asked))


def keys(load: tuple[Ticket, ...]) -> list[object]:
    return [ticket.key for ticket in load]


def outcome(done: int, total: int = 1) -> Outcome:
    ok, missing = CallResult(Status.OK), CallResult(Status.NO_RESULT)
    return Outcome(results=(ok,) * done + (missing,) * (total - done), done=done, cpu_ms=1.0)


def launch(hash_seed: int) -> Launch:
    kind = Kind(hash_seed=hash_seed, flavour=Flavour.BARE)
    return Launch(index=5, kind=kind, plain_malloc=False, memory_bytes=1, namespaces=True, bpf=b"")


def test_a_zygote_serves_itself_first_then_its_seed_then_everybody() -> None:
    assert places_served(launch(2)) == (Place(5), Place(None, 2), Place())
    assert places_served(launch(3)) == (Place(5), Place(None, 3))
    assert place_of(job("import re\ndef f(): pass", hash_seed=3)) == Place(None, 3, Flavour.LIBRARY)
    assert place_of(job(zygote=5, hash_seed=3)) == Place(5)


def test_jobs_that_share_nothing_go_one_by_one_in_order() -> None:
    queue = Queue()
    for key in "abc":
        add(queue, key, job())
    assert [keys(queue.take(ANYWHERE, 8)) for _ in range(4)] == [["a"], ["b"], ["c"], []]
    assert (queue.n_waiting, queue.n_running) == (0, 3)


def test_groups_grow_while_the_queue_is_open_until_they_are_worth_a_child() -> None:
    queue = Queue()
    for number in range(WORTH_A_CHILD - 1):
        add(queue, f"a{number}", job(shares="a"))
    add(queue, "b", job(shares="b"))
    assert queue.take(ANYWHERE, 99) == ()
    for number in range(WORTH_A_CHILD - 1, WORTH_A_CHILD + 2):
        add(queue, f"a{number}", job(shares="a"))
    assert len(queue.take(ANYWHERE, 99)) == WORTH_A_CHILD + 2
    add(queue, "last", job(shares="a"))
    assert queue.take(ANYWHERE, 99) == ()
    queue.close()
    assert [keys(queue.take(ANYWHERE, 99)) for _ in range(2)] == [["b"], ["last"]]
    assert queue.n_waiting == 0


def test_no_child_does_more_than_the_most() -> None:
    queue = Queue(open=False)
    for number in range(MOST_SHARED + 1):
        add(queue, str(number), job(shares="a"))
    assert len(next_load([queue], ANYWHERE, 999)) == MOST_SHARED
    assert len(next_load([queue], ANYWHERE, 999)) == 1


def test_replays_run_in_the_reverse_order_and_with_replays_alone() -> None:
    queue = Queue(open=False)
    for key in "abc":
        add(queue, key, job(shares="m"))
        add(queue, key.upper(), job(shares="m", last_first=True))
    assert [keys(queue.take(ANYWHERE, 9)) for _ in range(2)] == [["a", "b", "c"], ["C", "B", "A"]]


def test_a_load_is_never_longer_than_asked_nor_of_different_limits() -> None:
    queue = Queue(open=False)
    for key in "abc":
        add(queue, key, job(shares="a"))
    add(queue, "tight", job(shares="a", tight=True))
    assert keys(queue.take(ANYWHERE, 2)) == ["a", "b"]
    assert keys(queue.take(ANYWHERE, 9)) == ["c"]
    assert keys(queue.take(ANYWHERE, 9)) == ["tight"]


def test_inputs_after_a_death_are_queued_again_and_joined() -> None:
    queue = Queue(open=False)
    add(queue, "a", job(inputs=3))
    (ticket,) = queue.take(ANYWHERE, 1)
    queue.finish(ticket, outcome(2, 3))
    assert not queue.finished
    (tail,) = queue.take(ANYWHERE, 1)
    assert len(tail.job.inputs) == 1
    queue.finish(tail, outcome(1))
    ((key, whole),) = queue.finished
    assert key == "a"
    assert [result.status for result in whole.results] == [Status.OK] * 3
    assert queue.settled


def test_what_was_not_reached_runs_again_with_others_what_is_in_doubt_alone() -> None:
    queue = Queue(open=False)
    for key in "abc":
        add(queue, key, job(shares="g"))
    first, second, third = queue.take(ANYWHERE, 3)
    queue.finish(first, outcome(1))
    queue.finish(second, Again.IN_DOUBT)
    queue.finish(third, Again.NOT_REACHED)
    loads = [queue.take(ANYWHERE, 9), queue.take(ANYWHERE, 9)]
    assert sorted(map(keys, loads)) == [["b"], ["c"]]
    assert {ticket.key: ticket.job.shares for load in loads for ticket in load} == {"b": None, "c": "g"}


def test_a_stopped_queue_gives_and_takes_nothing() -> None:
    queue = Queue()
    add(queue, "a", job())
    queue.stop(SandboxError("first"))
    queue.stop(SandboxError("second"))
    add(queue, "b", job())
    assert queue.take(ANYWHERE, 1) == ()
    assert queue.settled
    assert str(queue.error) == "first"


def test_jobs_of_a_zygote_that_is_gone_may_run_elsewhere() -> None:
    queue = Queue(open=False)
    asked = job()
    queue.add(Ticket("a", asked, queue, attempts=1), Place(7))
    assert queue.take(ANYWHERE, 1) == ()
    queue.release(Place(7))
    assert keys(queue.take(ANYWHERE, 1)) == ["a"]
