"""Bytes on the wires between the verifier, a zygote and a child.

Owns the layouts and their strict reading. Trusts nothing that comes from a child: its stream is only ever walked here.
Loaded by the zygote too, so the standard library only.

    verifier -> zygote   HELLO once, then one JOB header at a time; the *child* reads the body that follows
    child    -> zygote   READY, then one frame for each call: a tag, a length, a payload
    zygote   -> verifier REPLY header, then the child's stream
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

RESULT_FD: Final = 3
"""The only descriptor that a child keeps."""
READY: Final = b"R"
"""Written by a child after its set-up and before any hostile code: its absence is a fault of ours."""

VALUE: Final = b"V"
"""A call returned; the payload is the encoded value."""
RAISED: Final = b"E"
"""A call raised; the payload is the type's name."""
OUT_OF_MEMORY: Final = b"M"
"""A call raised MemoryError."""
UNSERIALISABLE: Final = b"U"
"""A call returned something that is no value."""
TOO_LARGE: Final = b"O"
"""A call returned a value of too many bytes."""
TAGS: Final = VALUE + RAISED + OUT_OF_MEMORY + UNSERIALISABLE + TOO_LARGE

FRAME: Final = struct.Struct(">cI")
"""Tag and length of the payload."""
MAX_PAYLOAD: Final = 64 * 1024
"""Longest payload of a frame, in bytes."""
MAX_NAME: Final = 80
"""Longest type name, in bytes."""

HELLO: Final = struct.Struct(">QBII")
"""Memory a child may gain, namespaces wanted, index of the zygote, length of the filter that follows."""
JOB: Final = struct.Struct(">QIIdd")
"""Job id, length of the body, frames expected, CPU and wall seconds for each frame."""
REPLY: Final = struct.Struct(">QBiQI")
"""Job id, how it ended (`End`), exit code or signal, CPU microseconds, length of the stream that follows."""


class End(IntEnum):
    """How a child ended, as the zygote saw it."""

    EXITED = 0
    SIGNALLED = 1
    CPU_LIMIT = 2
    WALL_LIMIT = 3
    BAD_STREAM = 4
    """The child wrote more, or longer, frames than it may."""
    NOT_READY = 5
    """The set-up of the child failed: a fault of the sandbox."""


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


class FrameCounter:
    """Counts the whole frames at the start of a growing stream, looking at each header once."""

    __slots__ = ("count", "next_at", "overlong")

    def __init__(self) -> None:
        """Start before the first byte."""
        self.count = 0
        self.next_at = len(READY)
        self.overlong = False

    def advance(self, buffer: bytearray, filled: int) -> None:
        """Walk over the frames that the first `filled` bytes of `buffer` hold by now."""
        while filled >= self.next_at + FRAME.size:
            _, length = FRAME.unpack_from(buffer, self.next_at)
            if length > MAX_PAYLOAD:
                self.overlong = True
                return
            end = self.next_at + FRAME.size + length
            if filled < end:
                return
            self.next_at = end
            self.count += 1


def read_stream(stream: bytes, expected: int) -> Stream:
    """Take a child's stream (without READY) apart into at most `expected` frames."""
    frames: list[Frame] = []
    at = 0
    while at < len(stream):
        if len(frames) == expected or len(stream) < at + FRAME.size:
            return Stream(tuple(frames), broken=True)
        tag, length = FRAME.unpack_from(stream, at)
        start = at + FRAME.size
        at = start + length
        if tag not in TAGS or length > MAX_PAYLOAD or at > len(stream):
            return Stream(tuple(frames), broken=True)
        frames.append(Frame(tag, stream[start:at]))
    return Stream(tuple(frames), broken=False)


def read_exactly(source: socket.socket, size: int) -> bytes:
    """Read `size` bytes from a blocking socket; fewer only at its end."""
    parts = bytearray()
    while len(parts) < size:
        piece = source.recv(size - len(parts))
        if not piece:
            break
        parts += piece
    return bytes(parts)
