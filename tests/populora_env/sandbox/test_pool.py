"""The life of zygotes: faults, retries, refusals, and that nothing is left behind."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future

import pytest
from processes import ROOT, descendants, left_of, state

from populora_env.config import VerifierConfig
from populora_env.sandbox import pool as pool_module
from populora_env.sandbox.errors import SandboxError
from populora_env.sandbox.jobs import Job
from populora_env.sandbox.kinds import HASH_SEEDS
from populora_env.sandbox.pool import Pool
from populora_env.sandbox.worker import Worker
from populora_env.values import decode, encode

ENVIRONMENT = {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
_ALLOW_EVERYTHING = b"\x06\0\0\0\0\0\xff\x7f"
_KILL_EVERYTHING = b"\x06\0\0\0\0\0\0\x80"


@pytest.fixture
def pool() -> Iterator[Pool]:
    fresh = Pool(VerifierConfig(workers=2))
    yield fresh
    fresh.close()


def job(program: str = "def f(x):\n    return x + 1\n", *, hash_seed: int | None = None, cpu_s: float = 0.5) -> Job:
    return Job(program=program, inputs=(encode((1,)),), cpu_s=cpu_s, wall_s=10.0, hash_seed=hash_seed)


def values(pool: Pool, jobs: list[Job]) -> list[object]:
    return [decode(outcome.results[0].payload) for outcome in pool.run(jobs)]


def test_hash_seeds_order_two_element_sets_both_ways(pool: Pool) -> None:
    program = "def f(x):\n    return [list({a, b})[0] == a for a, b in ('ab', 'cd', 'xy', 'pq')]\n"
    orders = values(pool, [job(program, hash_seed=seed) for seed in HASH_SEEDS])
    assert all(len({tuple(order)[pair] for order in orders}) == 2 for pair in range(4))  # type: ignore[arg-type]


def test_zygotes_for_rare_hash_seeds_start_when_they_are_asked_for(pool: Pool) -> None:
    before = len(pool.pids)
    assert values(pool, [job(hash_seed=HASH_SEEDS[5])]) == [2]
    assert len(pool.pids) == before + 1
    assert values(pool, [job(hash_seed=HASH_SEEDS[5])]) == [2]
    assert len(pool.pids) == before + 1


def test_a_zygote_asked_for_while_others_start_is_started_too(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    rare, rarer = HASH_SEEDS[2:4]
    batch, later = pool.batch(), pool.batch()
    batch.submit("first", job(hash_seed=rare))
    asked: list[int] = []
    self_test = Pool._self_test

    def submit_meanwhile(self: Pool, fresh: list[Worker]) -> None:
        self_test(self, fresh)
        with self._unlocked():  # as while it waits for the canaries
            if not asked:
                later.submit("second", job(hash_seed=rarer))
                asked.append(rarer)

    with monkeypatch.context() as patched:
        patched.setattr(Pool, "_self_test", submit_meanwhile)
        assert [key for key, _ in batch.results()] == ["first"]
    assert [key for key, _ in later.results()] == ["second"]


def test_there_are_at_least_two_zygotes() -> None:
    small = Pool(VerifierConfig(workers=1))
    try:
        assert len(small.pids) == 2
    finally:
        small.close()


def test_a_zygote_that_died_between_batches_is_replaced(pool: Pool) -> None:
    for pid in pool.pids:
        os.kill(pid, signal.SIGKILL)
    assert values(pool, [job()] * 4) == [2] * 4


def test_a_zygote_that_dies_at_work_costs_no_job(pool: Pool) -> None:
    spin = "def f(x):\n    for _ in range(3000000): pass\n    return x + 1\n"
    killer = threading.Timer(0.1, lambda: [os.kill(pid, signal.SIGKILL) for pid in pool.pids])
    killer.start()
    assert values(pool, [job(spin, cpu_s=5.0)] * 4) == [2] * 4
    killer.join()


def test_a_fault_that_comes_twice_is_a_sandbox_error_and_not_a_verdict(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise pool_module.FaultError("broken on purpose")

    monkeypatch.setattr(pool_module, "outcomes_of", fail)
    with pytest.raises(SandboxError, match="twice"):
        pool.run([job()])
    monkeypatch.undo()
    assert values(pool, [job()]) == [2]


def test_an_interruption_leaves_a_pool_that_still_works(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pool_module, "outcomes_of", interrupt)
    with pytest.raises(KeyboardInterrupt):
        pool.run([job()] * 5)
    monkeypatch.undo()
    assert values(pool, [job()] * 3) == [2] * 3


@pytest.mark.parametrize("moment", ["spawn", "start", "self-test"])
def test_an_interruption_at_the_start_leaves_nothing(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, name = {"spawn": (Future, "result"), "start": (Worker, "finish_start"), "self-test": (Pool, "_self_test")}[
        moment
    ]
    original = getattr(owner, name)

    def interrupt(*arguments: object) -> object:
        if threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return original(*arguments)

    before, descriptors = descendants(os.getpid()), len(os.listdir("/proc/self/fd"))
    threads = set(threading.enumerate())
    monkeypatch.setattr(owner, name, interrupt)
    with pytest.raises(KeyboardInterrupt):
        Pool(VerifierConfig())
    assert not left_of(descendants(os.getpid()) - before, seconds=5.0)
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert not set(threading.enumerate()) - threads


@pytest.mark.parametrize(
    ("bpf", "message"), [(_ALLOW_EVERYTHING, "canary"), (_KILL_EVERYTHING, "set-up"), (b"\xff" * 8, "set-up")]
)
def test_a_filter_that_does_not_hold_is_refused(bpf: bytes, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "build_filter", lambda: bpf)
    before = descendants(os.getpid())
    with pytest.raises(SandboxError, match=message):
        Pool(VerifierConfig())
    assert not left_of(descendants(os.getpid()) - before, seconds=5.0)


def test_a_python_that_does_not_start_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    with pytest.raises(SandboxError, match="start"):
        Pool(VerifierConfig())
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(SandboxError, match="start"):
        Pool(VerifierConfig())


def test_closing_leaves_no_process_and_no_descriptor() -> None:
    before, descriptors = descendants(os.getpid()), len(os.listdir("/proc/self/fd"))
    for _ in range(2):
        fresh = Pool(VerifierConfig())
        started = descendants(os.getpid()) - before
        assert started
        fresh.run([job(), job("def f(x):\n    while True: pass\n", cpu_s=0.05)])
        fresh.close()
        fresh.close()
        assert not left_of(started, seconds=0.0)
    assert len(os.listdir("/proc/self/fd")) == descriptors
    with pytest.raises(SandboxError, match="closed"):
        fresh.run([job()])


def test_no_zombie_is_left_at_work() -> None:
    before = descendants(os.getpid())
    with contextlib.closing(Pool(VerifierConfig(workers=2))) as fresh:
        fresh.run([job("import os\ndef f(x):\n    os.fork()\n"), job("def f(x):\n    1 / 0\n")] * 10)
        started = descendants(os.getpid()) - before
        assert started
        assert all(state(pid) != "Z" for pid in started)


_PARENT = """
import sys, time
from populora_env.verifier import Job, Verifier
from populora_env.config import VerifierConfig
from populora_env.values import encode
verifier = Verifier(VerifierConfig(namespaces=sys.argv[1] == "1", cpu_s=60, wall_s=60)).__enter__()
print("started", flush=True)
verifier.run([Job(program="def f():\\n    while True: pass\\n", inputs=(encode(()),), cpu_s=60, wall_s=60)] * 2)
"""


@pytest.mark.parametrize("namespaces", ["1", "0"])
def test_nothing_outlives_a_parent_that_is_killed(namespaces: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, namespaces], stdout=subprocess.PIPE, cwd=ROOT, env=ENVIRONMENT
    )
    assert parent.stdout is not None
    try:
        assert select.select([parent.stdout], [], [], 30)[0]
        assert parent.stdout.readline() == b"started\n"
        time.sleep(0.1)
        below = descendants(parent.pid)
        assert len(below) >= 4, "two zygotes and their busy children"
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
    assert not left_of(below, seconds=5.0)


def test_a_parent_that_forgets_to_close_ends_and_takes_everything_along() -> None:
    program = "from populora_env.verifier import Verifier\nv = Verifier()\nprint(*v._attach().pids)\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=ENVIRONMENT,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    assert not left_of({int(pid) for pid in done.stdout.split()}, seconds=5.0)


@pytest.mark.slow
def test_verdicts_do_not_depend_on_the_load_of_the_machine(pool: Pool) -> None:
    spin = "import time\ndef f(x):\n    end = time.process_time() + x\n    while time.process_time() < end: pass\n"
    jobs = [
        Job(program=spin, inputs=(encode((seconds,)),), cpu_s=0.2, wall_s=60.0) for seconds in (0.14, 0.3) for _ in "ab"
    ]
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(6)]
    try:
        statuses = [str(outcome.results[0].status) for outcome in pool.run(jobs)]
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert statuses == ["ok", "ok", "timeout", "timeout"]
