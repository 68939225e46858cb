"""The self-test: attacks that each zygote must be seen to stop before it gets any job.

Owns the attacks and what each must come to. A canary that is not stopped is a SandboxError.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from populora_env.config import VerifierConfig
from populora_env.sandbox import kernel
from populora_env.sandbox.errors import SandboxError
from populora_env.sandbox.jobs import CallResult, Job, Outcome
from populora_env.types import Status
from populora_env.values import encode

_LIBC = "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
_PTRACE = {"x86_64": 101, "aarch64": 117}
_MMAP = {"x86_64": 9, "aarch64": 222}


@dataclass(frozen=True, slots=True)
class Canary:
    """One attack."""

    name: str
    program: str
    expected: frozenset[tuple[Status, str]]
    """Statuses with details, one of which it must come to."""

    def stopped(self, result: CallResult) -> bool:
        """Return whether `result` shows that the sandbox held."""
        return (result.status, result.detail) in self.expected


def _canary(name: str, body: str, *expected: tuple[Status, str], head: str = "") -> Canary:
    return Canary(name, f"{head}def f():\n    {body}\n", frozenset(expected))


_FORBIDDEN = (Status.FORBIDDEN, "")
_DENIED = (Status.ERROR, "PermissionError")


def canaries() -> tuple[Canary, ...]:
    """Return the attacks for this machine; the first is none and must come to a value."""
    machine = kernel.machine()
    mmap = f"libc.syscall({_MMAP[machine]}, None, 4096, 7, 0x22, -1, 0)"
    forged = "os.write(3, b'V\\x00\\x00\\x00\\x02i7;')"
    return (
        _canary("sane", "return 7", (Status.OK, "")),
        _canary("open", "open('/etc/passwd')", _DENIED),
        _canary("stat", "os.stat('/')", _DENIED, head="import os\n"),
        _canary("socket", "libc.socket(2, 1, 0)", _FORBIDDEN, head=_LIBC),
        _canary("fork", "os.fork()", _FORBIDDEN, head="import os\n"),
        _canary("thread", "_thread.start_new_thread(f, ())", _FORBIDDEN, head="import _thread\n"),
        _canary("exec", "os.execv('/bin/true', ['true'])", _FORBIDDEN, head="import os\n"),
        _canary("ptrace", f"libc.syscall({_PTRACE[machine]}, 0, 0, 0, 0)", _FORBIDDEN, head=_LIBC),
        _canary("kill", "os.kill(1, 0)", _FORBIDDEN, head="import os\n"),
        _canary("executable mmap", mmap, _FORBIDDEN, head=_LIBC),
        _canary("write elsewhere", "os.write(2, b'x')", (Status.ERROR, "OSError"), head="import os\n"),
        _canary("endless loop", "while True: pass", (Status.TIMEOUT, "")),
        _canary("memory", "return len(bytearray(1 << 46))", (Status.MEMORY, "")),
        _canary("forged frame", f"{forged}; return 7", (Status.BAD_FRAME, ""), head="import os\n"),
    )


CANARY_CPU_S: Final = 0.05
"""CPU limit of a canary; the endless loop takes all of it."""
_NO_ARGUMENTS = encode(())


def canary_job(canary: Canary, zygote: int, config: VerifierConfig) -> Job:
    """Return the job that tries a canary in one zygote."""
    return Job(
        program=canary.program,
        inputs=(_NO_ARGUMENTS,),
        cpu_s=CANARY_CPU_S,
        wall_s=max(config.wall_s, 10.0),
        zygote=zygote,
    )


def require_stopped(tried: Iterable[tuple[object, Outcome]]) -> None:
    """Check that every canary that was tried was stopped.

    Raises:
        SandboxError: One was not.
    """
    for canary, outcome in tried:
        if not isinstance(canary, Canary) or not canary.stopped(outcome.results[0]):
            raise SandboxError(f"expected the sandbox to stop the canary {canary}, got {outcome.results[0]}")
