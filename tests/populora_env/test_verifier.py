"""The verifier's word: on proposals, on answers, and that it does not hang on the company a job keeps."""

from __future__ import annotations

import copy
import os
import pickle
import threading
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

from populora_env.config import VerifierConfig
from populora_env.generator import generate_problem
from populora_env.types import Answer, Problem, Proposal, ProposalVerdict, Task
from populora_env.values import decode, encode
from populora_env.verifier import Job, Verifier


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(VerifierConfig(cache_size=0, cpu_s=0.4)) as shared:
        yield shared


def propose(program: str, *inputs: str, task: Task = Task.DEDUCTION) -> Proposal:
    return Proposal(task=task, program=program, inputs=inputs or ("(1,)",))


def f(expression: str, head: str = "") -> str:
    return f"{head}def f(x):\n    return {expression}\n"


def problem(task: Task, program: str, inputs: tuple[str, ...], outputs: tuple[str, ...], n_visible: int = 0) -> Problem:
    return Problem(
        problem_id="0", task=task, program=program, inputs=inputs, outputs=outputs, message="", n_visible=n_visible
    )


def test_generated_problems_are_valid_and_their_own_solutions_right(verifier: Verifier) -> None:
    rng = np.random.default_rng(7)
    problems = [generate_problem(rng, task=task) for task in Task for _ in range(8)]
    verdicts = verifier.check_proposals(
        [Proposal(task=p.task, program=p.program, inputs=p.inputs, message=p.message) for p in problems]
    )
    for made, judged in zip(problems, verdicts, strict=True):
        assert judged.verdict.ok, (made, judged)
        assert (judged.inputs, judged.outputs) == (made.inputs, made.outputs)
        assert judged.exec_ms > 0
    texts = {
        Task.DEDUCTION: lambda p: p.outputs[0],
        Task.ABDUCTION: lambda p: p.inputs[0],
        Task.INDUCTION: lambda p: p.program,
    }
    answers = [(p, Answer(task=p.task, text=texts[p.task](p))) for p in problems]
    assert all(verdict.ok for verdict in verifier.check_answers(answers))


def test_inputs_and_outputs_come_back_in_canonical_form(verifier: Verifier) -> None:
    (judged,) = verifier.check_proposals([propose("def f(a, b):\n    return {b: a}\n", "( {2, 1},'k' )")])
    assert judged == ProposalVerdict(
        verdict=judged.verdict, inputs=("({1, 2}, 'k')",), outputs=("{'k': {1, 2}}",), exec_ms=judged.exec_ms
    )


UNSTABLE = "nondeterministic|inadmissible:unanswerable"
"""A bit of an address may be the same in all zygotes; restated, it still shows."""
COUNTING = (
    "kept = []\ndef f(x):\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n        {act}\n"
    "    def more():\n        pass\n"
    "    try:\n        while True:\n            g()\n    except {error}:\n        kept.clear()\n        return n\n"
)
"""Tells how far it came before a limit."""
NESTING = (
    "def f(x):\n    a = []\n    for i in range(20000):\n        a = [a]\n        try:\n            if i % 20 == 0:\n"
    "                a == a[:]\n                repr(a)\n        except RecursionError:\n            return i\n"
)
"""Tells how deeply calls of C may nest."""
COLLECTED = (
    "def f(x):\n    log, kept, n = [], [], 0\n    def g():\n        try:\n            yield 1\n        finally:\n"
    "            log.append(1)\n    box = [g()]\n    next(box[0])\n    box.append(box)\n    del box\n"
    "    while not log:\n        kept.append([])\n        n += 1\n    return n > 600\n"
)
"""Tells when garbage is collected."""


@pytest.mark.parametrize(
    ("proposal", "expected"),
    [
        (propose("def f(x:\n"), "format:program"),
        (propose("g = 1"), "format:no f"),
        (propose(f("x"), "x"), "format:input"),
        (propose(f("x"), "1"), "format:input"),
        (propose(f("x"), "[1]"), "format:input"),
        (propose(f("x"), "(1,)" + " " * 600), "format:input"),
        (propose(f("1", "import os\n")), "inadmissible:import"),
        (propose(f("1", "import time\n")), "inadmissible:import"),
        (propose(f("x.gi_frame")), "inadmissible:attribute"),
        (propose(f("x"), f"({'1' * 300},)"), "inadmissible:unanswerable"),
        (propose(f("'a' * 1000")), "inadmissible:unanswerable"),
        (propose(f("'\\n' * 130")), "inadmissible:unanswerable"),
        (propose(f("x"), "(1,)", "(1, )", task=Task.INDUCTION), "inadmissible:duplicate_inputs"),
        (propose(f("1 // x"), "(0,)"), "error:ZeroDivisionError"),
        (propose(f("x"), "(1, 2)"), "error:TypeError"),
        (propose(f("lambda: x")), "unserialisable"),
        (propose("def f(x):\n    while True:\n        pass\n"), "timeout"),
        (propose(f("len(bytearray(1 << 40))")), "memory"),
        (propose(f("'a' * 70000")), "output_limit"),
        (propose("n = 0\ndef f(x):\n    global n\n    n += 1\n    return n\n"), "nondeterministic"),
        (propose("def f(x, seen=[]):\n    seen.append(x)\n    return len(seen)\n"), "nondeterministic"),
        (propose(f("list({'a', 'b'})")), "nondeterministic"),
        (propose(f("list(x)"), "({'a', 'b'},)"), "nondeterministic"),
        (propose(f("list({'a': 1, 'b': 2}.keys() & {'a': 1, 'b': 1}.keys())")), "nondeterministic"),
        (propose(f("repr(object())", "")), UNSTABLE),
        (propose(f("repr(object())[-5:]", "")), UNSTABLE),
        (propose(f("repr(lambda: 1)[-5:]", "")), UNSTABLE),
        (propose(f("repr(iter([]))[-5:]", "")), UNSTABLE),
        (propose(f("sum(map(ord, repr(object()))) % 2")), UNSTABLE),
        (propose(f("int(repr(lambda: 1)[-5], 16) % 2")), UNSTABLE),
        (propose(COUNTING.format(act="g()", error="RecursionError")), "nondeterministic"),
        (propose(COUNTING.format(act="g()", error="Exception")), "nondeterministic"),
        (
            propose(COUNTING.format(act="kept.append(bytes(10 ** 7)); more()", error="Exception")),
            "nondeterministic",
        ),
        (propose(NESTING), "nondeterministic|timeout"),
        (propose(COLLECTED), "memory|timeout"),
        (propose(f(f"'{'{:' * 4000}{'}' * 4000}'.format(x)")), "inadmissible:format"),
        (propose(f("f(x - 1) if x else 0"), "(600,)"), "error:RecursionError"),
        (propose(f("f(x - 1) if x else 0"), "(300,)"), "ok"),
        (propose(f("'\\d'")), "ok"),
        (propose(f("sorted({'a', 'b'})")), "ok"),
        (propose(f("{'b', 'a'}")), "ok"),
    ],
)
def test_proposals_get_their_verdict(verifier: Verifier, proposal: Proposal, expected: str) -> None:
    (judged,) = verifier.check_proposals([proposal])
    assert str(judged.verdict) in expected.split("|")
    assert bool(judged.outputs) is judged.verdict.ok


def test_what_one_input_leaves_behind_makes_an_induction_proposal_nondeterministic(verifier: Verifier) -> None:
    cached = "import functools\n@functools.lru_cache(None)\ndef f(x):\n    return x\n"
    leaky = (
        "import collections\ndef f(x):\n    c = collections.Counter\n    if x == 1:\n        c.seen = 1\n"
        "        return 1\n    try:\n        return c.seen\n    except AttributeError:\n        return 0\n"
    )
    # What it tells is the same whether the inputs are gone through forwards or backwards.
    places = (
        "import collections\ndef f(x):\n    c = collections.Counter\n    try:\n        c.seen |= 1 << x\n"
        "    except AttributeError:\n        c.seen = 1 << x\n    n = bin(c.seen).count('1')\n"
        "    return n in (1, 4)\n"
    )
    inputs = [f"({number},)" for number in range(4)]
    proposals = [propose(program, *inputs, task=Task.INDUCTION) for program in (cached, leaky, places)]
    verdicts = [str(judged.verdict) for judged in verifier.check_proposals(proposals)]
    assert verdicts == ["ok", "nondeterministic", "nondeterministic"]


DEDUCTION = problem(Task.DEDUCTION, f("x"), ("(1,)",), ("[1, 'a']",))
ABDUCTION = problem(Task.ABDUCTION, f("x[::-1]"), ("('ab',)",), ("'ba'",))
INDUCTION = problem(Task.INDUCTION, f("x * 2"), ("(1,)", "(2,)", "(3,)", "(4,)"), ("2", "4", "6", "8"), n_visible=2)


@pytest.mark.parametrize(
    ("asked", "text", "expected"),
    [
        (DEDUCTION, "[1, 'a']", "ok"),
        (DEDUCTION, ' [ 1,"a" ] ', "ok"),
        (DEDUCTION, "[True, 'a']", "wrong"),
        (DEDUCTION, "[1.0, 'a']", "wrong"),
        (DEDUCTION, "(1, 'a')", "wrong"),
        (DEDUCTION, "f(1)", "format:literal"),
        (DEDUCTION, "__import__('os').system('true')", "format:literal"),
        (DEDUCTION, "1" * 600, "format:literal"),
        (DEDUCTION, "-" * 500, "format:literal"),
        (ABDUCTION, "('ab',)", "ok"),
        (ABDUCTION, "('ba',)", "wrong"),
        (ABDUCTION, "'ab'", "format:literal"),
        (ABDUCTION, "('ab', 1)", "error:TypeError"),
        (ABDUCTION, "(__import__('os'),)", "format:literal"),
        (INDUCTION, f("x + x"), "ok"),
        (INDUCTION, "import math\nf = lambda x: math.prod([x, 2])\n", "ok"),
        (INDUCTION, f("2"), "wrong"),
        (INDUCTION, f("2 * x if x < 4 else 0"), "wrong"),
        (INDUCTION, f("1 / 0"), "error:ZeroDivisionError"),
        (INDUCTION, "def f(x:", "format:program"),
        (INDUCTION, "def g(x):\n    return 2 * x\n", "format:no f"),
        (INDUCTION, "def f(x):\n    while True:\n        pass\n", "timeout"),
        (INDUCTION, f("os.fork()", "import os\n"), "forbidden"),
        (INDUCTION, f("os._exit(0)", "import os\n"), "no_result"),
        (INDUCTION, f("list({'a', 'b'})"), "wrong"),
    ],
)
def test_answers_get_their_verdict(verifier: Verifier, asked: Problem, text: str, expected: str) -> None:
    assert str(verifier.check_answers([(asked, Answer(task=asked.task, text=text))])[0]) == expected


def test_an_always_equal_object_is_no_right_answer(verifier: Verifier) -> None:
    liar = "class T(int):\n    def __eq__(s, o): return True\n    __hash__ = int.__hash__\n" + f("T(1)")
    assert str(verifier.check_answers([(INDUCTION, Answer(task=Task.INDUCTION, text=liar))])[0]) == "unserialisable"


def test_nothing_that_runs_knows_a_hidden_output(verifier: Verifier) -> None:
    spy = "import gc, sys\ndef f(x):\n    found = 0\n    frame = sys._getframe()\n    while frame:\n" + (
        "        found += any(v in (6, '6', b'i6;') for v in frame.f_locals.values() if type(v) in (int, str, bytes))\n"
        "        frame = frame.f_back\n"
        "    found += sum(b'i6;' in o for o in gc.get_objects() if type(o) is bytes)\n"
        "    return found + 100\n"
    )
    job = Job(program=spy, inputs=(encode((3,)),), cpu_s=1.0, wall_s=10.0)
    (outcome,) = verifier.run([job])
    assert decode(outcome.results[0].payload) == 100


def test_equality_may_be_pythons_own() -> None:
    with Verifier(VerifierConfig(equality="python")) as loose:
        answers = [(DEDUCTION, Answer(task=Task.DEDUCTION, text=text)) for text in ("[True, 'a']", "[1.0, 'a']", "[2]")]
        assert [verdict.ok for verdict in loose.check_answers(answers)] == [True, True, False]
        program = Answer(task=Task.INDUCTION, text=f("x * 2.0"))
        assert loose.check_answers([(INDUCTION, program)])[0].ok


def test_a_verdict_does_not_depend_on_its_batch(verifier: Verifier) -> None:
    texts = [f("x + x"), f("x"), f("os.fork()", "import os\n"), "def f(x):\n    return x.y\n", f("bytearray(1 << 40)")]
    attempts = [(INDUCTION, Answer(task=Task.INDUCTION, text=text)) for text in texts]
    alone = [verifier.check_answers([attempt])[0] for attempt in attempts]
    assert verifier.check_answers(attempts * 3) == alone * 3
    assert verifier.check_answers(attempts[::-1]) == alone[::-1]


def test_inputs_after_a_death_run_again(verifier: Verifier) -> None:
    program = "import os\ndef f(x):\n    if x == 1:\n        os._exit(0)\n    return x\n"
    job = Job(program=program, inputs=tuple(encode((n,)) for n in range(4)), cpu_s=0.5, wall_s=10.0)
    (outcome,) = verifier.run([job])
    assert [str(result.status) for result in outcome.results] == ["ok", "no_result", "ok", "ok"]
    assert [decode(result.payload) for result in outcome.results if result.payload] == [0, 2, 3]


def test_threads_share_a_verifier(verifier: Verifier) -> None:
    results: list[bool] = []

    def work(number: int) -> None:
        asked = problem(Task.ABDUCTION, f("x + 1"), ("(0,)",), (str(number + 1),))
        answers = [(asked, Answer(task=Task.ABDUCTION, text=f"({number + offset},)")) for offset in (0, 1)]
        results.append([verdict.ok for verdict in verifier.check_answers(answers * 3)] == [True, False] * 3)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 6


def test_the_cache_knows_content_it_has_seen() -> None:
    with Verifier() as caching:
        attempt = (ABDUCTION, Answer(task=Task.ABDUCTION, text="('ab',)"))
        first = caching.check_answers([attempt])
        caching.close()
        assert caching.check_answers([attempt]) == first
        assert caching._pool is None, "a known verdict needs no zygote"
        other = problem(Task.ABDUCTION, f("x"), ("('ab',)",), ("'ba'",))
        assert str(caching.check_answers([(other, attempt[1])])[0]) == "wrong"


def test_copies_start_zygotes_of_their_own() -> None:
    with Verifier() as original:
        attempt = (ABDUCTION, Answer(task=Task.ABDUCTION, text="('ab',)"))
        for twin in (pickle.loads(pickle.dumps(original)), copy.deepcopy(original)):
            assert twin.config == original.config
            with twin:
                assert twin.check_answers([attempt])[0].ok
                assert twin._pool is not original._pool
        assert original.check_answers([attempt])[0].ok


def test_a_verifier_that_is_closed_often_keeps_nothing() -> None:
    before = len(weakref.finalize._registry)  # type: ignore[attr-defined]
    often = Verifier(VerifierConfig(workers=2))
    for _ in range(3):
        assert often.layers
        often.close()
    assert len(weakref.finalize._registry) == before  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_the_child_of_a_fork_gets_zygotes_of_its_own(verifier: Verifier) -> None:
    attempt = (ABDUCTION, Answer(task=Task.ABDUCTION, text="('ab',)"))
    pids = set(verifier._attach().pids)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            right = verifier.check_answers([attempt])[0].ok and not set(verifier._attach().pids) & pids
            verifier.close()
            os.write(writing, b"1" if right else b"0")
        finally:
            os._exit(0)
    os.close(writing)
    assert os.read(reading, 1) == b"1"
    os.close(reading)
    os.waitpid(child, 0)
    assert set(verifier._attach().pids) == pids
    assert verifier.check_answers([attempt])[0].ok


def test_an_induction_problem_with_nothing_hidden_is_a_callers_mistake(verifier: Verifier) -> None:
    shown = problem(Task.INDUCTION, f("x"), ("(1,)",), ("1",), n_visible=1)
    with pytest.raises(ValueError, match="hidden"):
        verifier.check_answers([(shown, Answer(task=Task.INDUCTION, text=f("x")))])
