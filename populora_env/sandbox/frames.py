"""Bytes on the wires between the verifier, a zygote and a child.

Owns the layouts, and how a zygote reads them (`streams` does it for the verifier). Trusts nothing that comes from a
child: its stream is only ever walked here. Loaded by the zygote, so it imports next to nothing.

    verifier -> zygote   HELLO once, then one JOB header at a time; the *child* reads the body that follows
    child    -> zygote   READY, then one frame for each call: a tag, a length, a payload
    zygote   -> verifier REPLY header, then the child's stream
"""

from __future__ import annotations

import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
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

BARE, LIBRARY, NUMPY = range(3)
"""What a zygote loads before it forks: the language alone, the standard library, and numpy with `harness` on top."""

HELLO: Final = struct.Struct(">QBBIII")
"""Memory a child may gain, namespaces wanted, what to load, index of the zygote, lengths of what follows: the filter,
and the folder of numpy."""
JOB: Final = struct.Struct(">QIIddB")
"""Job id, length of the body, frames expected, CPU and wall seconds for each frame, whether it is tight."""
REPLY: Final = struct.Struct(">QBiQI")
"""Job id, how it ended, exit code or signal, CPU microseconds, length of the stream that follows."""

EXITED, SIGNALLED, CPU_LIMIT, WALL_LIMIT, BAD_STREAM, NOT_READY = range(6)
"""How a child ended, as the zygote saw it. BAD_STREAM: it wrote more, or longer, frames than it may. NOT_READY: its
set-up failed, which is a fault of the sandbox."""


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


def read_exactly(source: int, size: int) -> bytes:
    """Read `size` bytes from a blocking descriptor; fewer only at its end."""
    data = os.read(source, size)
    while len(data) < size:
        piece = os.read(source, size - len(data))
        if not piece:
            break
        data += piece
    return data
