"""The forked child: reads its job, gives up everything, runs the program, writes one frame for each call, exits.

Nothing here is trusted once the program runs: it may rewrite every object below. What it can do then is bounded by
the kernel, and all it can forge is the value that it could have returned. Loaded by the zygote, so it imports
next to nothing; and since each page that a fresh fork touches costs microseconds, it does as little as it can.
"""

from __future__ import annotations

import builtins
import gc
import marshal
import os
import sys

from populora_env.encoding import EncodeError, TooLargeError, decode, encode
from populora_env.sandbox import frames, isolation, kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any, Final

PROGRAM_NAME: Final = "program"
"""Name of the module in which a program runs."""
_LAST_FD = 256
"""A zygote is started with three descriptors and its socket, and opens a handful."""
_TIGHT_DEPTH = 30
"""C calls around a tight job."""
_Module: type = type(sys)


class Setup:
    """What a child needs to confine itself; made once, before the first fork."""

    __slots__ = ("ballast", "control", "limits", "padding", "program_filter", "zygote")

    def __init__(
        self,
        *,
        control: int,
        program_filter: kernel.Filter,
        limits: isolation.ChildLimits,
        zygote: int,
        ballast: list[object],
        padding: int,
    ) -> None:
        """Keep what a child needs.

        Args:
            control: Descriptor from which a child reads its job.
            program_filter: The seccomp filter.
            limits: Limits of a child.
            zygote: Process id of the zygote, as a child sees it.
            ballast: Memory that gives each zygote addresses of its own; only held.
            padding: Small blocks that a child takes before it runs anything: the holes that a fork left at the same
                place.
        """
        self.control = control
        self.program_filter = program_filter
        self.limits = limits
        self.zygote = zygote
        self.ballast = ballast
        self.padding = padding


def encode_job(parts: list[tuple[str, tuple[bytes, ...], int]]) -> bytes:
    """Return the body of a job: programs, each with its inputs and the calls on each.

    Our own bytes on both sides, so the fastest format will do.
    """
    return marshal.dumps(parts)


def run(result: int, header: tuple[Any, ...], setup: Setup) -> None:
    """Do one job and exit; never returns."""
    try:
        _, size, n_frames, cpu_s, _, tight = header
        body = frames.read_exactly(setup.control, size)
        if len(body) == size:
            parts = marshal.loads(body)
            _confine(result, n_frames * cpu_s, setup, tight=tight)
            os.write(frames.RESULT_FD, frames.READY)
            if tight:
                sys.setrecursionlimit(sys.getrecursionlimit() // 2)
                _deeper(_TIGHT_DEPTH, lambda: _play_all(parts, setup.padding))
            else:
                _play_all(parts, setup.padding)
    except (OSError, ValueError) as error:
        os.write(frames.RESULT_FD, str(error).encode())
    finally:
        os._exit(0)


def _confine(result: int, cpu_s: float, setup: Setup, *, tight: bool) -> None:
    if result != frames.RESULT_FD:
        os.dup2(result, frames.RESULT_FD)
    os.closerange(0, frames.RESULT_FD)
    os.closerange(frames.RESULT_FD + 1, _LAST_FD)
    kernel.die_with_parent(setup.zygote)
    setup.limits.apply(cpu_s, tight=tight)
    setup.program_filter.load()


def _deeper(levels: int, call: Callable[[], None]) -> None:
    """Call at a greater depth of C calls: from 3.12 on Python has a limit for these that cannot be set."""
    if levels:
        next(map(_deeper, (levels - 1,), (call,)))
    else:
        call()


def _play_all(parts: list[tuple[str, tuple[bytes, ...], int]], padding: int) -> None:
    """Run the programs, one after the other.

    Garbage is not collected while one runs: it could see when, and that depends on what was before.
    """
    held = [(object(), number + 0.5) for number in range(padding)]
    for number, part in enumerate(parts):
        if number:
            # All that was made since the fork is young.
            sys.modules.pop(PROGRAM_NAME, None)
            gc.collect(0)
        _play(*part)
    held.clear()


def _play(source: str, inputs: tuple[bytes, ...], calls: int) -> None:
    try:
        code = compile(source, "<program>", "exec", dont_inherit=True)
    except BaseException as error:
        frame = _failure(error)
        for _ in range(len(inputs) * calls):
            _send(*frame)
        return
    for data in inputs:
        function: Any = None
        for call in range(calls):
            try:
                if call == 0:
                    function = _define(code)
                value = function(*decode(data))
            except BaseException as error:
                _untrace()
                frame = _failure(error)
            else:
                _untrace()
                frame = _success(value)
            _send(*frame)


def _define(code: CodeType) -> Any:
    """Run a program in a fresh module and return its `f`."""
    module = _Module(PROGRAM_NAME)
    module.__dict__["__builtins__"] = builtins
    sys.modules[PROGRAM_NAME] = module
    exec(code, module.__dict__)
    return module.__dict__["f"]


def _untrace() -> None:
    sys.settrace(None)
    sys.setprofile(None)


def _success(value: Any) -> tuple[bytes, bytes]:
    try:
        return frames.VALUE, encode(value)
    except TooLargeError:
        return frames.TOO_LARGE, b""
    except (EncodeError, RecursionError):
        return frames.UNSERIALISABLE, b""
    except MemoryError:
        return frames.OUT_OF_MEMORY, b""


_NAME_OF_TYPE = type.__dict__["__name__"].__get__
"""Reads a type's own name; a metaclass cannot stand in its way."""


def _failure(error: BaseException) -> tuple[bytes, bytes]:
    kind = type(error)
    if kind is MemoryError:
        return frames.OUT_OF_MEMORY, b""
    name = str.__getitem__(_NAME_OF_TYPE(kind), slice(0, frames.MAX_NAME))
    return frames.RAISED, str.encode(name, "ascii", "replace")


def _send(tag: bytes, payload: bytes) -> None:
    view = memoryview(frames.FRAME.pack(tag, len(payload)) + payload)
    while view:
        view = view[os.write(frames.RESULT_FD, view) :]
