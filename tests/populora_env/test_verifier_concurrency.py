"""One verifier, many callers: threads, asyncio, cancelled calls, closing, and programs that share a process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from populora_env.config import VerifierConfig
from populora_env.sandbox.errors import SandboxError
from populora_env.sandbox.worker import Worker
from populora_env.types import Answer, Problem, Proposal, Task
from populora_env.values import encode
from populora_env.verifier import Job, Verifier

SPIN = "def f(x):\n    while True: pass\n"
FORGETS = (
    "import json\nstate = json.__dict__\n"
    "def f(x):\n    state['seen'] = state.get('seen', 0) + 1\n    return state['seen']\n"
)


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(VerifierConfig(cache_size=0)) as shared:
        yield shared


def job(program: str, *, cpu_s: float = 0.5) -> Job:
    return Job(program=program, inputs=(encode((1,)),), cpu_s=cpu_s, wall_s=20.0)


def induction(gold: str = "2") -> Problem:
    return Problem(
        problem_id="0",
        task=Task.INDUCTION,
        program="def f(x):\n    return x + 1",
        inputs=("(0,)", "(1,)"),
        outputs=("1", gold),
        n_visible=1,
    )


def attempt(program: str) -> tuple[Problem, Answer]:
    return induction(), Answer(task=Task.INDUCTION, text=program)


RIGHT, WRONG = "def f(x):\n    return 1 + x\n", "def f(x):\n    return x\n"


def test_a_short_batch_does_not_wait_for_a_long_one(verifier: Verifier) -> None:
    verifier.run([job(RIGHT)])
    with ThreadPoolExecutor(1) as other:
        long = other.submit(verifier.run, [job(SPIN, cpu_s=1.0)] + [job(RIGHT)] * 2)
        time.sleep(0.2)
        assert not long.done()
        assert verifier.run([job(RIGHT)])[0].results[0].payload == encode(2)
        assert not long.done()
        assert [str(outcome.results[0].status) for outcome in long.result()] == ["timeout", "ok", "ok"]


def test_many_threads_get_each_its_own_verdicts(verifier: Verifier) -> None:
    def judge(number: int) -> list[str]:
        return [str(verdict) for verdict in verifier.check_answers([attempt(RIGHT), attempt(WRONG)] * (number % 3 + 1))]

    with ThreadPoolExecutor(8) as threads:
        for number, verdicts in enumerate(threads.map(judge, range(24))):
            assert verdicts == ["ok", "wrong"] * (number % 3 + 1)


def test_asyncio_gets_the_same_verdicts(verifier: Verifier) -> None:
    proposal = Proposal(task=Task.DEDUCTION, program=RIGHT, inputs=("(1,)",))

    async def judge() -> tuple[list[list[str]], bool]:
        answers = await asyncio.gather(*(verifier.acheck_answers([attempt(RIGHT), attempt(WRONG)]) for _ in range(12)))
        (proposed,) = await verifier.acheck_proposals([proposal])
        return [[str(verdict) for verdict in verdicts] for verdicts in answers], proposed.verdict.ok

    assert asyncio.run(judge()) == ([["ok", "wrong"]] * 12, True)


def test_a_cancelled_call_drops_its_jobs_and_the_verifier_goes_on() -> None:
    async def cancel(verifier: Verifier) -> None:
        slow = [attempt(f"def f(x):\n    while True: x = {number}\n") for number in range(400)]
        call = asyncio.create_task(verifier.acheck_answers(slow))
        await asyncio.sleep(0.3)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    with Verifier(VerifierConfig(cache_size=0)) as verifier:
        began = time.monotonic()
        asyncio.run(cancel(verifier))
        assert [str(verdict) for verdict in verifier.check_answers([attempt(RIGHT)])] == ["ok"]
    assert time.monotonic() - began < 60, "400 endless loops would take 100 s"


def test_closing_tells_who_waits() -> None:
    verifier = Verifier(VerifierConfig(cache_size=0))
    failed: list[BaseException] = []

    def wait() -> None:
        try:
            verifier.run([job(SPIN, cpu_s=20.0)])
        except SandboxError as error:
            failed.append(error)

    with verifier:
        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.3)
    thread.join(20)
    assert not thread.is_alive()
    assert len(failed) == 1


def test_owners_must_match() -> None:
    with pytest.raises(ValueError, match="owners"):
        Verifier().check_answers([attempt(RIGHT)], owners=["a", "b"])


def test_verdicts_are_the_same_with_owners_and_without(verifier: Verifier) -> None:
    programs = [
        RIGHT,
        WRONG,
        "def f(x):\n    return 1 // 0\n",
        "def f(x):\n    while True: pass\n",
        "def f(x):\n    return [0] * (1 << 40)\n",
        "def f(x):\n    return f(x)\n",
        "def f(x):\n    return lambda: x\n",
        "def f(x):\n    y = [x]\n    y.append(y)\n    return len(y)\n",
        FORGETS,
        "def f(x:\n",
        RIGHT.replace("1 +", "2 - 1 +"),
    ]
    attempts = [attempt(program) for program in programs]
    alone = verifier.check_answers(attempts)
    for owners in (["m"] * len(attempts), [number % 2 for number in range(len(attempts))]):
        assert verifier.check_answers(attempts, owners=owners) == alone
        assert verifier.check_answers(attempts[::-1], owners=owners) == alone[::-1]


def test_plain_programs_of_one_owner_share_a_process_and_others_do_not(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[list[object]] = []
    original = Worker.send

    def spy(self: Worker, load: tuple[object, ...]) -> None:
        sent.append([ticket.job.program for ticket in load])  # type: ignore[attr-defined]
        original(self, load)  # type: ignore[arg-type]

    monkeypatch.setattr(Worker, "send", spy)
    programs = [f"def f(x):\n    return x + {number}\n" for number in range(6)]
    verifier.check_answers([attempt(program) for program in programs])
    assert sorted(map(len, sent)) == [1] * 6
    sent.clear()
    verifier.check_answers([attempt(program) for program in programs], owners=["a", "b"] * 3)
    assert {frozenset(programs.index(str(program)) % 2 for program in load) for load in sent} == {
        frozenset({0}),
        frozenset({1}),
    }
    assert max(map(len, sent)) > 1
    sent.clear()
    verifier.check_answers([attempt("import math\n" + program) for program in programs], owners=["a"] * 6)
    assert sorted(map(len, sent)) == [1] * 6


def test_no_two_runs_of_a_proposal_share_a_process_and_replays_go_the_other_way_round(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[bool, list[str]]] = []
    original = Worker.send

    def spy(self: Worker, load: tuple[object, ...]) -> None:
        sent.append((load[0].job.tight, [ticket.job.program for ticket in load]))  # type: ignore[attr-defined]
        original(self, load)  # type: ignore[arg-type]

    monkeypatch.setattr(Worker, "send", spy)
    programs = [f"def f(x):\n    return x + {number}\n" for number in range(40)]
    proposals = [Proposal(task=Task.DEDUCTION, program=program, inputs=("(1,)",)) for program in programs]
    judged = verifier.check_proposals(proposals, owners=["a", "b"] * 20)
    assert all(verdict.verdict.ok for verdict in judged)
    before: dict[bool, set[tuple[str, str]]] = {True: set(), False: set()}
    for first_run, load in sent:
        assert len({programs.index(program) % 2 for program in load}) == 1, "two members in one process"
        before[first_run] |= {(load[i], load[j]) for j in range(len(load)) for i in range(j)}
    assert before[True]
    assert before[False]
    assert not before[True] & before[False]
    for run in (True, False):
        assert sorted(program for first_run, load in sent if first_run is run for program in load) == sorted(programs)


def test_inputs_of_an_abduction_problem_share_a_process_with_programs_of_its_owner_alone(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[set[str]] = []
    original = Worker.send

    def spy(self: Worker, load: tuple[object, ...]) -> None:
        sent.append({ticket.job.program for ticket in load})  # type: ignore[attr-defined]
        original(self, load)  # type: ignore[arg-type]

    monkeypatch.setattr(Worker, "send", spy)
    programs = [f"def f(x):\n    return x + {number}" for number in range(4)]
    problems = [
        Problem(problem_id=text, task=Task.ABDUCTION, program=text, inputs=("(1,)",), outputs=(str(number + 1),))
        for number, text in enumerate(programs)
    ]
    attempts = [
        (problem, Answer(task=Task.ABDUCTION, text=text)) for text in ("(1,)", "(2,)", "(1") for problem in problems
    ]
    expected = ["ok"] * 4 + ["wrong"] * 4 + ["format:literal"] * 4
    for owners, most in ((None, 1), (["a", "a", "b", "b"] * 3, 2)):
        sent.clear()
        assert [str(verdict) for verdict in verifier.check_answers(attempts, owners=owners)] == expected
        assert max(map(len, sent)) == most
        assert all(load <= set(programs[:2]) or load <= set(programs[2:]) for load in sent)
