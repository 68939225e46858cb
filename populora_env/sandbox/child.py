"""The forked child: reads its job, gives up everything, runs the program, writes one frame for each call, exits.

Nothing here is trusted once the program runs: it may rewrite every object below. What it can do then is bounded by
the kernel, and all it can forge is the value that it could have returned. Loaded by the zygote, so the standard
library only.
"""

from __future__ import annotations

import builtins
import functools
import marshal
import os
import socket
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from populora_env.encoding import EncodeError, TooLargeError, decode, encode
from populora_env.sandbox import frames, isolation, kernel

PROGRAM_NAME: Final = "program"
"""Name of the module in which a program runs."""
_LAST_FD = 1 << 16
_TIGHT_DEPTH = 30
"""C calls around a tight job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a child needs to confine itself; made once, before the first fork."""

    program_filter: kernel.Filter
    address_space: int
    tight_address_space: int
    """The same for a tight job."""
    zygote: int
    """Process id of the zygote, as a child sees it."""
    ballast: list[object]
    """Memory that gives each zygote addresses of its own; only held."""
    padding: int
    """Small blocks that a child takes before it runs anything: the holes that a fork left at the same place."""


def encode_job(program: str, inputs: tuple[bytes, ...], calls: int, *, tight: bool) -> bytes:
    """Return the body of a job; our own bytes on both sides, so the fastest format will do."""
    return marshal.dumps((program, inputs, calls, tight))


def run(control: socket.socket, result: int, header: tuple[Any, ...], setup: Setup) -> None:
    """Do one job and exit; never returns."""
    try:
        _, size, n_frames, cpu_s, _ = header
        body = frames.read_exactly(control, size)
        if len(body) == size:
            source, inputs, calls, tight = marshal.loads(body)
            space = setup.tight_address_space if tight else setup.address_space
            _confine(result, n_frames * cpu_s, setup, space)
            os.write(frames.RESULT_FD, frames.READY)
            if tight:
                sys.setrecursionlimit(sys.getrecursionlimit() // 2)
                _deeper(_TIGHT_DEPTH, functools.partial(_play, source, inputs, calls, setup.padding))
            else:
                _play(source, inputs, calls, setup.padding)
    except (OSError, ValueError) as error:
        os.write(frames.RESULT_FD, str(error).encode())
    finally:
        os._exit(0)


def _confine(result: int, cpu_s: float, setup: Setup, address_space: int) -> None:
    if result != frames.RESULT_FD:
        os.dup2(result, frames.RESULT_FD)
    os.closerange(0, frames.RESULT_FD)
    os.closerange(frames.RESULT_FD + 1, _LAST_FD)
    kernel.die_with_parent(setup.zygote)
    isolation.limit_child(address_space=address_space, cpu_s=cpu_s)
    setup.program_filter.load()


def _deeper(levels: int, call: Callable[[], None]) -> None:
    """Call at a greater depth of C calls: from 3.12 on Python has a limit for these that cannot be set."""
    if levels:
        next(map(_deeper, (levels - 1,), (call,)))
    else:
        call()


def _play(source: str, inputs: tuple[bytes, ...], calls: int, padding: int) -> None:
    """Run the program. Garbage is not collected: a program could see when, and that depends on what was before."""
    held = [(object(), number + 0.5) for number in range(padding)]
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
    held.clear()


def _define(code: types.CodeType) -> Any:
    """Run a program in a fresh module and return its `f`."""
    module = types.ModuleType(PROGRAM_NAME)
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
