"""Whatever bytes a child or a zygote sends, the verifier stays up; and no verdict hangs on the company it keeps."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from populora_env.config import VerifierConfig
from populora_env.encoding import DecodeError, decode, encode
from populora_env.sandbox import frames, worker
from populora_env.sandbox.errors import SandboxError
from populora_env.sandbox.frames import FRAME, READY, REPLY, FrameCounter
from populora_env.sandbox.jobs import Again, FaultError, Job, Outcome, Reply, outcomes_of, read_reply
from populora_env.sandbox.pool import Pool
from populora_env.sandbox.streams import End, read_stream
from populora_env.types import Answer, Problem, Proposal, Status, Task
from populora_env.verifier import Verifier

PAYLOADS = st.sampled_from(
    [b"n", b"i7;", b"i07;", b"l2:nn", b"d1:l0:n", b"s3:\xed\xa0\x80", b"e2:i1;t", b"", b"l" * 80]
)
TAGS = st.sampled_from([b"V", b"E", b"M", b"U", b"O", b"X"])
WHOLE = st.builds(lambda tag, payload: FRAME.pack(tag, len(payload)) + payload, TAGS, PAYLOADS)
ODD = st.binary(max_size=12) | st.just(READY) | st.just(b"V\xff\xff\xff\xff")
STREAMS = st.lists(WHOLE | ODD, max_size=8).map(b"".join)
CODES = st.integers(-70, 300)
SMALL = st.integers(0, 90)


def job(program: str, *, count: int = 1, hash_seed: int | None = None) -> Job:
    inputs = tuple(encode((number,)) for number in range(count))
    return Job(program=program, inputs=inputs, cpu_s=0.5, wall_s=10.0, hash_seed=hash_seed)


@given(STREAMS, st.integers(0, 9))
def test_any_stream_is_walked_to_whole_frames(data: bytes, expected: int) -> None:
    stream = read_stream(data, expected)
    assert len(stream.frames) <= expected
    assert all(len(frame.payload) <= frames.MAX_PAYLOAD for frame in stream.frames)
    whole = b"".join(FRAME.pack(frame.tag, len(frame.payload)) + frame.payload for frame in stream.frames)
    assert data.startswith(whole)
    assert stream.broken is (data != whole)


@given(STREAMS, st.sampled_from(End), CODES, st.floats(0, 100), st.lists(st.integers(1, 4), min_size=1, max_size=4))
@settings(max_examples=400)
def test_any_report_on_a_child_is_outcomes_or_a_fault(
    data: bytes, end: End, code: int, cpu_s: float, counts: list[int]
) -> None:
    jobs = [job("", count=count) for count in counts]
    try:
        outcomes = outcomes_of(jobs, Reply(job_id=1, end=end, code=code, cpu_s=cpu_s, stream=data))
    except FaultError:
        return
    assert len(outcomes) == len(jobs)
    for one, outcome in zip(jobs, outcomes, strict=True):
        if isinstance(outcome, Again):
            continue
        assert len(outcome.results) == one.n_frames
        assert outcome.done <= one.n_frames
        for result in outcome.results:
            assert result.detail.isascii()
            assert len(result.detail) <= frames.MAX_NAME
            if result.payload:
                assert result.status is Status.OK
                try:
                    assert encode(decode(result.payload)) == result.payload
                except DecodeError:
                    continue


@given(st.binary(max_size=80) | st.builds(REPLY.pack, SMALL, SMALL, CODES, SMALL, SMALL))
def test_any_bytes_of_a_zygote_are_a_reply_a_part_of_one_or_a_fault(data: bytes) -> None:
    try:
        reply = read_reply(data)
    except FaultError:
        return
    if reply is not None:
        assert data[REPLY.size :].startswith(reply.stream)


@given(STREAMS, st.lists(st.integers(0, 99), max_size=6))
def test_frames_are_counted_alike_in_whatever_pieces_they_come(data: bytes, cuts: list[int]) -> None:
    stream = bytearray(READY + data)
    whole, piecewise = FrameCounter(), FrameCounter()
    whole.advance(stream, len(stream))
    for cut in sorted(cuts):
        piecewise.advance(stream, min(cut, len(stream)))
    piecewise.advance(stream, len(stream))
    assert (piecewise.count, piecewise.overlong) == (whole.count, whole.overlong)


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(VerifierConfig(cache_size=0)) as shared:
        yield shared


@given(st.lists(STREAMS, min_size=10, max_size=40), st.booleans())
@settings(max_examples=15)
def test_a_real_child_that_writes_anything_harms_nobody(verifier: Verifier, streams: list[bytes], leaves: bool) -> None:
    end = "os._exit(0)" if leaves else "return x"
    hostile = [job(f"import os\ndef f(x):\n    os.write(3, {data!r})\n    {end}\n") for data in streams]
    clean = job("def f(x):\n    return x + 1\n", count=2)
    outcomes = verifier.run(list(itertools.chain.from_iterable((one, clean) for one in hostile)))
    assert all([decode(result.payload) for result in outcome.results] == [1, 2] for outcome in outcomes[1::2])
    for data, outcome in zip(streams, outcomes[::2], strict=True):
        assert_no_more_than_could_be_returned(data, outcome)


def assert_no_more_than_could_be_returned(data: bytes, outcome: Outcome) -> None:
    (result,) = outcome.results
    if result.status is Status.OK and data:
        assert result.payload in data or result.payload == encode(0)
    assert result.status in {
        *(Status.OK, Status.BAD_FRAME, Status.NO_RESULT, Status.ERROR, Status.MEMORY, Status.UNSERIALISABLE),
        *(Status.OUTPUT_LIMIT,),
    }


_GREETING = encode({"landlock": True})
_REPLY = REPLY.pack(1, 0, 0, 5, 9) + b"V\0\0\0\4i7;\n"
ZYGOTES = {
    "silent": b"",
    "no_length": b"\0\0",
    "no_body": b"\0\0\0\x09abc",
    "no_value": b"\0\0\0\3abc",
    "no_layers": b"\0\0\0\3i7;",
    "answers_before_it_is_asked": len(_GREETING).to_bytes(4, "big") + _GREETING + _REPLY * 3,
    "unknown_end": len(_GREETING).to_bytes(4, "big") + _GREETING + REPLY.pack(1, 77, 0, 5, 0),
    "half_a_reply": len(_GREETING).to_bytes(4, "big") + _GREETING + _REPLY[:-4],
    "endless_reply": len(_GREETING).to_bytes(4, "big") + _GREETING + REPLY.pack(1, 0, 0, 5, 1 << 31) + b"x" * 9999,
    "noise": len(_GREETING).to_bytes(4, "big") + _GREETING + random.Random(3).randbytes(9999),
}
_FALSE_ZYGOTE = """
import os, sys
control = int(sys.argv[1])
data = {data!r}
while data:
    data = data[os.write(control, data):]
if {stays}:
    while os.read(control, 65536):
        pass
"""


@pytest.mark.parametrize("stays", [False, True], ids=["ends", "stays"])
@pytest.mark.parametrize("name", ZYGOTES)
def test_a_zygote_that_says_anything_is_a_sandbox_error(
    name: str, stays: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "zygote.py"
    script.write_text(_FALSE_ZYGOTE.format(data=ZYGOTES[name], stays=stays))
    monkeypatch.setattr(worker, "ZYGOTE", script)
    monkeypatch.setattr(worker, "_START_TIMEOUT_S", 0.5)
    monkeypatch.setattr(worker, "_SLACK_S", -10.0)
    monkeypatch.setattr("populora_env.sandbox.pool._POLL_S", 0.1)
    with pytest.raises(SandboxError):
        Pool(VerifierConfig())


# The company that a verdict keeps.

INDUCTION = Problem(
    problem_id="0",
    task=Task.INDUCTION,
    program="def f(x):\n    return x * 2\n",
    inputs=("(1,)", "(2,)", "(3,)", "(4,)"),
    outputs=("2", "4", "6", "8"),
    n_visible=2,
)
ABDUCTION = Problem(
    problem_id="1",
    task=Task.ABDUCTION,
    program="def f(x):\n    return x[::-1]\n",
    inputs=("('ab',)",),
    outputs=("'ba'",),
)
ANSWERS = [
    *((ABDUCTION, text) for text in ("('ab',)", "('ba',)", "(1,)", "([],)", "('a' 'b',)", "nothing")),
    *(
        (INDUCTION, f"{head}def f(x):\n    {line}\n")
        for head, line in (
            ("", "return x + x"),
            ("", "return x"),
            ("", "return [x] * 10 ** 12"),
            ("", "return f(x)"),
            ("", "return x.y"),
            ("", "return 'a' * 70000"),
            ("", "return {'a', 'b'}.pop()"),
            ("import math\n", "return math.prod([x, 2])"),
            ("import os\n", "os.fork()"),
            ("import os\n", "os._exit(0)"),
            ("import os\n", "os.write(3, b'V')"),
            ("import sys\n", "sys.setrecursionlimit(5)"),
            ("import ctypes\n", "ctypes.string_at(0)"),
            ("import builtins\n", "builtins.len = None; return x * 2"),
            ("n = []\n", "n.append(x); return 2 * x * len(n)"),
        )
    ),
]
PROPOSALS = [
    *("def f(x):\n    return [x]\n", "def f(x):\n    return list({'a', 'b', 'c'})\n", "def f(x):\n    return 1 / 0\n"),
    *("import math\ndef f(x):\n    return math.pi\n", "n = []\ndef f(x):\n    n.append(x)\n    return len(n)\n"),
    *(
        "def f(x, n=[]):\n    n.append(x)\n    return len(n)\n",
        "def f(x):\n    return x +\n",
        "def f(x):\n    return f(x)\n",
    ),
    *(
        "def f(x):\n    return [x] * (1 << 40)\n",
        "def f(x):\n    return len(str(f)) + x\n",
        "def f(x, x):\n    return x\n",
    ),
    *("def f(x):\n    y = [x]\n    y.append(y)\n    return len(y)\n", "def f(x):\n    return 'a' * 9999 + str(x)\n"),
    *("def f(x):\n    while True:\n        x += 1\n", "def f(x):\n    return x + 1\n", "def f(x):\n    return x - 1\n"),
]
OWNERS = st.lists(st.sampled_from(["a", "b", None]), min_size=40, max_size=40)


@pytest.fixture(scope="module")
def alone(verifier: Verifier) -> tuple[list[str], list[str]]:
    """Return the verdicts on answers and proposals, each judged alone."""
    return (
        [judged for answer in range(len(ANSWERS)) for judged in judge_answers(verifier, [answer])],
        [judged for number in range(len(PROPOSALS)) for judged in judge_proposals(verifier, [number])],
    )


def judge_answers(verifier: Verifier, numbers: list[int], owners: list[str | None] | None = None) -> list[str]:
    attempts = [(ANSWERS[n][0], Answer(task=ANSWERS[n][0].task, text=ANSWERS[n][1])) for n in numbers]
    return [str(verdict) for verdict in verifier.check_answers(attempts, owners=owners)]


def judge_proposals(verifier: Verifier, numbers: list[int], owners: list[str | None] | None = None) -> list[str]:
    proposals = [Proposal(task=Task.DEDUCTION, program=PROPOSALS[n], inputs=("(1,)",)) for n in numbers]
    return [str(judged.verdict) for judged in verifier.check_proposals(proposals, owners=owners)]


@given(
    st.lists(st.integers(0, len(ANSWERS) - 1), min_size=1, max_size=40),
    st.lists(st.integers(0, len(PROPOSALS) - 1), min_size=1, max_size=20),
    OWNERS,
)
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
def test_a_verdict_does_not_depend_on_its_batch_nor_on_whose_it_is(
    verifier: Verifier,
    alone: tuple[list[str], list[str]],
    answers: list[int],
    proposals: list[int],
    owners: list[str | None],
) -> None:
    for whose in (None, owners):
        of_answers, of_proposals = (whose and whose[: len(batch)] for batch in (answers, proposals))
        assert judge_answers(verifier, answers, of_answers) == [alone[0][number] for number in answers]
        assert judge_proposals(verifier, proposals, of_proposals) == [alone[1][number] for number in proposals]


def test_a_verdict_does_not_depend_on_all_cores_being_busy(
    verifier: Verifier, alone: tuple[list[str], list[str]]
) -> None:
    busy = [subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) for _ in range(6)]
    try:
        assert judge_answers(verifier, [*range(len(ANSWERS))] * 2) == alone[0] * 2
        assert judge_proposals(verifier, [*range(len(PROPOSALS))]) == alone[1]
    finally:
        for process in busy:
            process.kill()
            process.wait()
