"""The filter: that it is built on every machine we support, and what it answers, call by call."""

from __future__ import annotations

import errno
import struct
import sys

import pytest

from populora_env.sandbox import seccomp_filter
from populora_env.sandbox.errors import SandboxError
from populora_env.sandbox.seccomp_filter import bindings, build_filter

KILL, ALLOW, ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
AUDIT = {"X86_64": 0xC000003E, "AARCH64": 0xC00000B7}
ARCHITECTURES = sorted(AUDIT)


def answer(bpf: bytes, number: int, *arguments: int, audit: int) -> int:
    """Run classic BPF on one system call, as the kernel would."""
    data = struct.pack("<iIQ6Q", number, audit, 0, *(list(arguments) + [0] * 6)[:6])
    accumulator, at = 0, 0
    while True:
        code, jump_true, jump_false, constant = struct.unpack_from("<HBBI", bpf, at * 8)
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, constant)
        elif code == 0x54:
            accumulator &= constant
        elif code == 0x05:
            at += constant
        elif code == 0x06:
            return int(constant)
        elif code in (0x15, 0x25, 0x35):
            holds = {0x15: accumulator == constant, 0x25: accumulator > constant, 0x35: accumulator >= constant}[code]
            at += jump_true if holds else jump_false
        else:
            raise AssertionError(f"unknown instruction {code:#x}")


def number_of(architecture: str, name: str) -> int:
    library = bindings()
    return int(library.resolve_syscall(getattr(library.Arch, architecture), name))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("exit_group", (), ALLOW),
        ("write", (3, 0, 1), ALLOW),
        ("write", (1, 0, 1), ERRNO | errno.EBADF),
        ("write", ((1 << 32) + 3, 0, 1), ERRNO | errno.EBADF),
        ("mmap", (0, 4096, 3, 0x22), ALLOW),
        ("mmap", (0, 4096, 7, 0x22), KILL),
        ("mmap", (0, 4096, 3, 0x21), KILL),
        ("mmap", (0, 4096, 3, 0x24032), ALLOW),
        ("mmap", (0, 4096, 3, 0x02), KILL),
        ("mmap", (0, 4096, 3, 0x23), KILL),
        ("mmap", (0, 4096, 3, 0x40022), KILL),
        ("mmap", (0, 4096, 3, 0x122), KILL),
        ("mmap", (0, 4096, (1 << 32) + 4, 0x22), KILL),
        ("mmap", (0, 4096, 3, (1 << 32) + 0x22), KILL),
        ("mprotect", (0, 4096, 0x01000003), KILL),
        ("clock_gettime", (1,), ALLOW),
        ("clock_gettime", (11,), ALLOW),
        ("clock_gettime", (12,), KILL),
        ("clock_gettime", (0xFFFFFFFA,), KILL),
        ("clock_gettime", (-6 % (1 << 64),), KILL),
        ("clock_getres", (-6 % (1 << 64),), KILL),
        ("prctl", (0x53564D41, 0), ERRNO | errno.EINVAL),
        ("prctl", (15,), KILL),
        ("fcntl", (3, 1031, 1 << 20), ERRNO | errno.EACCES),
        ("ioctl", (3, 0x5412), ERRNO | errno.EACCES),
        ("rt_sigaction", (), KILL),
        ("rt_sigreturn", (), KILL),
        ("set_robust_list", (), KILL),
        ("rseq", (), KILL),
        ("futex", (0, 1 << 32 | 0x81), ALLOW),
        ("futex", (0, 1 << 32), KILL),
        ("mprotect", (0, 4096, 3), ALLOW),
        ("mprotect", (0, 4096, 5), KILL),
        ("mremap", (0, 1, 2, 1), ALLOW),
        ("mremap", (0, 1, 2, 4), KILL),
        ("futex", (0, 0x81), ALLOW),
        ("futex", (0, 0x80), KILL),
        ("futex", (0, 0x189), KILL),
        ("madvise", (0, 1, 4), ALLOW),
        ("madvise", (0, 1, 100), KILL),
        ("openat", (), ERRNO | errno.EACCES),
        ("read", (), ERRNO | errno.EACCES),
        ("getrandom", (), ERRNO | errno.EPERM),
        ("setitimer", (), ERRNO | errno.EPERM),
        ("clone3", (), ERRNO | errno.ENOSYS),
        ("clone", (), KILL),
        ("execve", (), KILL),
        ("kill", (), KILL),
        ("tgkill", (), KILL),
        ("ptrace", (), KILL),
        ("socket", (), KILL),
        ("seccomp", (), KILL),
        ("prctl", (), KILL),
        ("prlimit64", (), KILL),
        ("clock_nanosleep", (), KILL),
        ("ppoll", (), KILL),
        ("io_uring_setup", (), KILL),
        ("process_vm_readv", (), KILL),
        ("unlinkat", (), KILL),
        ("dup3", (), KILL),
    ],
)
def test_the_filter_answers(architecture: str, name: str, arguments: tuple[int, ...], expected: int) -> None:
    number = number_of(architecture, name)
    assert number >= 0
    bpf = build_filter(architecture)
    assert answer(bpf, number, *arguments, audit=AUDIT[architecture]) == expected


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_other_architectures_and_unknown_calls_are_killed(architecture: str) -> None:
    bpf = build_filter(architecture)
    for audit in (0x40000003, *(value for name, value in AUDIT.items() if name != architecture)):
        assert answer(bpf, 1, audit=audit) == KILL
    for number in (999, 5000, 0x40000001, -1):
        assert answer(bpf, number, audit=AUDIT[architecture]) == KILL


def test_few_calls_are_allowed() -> None:
    assert len(seccomp_filter.ALLOWED) < 30


def test_missing_bindings_are_a_sandbox_error_that_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "seccomp", None)
    monkeypatch.setitem(sys.modules, "pyseccomp", None)
    with pytest.raises(SandboxError, match="pip install pyseccomp"):
        bindings()
