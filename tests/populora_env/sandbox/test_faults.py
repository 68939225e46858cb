"""Faults of the sandbox, real ones: the job runs again once, then it is a SandboxError, never a verdict."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from processes import ROOT, as_oneself, as_user, descendants, left_of, orphans_come_here, state

from populora_env.config import VerifierConfig
from populora_env.sandbox import worker as worker_module
from populora_env.sandbox.errors import SandboxError
from populora_env.sandbox.jobs import Job, Outcome
from populora_env.sandbox.pool import Pool
from populora_env.values import decode, encode

_USER = 61234
"""An ordinary user who has no other processes."""
SPIN = "def f(x):\n    for _ in range(6000000): pass\n    return x + 1\n"
"""Some tenths of a second of work."""


@pytest.fixture(params=[True, False], ids=["namespaces", "no_namespaces"])
def pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    fresh = Pool(VerifierConfig(workers=2, namespaces=request.param))
    yield fresh
    fresh.close()


def job(program: str = "def f(x):\n    return x + 1\n", *, count: int = 1) -> Job:
    return Job(program=program, inputs=tuple(encode((n,)) for n in range(count)), cpu_s=10.0, wall_s=60.0)


def values(outcomes: list[Outcome]) -> list[object]:
    return [decode(result.payload) for outcome in outcomes for result in outcome.results]


class Meanwhile:
    """Something that happens to the processes of the pools while they work, again and again or once."""

    def __init__(self, act: Callable[[set[int]], bool], *, once: bool) -> None:
        """Prepare to call `act` with the ids of all processes below this one, until it says that it did something."""
        self._act, self._once = act, once
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.times = 0

    def __enter__(self) -> Meanwhile:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.005):
            with contextlib.suppress(OSError):
                if self._act(set(filter(is_of_a_zygote, descendants(os.getpid())))):
                    self.times += 1
                    if self._once:
                        return


def is_of_a_zygote(pid: int) -> bool:
    """Return whether a process is a zygote or a child of one, and not somebody else's below this one."""
    with contextlib.suppress(OSError):
        return b"zygote.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def kill_children(pids: set[int]) -> bool:
    """Kill what runs jobs: the processes at the end of the tree."""
    parents = {parent for pid in pids if (parent := parent_of(pid))}
    children = {pid for pid in pids - parents if is_working(pid)}
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    return bool(children)


def parent_of(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def is_working(pid: int) -> bool:
    """Return whether a process is under the filter of a child, and has been at work for a while."""
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "Seccomp:\t2" in Path(f"/proc/{pid}/status").read_text() and int(fields[11]) >= 3
    return False


def kill_zygotes(pids: set[int]) -> bool:
    """Kill everything of a zygote that has a job."""
    if not any(map(is_working, pids)):
        return False
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return True


def forbid_forks(pids: set[int]) -> bool:
    """Let no process have children any more: what a kernel out of process ids answers too."""
    return limit(pids, resource.RLIMIT_NPROC)


def forbid_pipes(pids: set[int]) -> bool:
    return limit(pids, resource.RLIMIT_NOFILE)


def limit(pids: set[int], kind: int) -> bool:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, kind, (0, 0))
    return bool(pids)


def require_limits_of_others(act: Callable[[set[int]], bool]) -> None:
    try:
        act(set(filter(is_of_a_zygote, descendants(os.getpid()))))
    except PermissionError:
        pytest.skip("the limits of other users' processes cannot be set here; the test of an ordinary user does it")


@pytest.mark.parametrize("act", [kill_children, kill_zygotes])
def test_a_job_whose_process_is_killed_runs_again(pool: Pool, act: Callable[[set[int]], bool]) -> None:
    with Meanwhile(act, once=True) as meanwhile:
        assert values(pool.run([job(SPIN)] * 2)) == [1, 1]
        assert meanwhile.times == 1


@pytest.mark.parametrize("act", [kill_children, kill_zygotes])
def test_a_job_whose_process_is_killed_twice_is_a_sandbox_error(pool: Pool, act: Callable[[set[int]], bool]) -> None:
    with Meanwhile(act, once=False) as meanwhile:
        with pytest.raises(SandboxError):
            pool.run([job(SPIN)] * 2)
        assert meanwhile.times >= 2
    assert values(pool.run([job()] * 4)) == [1] * 4, "the pool works on"


@pytest.mark.parametrize("act", [forbid_forks, forbid_pipes])
def test_a_zygote_that_cannot_fork_is_replaced(pool: Pool, act: Callable[[set[int]], bool]) -> None:
    require_limits_of_others(act)
    assert values(pool.run([job(count=3)] * 4)) == [1, 2, 3] * 4


@pytest.mark.parametrize("act", [forbid_forks, forbid_pipes])
def test_where_no_zygote_can_fork_there_is_no_verdict(pool: Pool, act: Callable[[set[int]], bool]) -> None:
    require_limits_of_others(act)

    def work_on() -> None:
        for _ in range(50):
            assert set(values(pool.run([job()] * 20))) == {1}
            time.sleep(0.02)

    with Meanwhile(act, once=False), pytest.raises(SandboxError):
        work_on()


def test_a_zygote_that_stands_still_is_replaced(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "_SLACK_S", 0.5)
    monkeypatch.setattr("populora_env.sandbox.pool._POLL_S", 0.2)
    for pid in filter(is_of_a_zygote, descendants(os.getpid())):
        os.kill(pid, signal.SIGSTOP)
    quick = Job(program="def f(x):\n    return x + 1\n", inputs=(encode((0,)),), cpu_s=0.5, wall_s=0.5)
    assert values(pool.run([quick] * 2)) == [1, 1]


def test_answers_larger_than_every_pipe_come_through(pool: Pool) -> None:
    large = "def f(x):\n    return [x, 'a' * 60000]\n"
    outcomes = pool.run([job(large, count=30)] * 8)
    assert [value[0] for value in values(outcomes)] == [*range(30)] * 8  # type: ignore[index]


def test_a_child_that_fills_the_pipe_is_stopped_and_nobody_waits_for_it(pool: Pool) -> None:
    flood = "import os\ndef f(x):\n    while True:\n        os.write(3, b'V\\0\\1\\0\\0' + b'x' * 65536)\n"
    outcomes = pool.run([job(flood), job()] * 4)
    assert [str(outcome.results[0].status) for outcome in outcomes] == ["bad_frame", "ok"] * 4


_PARENT = """
import sys
from populora_env.verifier import Job, Verifier
from populora_env.config import VerifierConfig
from populora_env.values import encode
verifier = Verifier(VerifierConfig(namespaces=sys.argv[1] == "1", workers=8, cpu_s=60, wall_s=60)).__enter__()
print("started", flush=True)
verifier.run([Job(program="def f():\\n    while True: pass\\n", inputs=(encode(()),), cpu_s=60, wall_s=60)] * 8)
"""


@pytest.mark.parametrize("namespaces", ["1", "0"], ids=["namespaces", "no_namespaces"])
def test_a_second_after_a_parent_is_killed_with_eight_jobs_in_flight_nothing_is_left(namespaces: str) -> None:
    with orphans_come_here():
        start, environment = as_oneself()
        parent = subprocess.Popen([*start, "-c", _PARENT, namespaces], stdout=subprocess.PIPE, cwd="/", env=environment)
        assert parent.stdout is not None
        with parent.stdout:
            assert select.select([parent.stdout], [], [], 60)[0]
            assert parent.stdout.readline() == b"started\n"
            while sum(map(is_working, below := descendants(parent.pid))) < 8:
                time.sleep(0.01)
        parent.kill()
        parent.wait()
        left = left_of(below, seconds=1.0)
        assert {state(pid) for pid in left} <= {"Z"}, "only what waits for its new parent, this test"


_LIMITED = """
import resource
from populora_env.verifier import SandboxError, Verifier
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
try:
    Verifier().__enter__()
except (SandboxError, RuntimeError) as error:
    print(type(error).__name__)
"""


def an_ordinary_user() -> tuple[list[str], dict[str, str]]:
    start, environment = as_user(_USER)
    if not start:
        pytest.skip("setpriv is needed to become an ordinary user, and a Python of this version that one may run")
    return start, environment


def test_a_user_who_may_have_no_processes_is_refused() -> None:
    start, environment = an_ordinary_user()
    done = subprocess.run([*start, "-c", _LIMITED], capture_output=True, text=True, cwd="/", env=environment)
    assert done.stdout.strip() in ("SandboxError", "RuntimeError"), done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="these tests are run by an ordinary user already")
def test_all_this_holds_for_an_ordinary_user() -> None:
    start, environment = an_ordinary_user()
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-m",
        "not slow",
        "-c",
        str(ROOT / "pyproject.toml"),
        f"--rootdir={ROOT}",
    ]
    command = [*start, "-B", "-m", "pytest", *options, __file__]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "skipped" not in done.stdout
