"""Frames and replies: strict reading of whatever comes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from populora_env.sandbox import frames
from populora_env.sandbox.frames import FRAME, READY, FrameCounter
from populora_env.sandbox.jobs import FaultError, Job, Reply, outcomes_of, read_reply
from populora_env.sandbox.streams import End, Frame, read_stream
from populora_env.types import Status
from populora_env.values import encode


def frame(tag: bytes, payload: bytes = b"") -> bytes:
    return FRAME.pack(tag, len(payload)) + payload


PIECES = st.lists(
    st.binary(max_size=8) | st.sampled_from([frame(b"V", b"n"), frame(b"E", b"Type"), frame(b"M"), frame(b"X")]),
    max_size=6,
).map(b"".join)


def test_whole_frames_are_read() -> None:
    stream = read_stream(frame(b"V", b"i1;") + frame(b"E", b"KeyError"), 2)
    assert stream.frames == (Frame(b"V", b"i1;"), Frame(b"E", b"KeyError"))
    assert not stream.broken


def test_too_many_too_short_and_unknown_frames_are_broken() -> None:
    one = frame(b"V", b"n")
    for data in (one + one, one + b"V", one[:-1], frame(b"X"), b"V\xff\xff\xff\xff", READY):
        assert read_stream(data, 1).broken, data


@given(PIECES, st.integers(1, 4))
@settings(max_examples=300, deadline=None)
def test_any_stream_gives_an_outcome_of_the_right_length(data: bytes, n_inputs: int) -> None:
    job = Job(program="", inputs=(encode(()),) * n_inputs, cpu_s=1.0, wall_s=1.0)
    for end, code in (
        (End.EXITED, 0),
        (End.SIGNALLED, 11),
        (End.SIGNALLED, 31),
        (End.CPU_LIMIT, -9),
        (End.BAD_STREAM, -9),
    ):
        outcome = outcomes_of([job], Reply(job_id=1, end=end, code=code, cpu_s=0.1, stream=data))[0]
        assert len(outcome.results) == n_inputs
        assert all(len(result.detail) <= frames.MAX_NAME and result.detail.isascii() for result in outcome.results)
        if end is not End.EXITED:
            assert any(result.status is not Status.OK for result in outcome.results)


@given(st.binary(max_size=80))
@settings(max_examples=300, deadline=None)
def test_any_reply_is_read_awaited_or_a_fault(data: bytes) -> None:
    try:
        reply = read_reply(data)
    except FaultError:
        return
    assert reply is None or len(data) >= frames.REPLY.size + len(reply.stream)


@given(PIECES, st.lists(st.integers(0, 40), max_size=6))
@settings(max_examples=200, deadline=None)
def test_counting_does_not_depend_on_how_a_stream_is_cut(data: bytes, cuts: list[int]) -> None:
    whole, piecewise = FrameCounter(), FrameCounter()
    stream = bytearray(READY + data)
    whole.advance(stream, len(stream))
    for cut in sorted(cuts):
        piecewise.advance(stream, min(cut, len(stream)))
    piecewise.advance(stream, len(stream))
    assert (piecewise.count, piecewise.overlong) == (whole.count, whole.overlong)


def test_a_kill_from_outside_is_a_fault_and_no_verdict() -> None:
    job = Job(program="", inputs=(encode(()),), cpu_s=1.0, wall_s=1.0)
    killed = Reply(job_id=1, end=End.SIGNALLED, code=9, cpu_s=0.1, stream=b"")
    backstop = Reply(job_id=1, end=End.SIGNALLED, code=9, cpu_s=2.0, stream=b"")
    unready = Reply(job_id=1, end=End.NOT_READY, code=0, cpu_s=0.0, stream=b"")
    for fault in (killed, unready):
        try:
            outcomes_of([job], fault)
        except FaultError:
            continue
        raise AssertionError(fault)
    assert outcomes_of([job], backstop)[0].results[0].status is Status.TIMEOUT
