"""What a child wrote, read by the verifier: frames, and how the child ended.

Owns the strict reading of bytes that anybody may have written. Means nothing by them (that is `jobs`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from populora_env.sandbox import frames
from populora_env.sandbox.frames import FRAME, MAX_PAYLOAD, TAGS


class End(IntEnum):
    """How a child ended, as the zygote saw it; see `frames`."""

    EXITED = frames.EXITED
    SIGNALLED = frames.SIGNALLED
    CPU_LIMIT = frames.CPU_LIMIT
    WALL_LIMIT = frames.WALL_LIMIT
    BAD_STREAM = frames.BAD_STREAM
    NOT_READY = frames.NOT_READY


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a child's stream."""

    tag: bytes
    payload: bytes


@dataclass(frozen=True, slots=True)
class Stream:
    """The frames of a child's stream, and whether anything but whole frames was in it."""

    frames: tuple[Frame, ...]
    broken: bool


def read_stream(stream: bytes, expected: int) -> Stream:
    """Take a child's stream (without READY) apart into at most `expected` frames."""
    found: list[Frame] = []
    at = 0
    while at < len(stream):
        if len(found) == expected or len(stream) < at + FRAME.size:
            return Stream(tuple(found), broken=True)
        tag, length = FRAME.unpack_from(stream, at)
        start = at + FRAME.size
        at = start + length
        if tag not in TAGS or length > MAX_PAYLOAD or at > len(stream):
            return Stream(tuple(found), broken=True)
        found.append(Frame(tag, stream[start:at]))
    return Stream(tuple(found), broken=False)
