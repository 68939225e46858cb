"""Many jobs of all kinds: memory, descriptors and processes stay what they were."""

from __future__ import annotations

import gc
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from processes import descendants, descriptors, resident_bytes, state

from populora_env.config import VerifierConfig
from populora_env.sandbox.jobs import Job
from populora_env.types import Answer, Problem, Proposal, Task
from populora_env.values import encode
from populora_env.verifier import Verifier

_JOBS = 200_000
_FEW_JOBS = 3_000
_BATCH = 500
_MEMBERS = 8
_GROWTH = 1.1
_SLACK_BYTES = 1 << 20
"""A small process may gain this much besides: the pages of an allocator."""

HOSTILE = (
    ("import os\ndef f(x):\n    return os.fork()\n", "forbidden"),
    ("import os\ndef f(x):\n    os._exit(0)\n", "no_result"),
    ("import os\ndef f(x):\n    os.write(3, b'x' * 9)\n    return x\n", "bad_frame"),
    ("def f(x):\n    return bytearray(1 << 45)\n", "memory"),
    ("import ctypes\ndef f(x):\n    return ctypes.string_at(0)\n", "crash"),
    ("def f(x):\n    return 'a' * 70000\n", "output_limit"),
    ("import socket\ndef f(x):\n    return socket.socket()\n", "forbidden"),
    ("def f(x):\n    while True: pass\n", "timeout"),
)


@dataclass(frozen=True, slots=True)
class Usage:
    """What this process and those below it hold."""

    resident: dict[int, int]
    descriptors: dict[int, int]
    zombies: int

    @classmethod
    def now(cls) -> Usage:
        """Look."""
        gc.collect()
        pids = [os.getpid(), *sorted(descendants(os.getpid()))]
        return cls(
            {pid: resident_bytes(pid) for pid in pids},
            {pid: descriptors(pid) for pid in pids},
            sum(state(pid) == "Z" for pid in pids),
        )


def problem(task: Task, program: str, inputs: tuple[str, ...], outputs: tuple[str, ...], n_visible: int = 0) -> Problem:
    return Problem(problem_id="0", task=task, program=program, inputs=inputs, outputs=outputs, n_visible=n_visible)


def attempt(number: int) -> tuple[Problem, Answer, bool]:
    """Return a problem that no other number has, an answer to it, and whether that is right."""
    right = number % 3 > 0
    given = number if right else number + 1
    if number % 4 == 0:
        asked = problem(Task.DEDUCTION, "def f(x):\n    return x\n", (f"({number},)",), (f"[{number}]",))
        return asked, Answer(task=Task.DEDUCTION, text=f"[{given}]"), right
    if number % 4 == 1:
        head = "import math\n" if number % 8 == 1 else ""
        asked = problem(Task.ABDUCTION, f"{head}def f(x):\n    return x * 2\n", ("(0,)",), (f"{2 * number}",))
        return asked, Answer(task=Task.ABDUCTION, text=f"({given},)"), right
    inputs = tuple(f"({number + place},)" for place in range(4))
    asked = problem(
        Task.INDUCTION,
        "def f(x):\n    return x\n",
        inputs,
        tuple(f"{number + place}" for place in range(4)),
        n_visible=2,
    )
    head = "from collections import Counter\n" if number % 8 == 2 else ""
    return asked, Answer(task=Task.INDUCTION, text=f"{head}def f(x):\n    return x + {given - number}\n"), right


def proposal(number: int) -> tuple[Proposal, str]:
    """Return a proposal that no other number has, and its verdict."""
    choice = number % 7
    if choice == 0:
        return Proposal(
            task=Task.DEDUCTION, program=f"def f(x):\n    return list(x)[:{number}]\n", inputs=("({'a', 'b', 'c'},)",)
        ), "nondeterministic"
    if choice == 1:
        return Proposal(
            task=Task.DEDUCTION, program=f"import os\ndef f(x):\n    return {number}\n", inputs=("(1,)",)
        ), "inadmissible:import"
    if choice == 2:
        program = (
            f"def f(x):\n    try:\n        return x // 0\n    except ZeroDivisionError:\n        return {number}\n"
        )
        return Proposal(task=Task.DEDUCTION, program=program, inputs=("(1,)",)), "ok"
    return Proposal(
        task=Task.DEDUCTION, program=f"def f(x):\n    return [x, {number}]\n", inputs=(f"({number},)",)
    ), "ok"


def soak(verifier: Verifier, n_jobs: int) -> Iterator[int]:
    """Judge so many jobs of all kinds, some of them hostile, and yield their number after each batch."""
    generator = random.Random(7)
    done = 0
    while done < n_jobs:
        numbers = range(done, done + _BATCH)
        kinds = Counter(generator.choices(("attempt", "proposal"), (9, 1), k=_BATCH))
        attempts = [attempt(number) for number in numbers[: kinds["attempt"]]]
        owned = done // _BATCH % 2 == 1  # in every second batch the programs of a member share processes
        whose = [number % _MEMBERS for number in numbers] if owned else [None] * _BATCH
        verdicts = verifier.check_answers(
            [(asked, answer) for asked, answer, _ in attempts], owners=whose[: kinds["attempt"]]
        )
        assert [verdict.ok for verdict in verdicts] == [right for _, _, right in attempts]
        proposals = [proposal(number) for number in numbers[kinds["attempt"] :]]
        judged = verifier.check_proposals([proposed for proposed, _ in proposals], owners=whose[kinds["attempt"] :])
        assert [str(one.verdict) for one in judged] == [expected for _, expected in proposals]
        attack, expected = HOSTILE[done // _BATCH % len(HOSTILE)]
        jobs = [Job(program=attack, inputs=(encode((done,)),), cpu_s=0.05, wall_s=10.0)] * 2
        assert {str(outcome.results[0].status) for outcome in verifier.run(jobs)} == {expected}
        done += _BATCH
        yield done


def assert_flat(n_jobs: int) -> None:
    """Check that after a tenth of the jobs nothing grows any more."""
    early: Usage | None = None
    with Verifier(VerifierConfig(cache_size=1024)) as verifier:
        for done in soak(verifier, n_jobs):
            if early is None and done >= n_jobs // 10 and done >= _BATCH * len(HOSTILE) // 4:
                early = Usage.now()
        late = Usage.now()
    assert early is not None
    assert late.resident.keys() == early.resident.keys(), "a process came or went"
    assert late.descriptors == early.descriptors
    assert late.zombies == early.zombies
    for pid, size in late.resident.items():
        assert size <= _GROWTH * early.resident[pid] + _SLACK_BYTES, (pid, early.resident[pid], size)


def test_a_few_thousand_jobs_leave_no_trace() -> None:
    assert_flat(_FEW_JOBS)


@pytest.mark.soak
def test_two_hundred_thousand_jobs_leave_no_trace() -> None:
    assert_flat(_JOBS)
