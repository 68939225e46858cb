"""Attacks on the sandbox, each of which must fail; and that a clean job is still right after all of them."""

from __future__ import annotations

import platform
from collections.abc import Iterator

import pytest

from populora_env.config import VerifierConfig
from populora_env.sandbox.jobs import Job
from populora_env.sandbox.pool import Pool
from populora_env.values import decode, encode

X86 = platform.machine() == "x86_64"
LIBC = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"


@pytest.fixture(scope="module", params=[True, False], ids=["namespaces", "no_namespaces"])
def pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    shared = Pool(VerifierConfig(namespaces=request.param))
    yield shared
    shared.close()


def run(pool: Pool, program: str, *, cpu_s: float = 0.2) -> tuple[str, str, bytes]:
    (outcome,) = pool.run([Job(program=program, inputs=(encode(()),), cpu_s=cpu_s, wall_s=10.0)])
    result = outcome.results[0]
    return str(result.status), result.detail, result.payload


def f(body: str, head: str = "") -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"{head}def f():\n{lines}\n"


ATTACKS = {
    "endless_loop": (f("while True: pass"), "timeout"),
    "endless_top_level": ("while True: pass\n", "timeout"),
    "endless_import_of_itself": ("for i in iter(int, 1): pass\ndef f(): pass\n", "timeout"),
    "endless_exception_handler": (
        f("while True:\n  try:\n    while True: pass\n  except BaseException: pass"),
        "timeout",
    ),
    "blocked_signals": (f("signal.pthread_sigmask(0, range(1, 65))\nwhile True: pass", "import signal\n"), "timeout"),
    "stopped_timer": (f("try: signal.alarm(0)\nexcept OSError: pass\nwhile True: pass", "import signal\n"), "timeout"),
    "closed_result_then_loop": (f("os.close(3)\nwhile True: pass", "import os\n"), "timeout"),
    "sleep": (f("time.sleep(1000)", "import time\n"), "forbidden"),
    "wait_for_a_lock": (f("l = threading.Lock()\nl.acquire()\nl.acquire()", "import threading\n"), "forbidden"),
    "yield_the_core": (f("while True: libc.sched_yield()", LIBC), "timeout"),
    "whole_frame_then_loop": (
        f("os.write(3, b'V\\0\\1\\0\\0' + b'x' * 65535)\nwhile True: pass", "import os\n"),
        "timeout",
    ),
    "huge_write": (f("libc.write(3, b'x' * (1 << 20), 1 << 20)", LIBC), "bad_frame"),
    "wait_with_high_bits": (
        f(f"libc.syscall({202 if X86 else 98}, ctypes.byref(ctypes.c_int()), ctypes.c_long(1 << 32), 0, 0)", LIBC),
        "forbidden",
    ),
    "kill_itself": (f("os.kill(os.getpid(), 9)", "import os\n"), "forbidden"),
    "abort": (f("libc.abort()", LIBC), "forbidden|crash"),
    "false_return_from_a_signal": (f(f"libc.syscall({15 if X86 else 139})", LIBC), "forbidden"),
    "end_of_the_thread": (f(f"libc.syscall({60 if X86 else 93}, 0)", LIBC), "no_result"),
    "callback_from_c": (f("ctypes.CFUNCTYPE(None)(print)()", LIBC), "forbidden|ok|error"),
    "pause": (f("signal.pause()", "import signal\n"), "forbidden"),
    "select": (f("select.select([], [], [])", "import select\n"), "forbidden"),
    "signal_handler": (f("signal.signal(24, print)", "import signal\n"), "forbidden"),
    "memory": (f("x = []\nwhile True: x.append(bytes(1 << 24))"), "memory"),
    "recursion": (f("return f()"), "error:RecursionError"),
    "stack": (f("return f()", "import sys\nsys.setrecursionlimit(10 ** 9)\n"), "crash|memory|timeout|error"),
    "segfault": (f("ctypes.string_at(0)", LIBC), "crash"),
    "fork": (f("os.fork()", "import os\n"), "forbidden"),
    "vfork": (f(f"libc.syscall({58 if X86 else 1071})", LIBC), "forbidden"),
    "spawn": (f("subprocess.run(['true'])", "import subprocess\n"), "forbidden|error"),
    "thread": (f("_thread.start_new_thread(print, ())", "import _thread\n"), "forbidden"),
    "exec": (f("os.execv('/bin/true', ['x'])", "import os\n"), "forbidden"),
    "kill_zygote": (f("os.kill(os.getpid() - 1, 9)", "import os\n"), "forbidden"),
    "kill_own_group": (f("os.killpg(0, 9)", "import os\n"), "forbidden"),
    "socket": (f("socket.socket()", "import socket\n"), "forbidden"),
    "socketpair": (f("socket.socketpair()", "import socket\n"), "forbidden"),
    "read_file": (f("open('/etc/passwd')"), "error:PermissionError"),
    "read_own_memory": (f("open('/proc/self/mem', 'rb')"), "error:PermissionError"),
    "write_file": (f("open('/tmp/populora_attack', 'w')"), "error:PermissionError"),
    "list_folder": (f("os.listdir('/')", "import os\n"), "error:PermissionError"),
    "unlink": (f("os.unlink('/tmp/x')", "import os\n"), "forbidden"),
    "chdir": (f("os.chdir('/')", "import os\n"), "forbidden"),
    "other_descriptors": (f("[os.write(n, b'x') for n in (0, 1, 2, 100)]", "import os\n"), "error:OSError"),
    "duplicate_descriptor": (f("os.dup(3)", "import os\n"), "forbidden|error"),
    "pipe": (f("os.pipe()", "import os\n"), "forbidden"),
    "read_control_socket": (f("return os.read(100, 10)", "import os\n"), "error:PermissionError"),
    "executable_memory": (f(f"libc.syscall({9 if X86 else 222}, None, 4096, 7, 0x22, -1, 0)", LIBC), "forbidden"),
    "make_executable": (f(f"libc.syscall({10 if X86 else 226}, None, 0, 4)", LIBC), "forbidden"),
    "shared_memory": (f(f"libc.syscall({9 if X86 else 222}, None, 4096, 3, 0x21, -1, 0)", LIBC), "forbidden"),
    "ptrace": (f(f"libc.syscall({101 if X86 else 117}, 0, 0, 0, 0)", LIBC), "forbidden"),
    "raise_limits": (f("resource.setrlimit(resource.RLIMIT_AS, (-1, -1))", "import resource\n"), "forbidden"),
    "unknown_call": (f("libc.syscall(5000)", LIBC), "forbidden"),
    "exit": (f("os._exit(0)", "import os\n"), "no_result"),
    "exit_code": (f("os._exit(1)", "import os\n"), "no_result"),
    "exception_exit": (f("raise SystemExit"), "error:SystemExit"),
    "second_frame": (f("os.write(3, b'V\\0\\0\\0\\1n')\nreturn 1", "import os\n"), "bad_frame"),
    "early_ready": (f("os.write(3, b'RRRRR')\nreturn 1", "import os\n"), "bad_frame"),
    "half_frame": (f("os.write(3, b'V\\0\\0')\nos._exit(0)", "import os\n"), "bad_frame"),
    "unknown_tag": (f("os.write(3, b'X\\0\\0\\0\\0')\nos._exit(0)", "import os\n"), "bad_frame"),
    "overlong_frame": (f("os.write(3, b'V\\xff\\xff\\xff\\xff' * 99)\nos._exit(0)", "import os\n"), "bad_frame"),
    "flood": (f("while True: os.write(3, b'V\\0\\0\\0\\0' * 999)", "import os\n"), "bad_frame"),
    "frame_then_loop": (f("os.write(3, b'V\\0\\0\\0\\1n')\nwhile True: pass", "import os\n"), "timeout"),
    "metaclass_name": (
        f(
            "raise E",
            "class M(type):\n    __name__ = property(lambda c: 1 / 0)\nclass E(Exception, metaclass=M): pass\n",
        ),
        "error:E",
    ),
    "odd_type_name": (f("raise type('a|b\\n', (Exception,), {})"), "error:a_b_"),
    "long_type_name": (f("raise type('E' * 999, (Exception,), {})"), f"error:{'E' * 80}"),
    "broken_builtins": (f("builtins.len = builtins.type = None\nreturn 1", "import builtins\n"), "no_result|ok"),
    "huge_text": (f("return 'a' * 100000"), "output_limit"),
    "no_f": ("g = 1\n", "error:KeyError"),
}


@pytest.mark.parametrize("name", sorted(ATTACKS))
def test_attack_comes_to_its_verdict(pool: Pool, name: str) -> None:
    program, expected = ATTACKS[name]
    status, detail, _ = run(pool, program)
    verdict = f"{status}:{detail}" if detail else status
    assert any(verdict == part or status == part for part in expected.split("|")), verdict


def test_a_clean_job_is_still_right_after_all_attacks(pool: Pool) -> None:
    before = pool.pids
    jobs = [Job(program=program, inputs=(encode(()),), cpu_s=0.05, wall_s=10.0) for program, _ in ATTACKS.values()]
    clean = Job(program="def f(x):\n    return x + 1\n", inputs=(encode((1,)),), cpu_s=0.5, wall_s=10.0)
    outcomes = pool.run([job for attack in jobs for job in (attack, clean)])
    assert {decode(outcome.results[0].payload) for outcome in outcomes[1::2]} == {2}
    assert pool.pids == before, "an attack brought a zygote down"


def test_ordinary_programs_work(pool: Pool) -> None:
    program = (
        "import math, re, collections, itertools, functools, json, datetime, hashlib, random\n"
        "from dataclasses import dataclass\n"
        "@dataclass\nclass P:\n    a: 'int'\n"
        "def f():\n    print('x' * 1000)\n    random.seed(1)\n"
        "    return [P(1).a, json.dumps({'a': 1}), datetime.date(2020, 1, 2).isoformat(),"
        " hashlib.sha256(b'').hexdigest()[:4],"
        " re.sub('a', 'b', 'aa'), random.Random(3).randint(1, 1), datetime.datetime.strptime('2020', '%Y').year,"
        " 'é'.encode('utf-16')[:2]]\n"
    )
    _, detail, payload = run(pool, program)
    assert decode(payload or b"n") == [1, '{"a": 1}', "2020-01-02", "e3b0", "bb", 1, 2020, b"\xff\xfe"], detail


def test_no_environment_and_no_arguments_reach_a_program(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POPULORA_SECRET", "1")
    _, _, payload = run(pool, f("return sorted(os.environ)", "import os\n"))
    assert set(decode(payload)) <= {"PYTHONHASHSEED", "LD_LIBRARY_PATH", "LC_CTYPE"}


def test_globals_are_fresh_for_each_input(pool: Pool) -> None:
    program = "n = 0\ndef f():\n    global n\n    n += 1\n    return n\n"
    (outcome,) = pool.run([Job(program=program, inputs=(encode(()),) * 3, calls=2, cpu_s=0.5, wall_s=10.0)])
    assert [decode(result.payload) for result in outcome.results] == [1, 2, 1, 2, 1, 2]


def test_arguments_are_fresh_for_each_call(pool: Pool) -> None:
    program = "def f(x):\n    x.append(1)\n    return x\n"
    (outcome,) = pool.run([Job(program=program, inputs=(encode(([],)),), calls=2, cpu_s=0.5, wall_s=10.0)])
    assert [decode(result.payload) for result in outcome.results] == [[1], [1]]


def test_the_limit_is_of_one_call_and_of_cpu_time(pool: Pool) -> None:
    spin = "import time\ndef f(s):\n    end = time.process_time() + s\n    while time.process_time() < end: pass\n"
    inputs = tuple(encode((seconds,)) for seconds in (0.12, 0.12, 0.12, 0.4))
    (outcome,) = pool.run([Job(program=spin, inputs=inputs, cpu_s=0.25, wall_s=30.0)])
    assert [str(result.status) for result in outcome.results] == ["ok", "ok", "ok", "timeout"]


def test_a_child_finds_nothing_of_the_answers_before_it(pool: Pool) -> None:
    """The zygote forwards results, and every later child is a copy of its memory."""
    answer = "    return bytes((i * 7 + 13) % 251 for i in range({size}))\n"
    spy = (
        "libc.sbrk.restype = ctypes.c_void_p\n"
        "heap = ctypes.string_at(libc.sbrk(0) - (1 << 19), 1 << 19)\n"
        "needle = bytes((i * 7 + 13) % 251 for i in range(100, 150))\n"
        "return heap.find(needle)"
    )
    answers = [
        Job(program="def f():\n" + answer.format(size=size), inputs=(encode(()),), cpu_s=0.5, wall_s=10.0, zygote=index)
        for size in (300, 3_000, 30_000, 60_000)
        for index in (1, 2)
    ]
    spies = [Job(program=f(spy, LIBC), inputs=(encode(()),), cpu_s=0.5, wall_s=10.0, zygote=index) for index in (1, 2)]
    outcomes = pool.run(answers + spies)
    assert all(str(outcome.results[0].status) == "ok" for outcome in outcomes)
    assert [decode(outcome.results[0].payload) for outcome in outcomes[-2:]] == [-1, -1]


def test_a_tight_job_has_less_of_everything(pool: Pool) -> None:
    depth = f("def g(n):\n  try: return g(n + 1)\n  except RecursionError: return n\nreturn g(0)")
    memory = f("k = []\ntry:\n  while True: k.append(bytes(1 << 20))\nexcept MemoryError: return len(k)")
    jobs = [
        Job(program=program, inputs=(encode(()),), cpu_s=0.5, wall_s=10.0, tight=tight)
        for program in (depth, memory)
        for tight in (True, False)
    ]
    depths, memories = ([decode(o.results[0].payload) for o in pool.run(jobs)[i : i + 2]] for i in (0, 2))
    assert depths[0] < 0.55 * depths[1]
    assert 30 < memories[0] < 0.3 * memories[1]


def test_layers_are_reported(pool: Pool) -> None:
    namespaces = {"user", "net", "ipc", "uts", "mount", "pid"}
    reported = {name.removesuffix("_namespace") for name in pool.layers if name.endswith("_namespace")}
    assert reported in (set(), namespaces)
    assert {"pivot_root", "landlock", "memory_sealing"} <= set(pool.layers)
    if not reported:
        assert not pool.layers["pivot_root"]
        assert not pool.layers["landlock"]
