"""The seccomp filter of a child, built once by name with the libseccomp bindings and exported as BPF.

Owns the list of system calls that untrusted code may make. Owns no loading: the child does that with one raw call.
The default is to kill the process, so that a call unknown today is refused too.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
from types import ModuleType
from typing import Any, Final

from populora_env.sandbox.errors import SandboxError
from populora_env.sandbox.frames import RESULT_FD

ALLOWED: Final = (
    # memory; mmap, mprotect and mremap have rules of their own below
    "brk",
    "munmap",
    # the end
    "exit",
    "exit_group",
    # masks and stacks of signals, for which there are no handlers: sigaction is not here, nor is the return from one
    "rt_sigprocmask",
    "sigaltstack",
    # clocks that cannot wait: the fallback where the vDSO has no fast path; clock_gettime has a rule of its own
    "gettimeofday",
    "time",
    # what the C library asks for in passing
    "close",
    "getpid",
    "gettid",
    "sched_yield",
)
"""Calls that are allowed whatever their arguments are."""

REFUSED: Final = {
    errno.EACCES: (
        *("open", "openat", "openat2", "stat", "lstat", "fstat", "newfstatat", "statx", "access", "faccessat"),
        *("faccessat2", "readlink", "readlinkat", "getcwd", "getdents", "getdents64", "read", "pread64", "readv"),
        *("lseek", "ioctl", "fcntl"),
    ),
    errno.EPERM: (
        *("setitimer", "getitimer", "alarm", "getrandom", "sysinfo", "uname", "sched_getaffinity", "getrusage"),
        *("times", "getppid", "getuid", "geteuid", "getgid", "getegid"),
    ),
    errno.ENOSYS: ("clone3",),
}
"""Calls that fail as they would for lack of rights, so that an import of a module that is not loaded, a timer or a
look at the user is an ordinary Python error."""

_BINARY_TREE = 2
"""libseccomp's number for it."""
_PROT = 0b11
"""READ and WRITE."""
_MAP_NEEDED, _MAP_OPTIONAL = 0x22, 0x24010
"""PRIVATE and ANONYMOUS; FIXED, NORESERVE and STACK. Not SHARED, nor HUGETLB, which takes from the whole machine."""
_LAST_CLOCK = 11
"""CLOCK_TAI. Other numbers are clocks of other processes, or of devices."""
_PR_SET_VMA = 0x53564D41
"""prctl: name a piece of memory; newer C libraries and Pythons do so, and can do without."""
_FUTEX_WAKE, _FUTEX_COMMAND = 1, 0x7F
_ADVICE = (4, 8, 14, 15)
"""madvise: DONTNEED, FREE, HUGEPAGE, NOHUGEPAGE."""
_MREMAP_FLAGS = 0b11
"""MAYMOVE and FIXED."""


def bindings() -> ModuleType:
    """Return the libseccomp bindings of the distribution, else those from PyPI.

    Raises:
        SandboxError: Neither is there, or libseccomp itself is missing.
    """
    try:
        import seccomp
    except ImportError:
        try:
            import pyseccomp as seccomp
        except (ImportError, OSError, RuntimeError) as error:
            raise SandboxError(
                "expected libseccomp with Python bindings; install libseccomp2 and `pip install pyseccomp`"
            ) from error
    return seccomp  # type: ignore[no-any-return]


@functools.cache
def build_filter(architecture: str | None = None) -> bytes:
    """Return the filter as BPF, an array of struct sock_filter.

    Args:
        architecture: `X86_64` or `AARCH64`; None is this machine's.

    Raises:
        SandboxError: No bindings, or libseccomp could not build the filter.
    """
    library = bindings()
    try:
        rules = library.SyscallFilter(library.KILL_PROCESS)
        rules.set_attr(library.Attr.ACT_BADARCH, library.KILL_PROCESS)
        _sort_into_a_tree(library, rules)
        target = library.Arch.NATIVE
        if architecture is not None:
            target = getattr(library.Arch, architecture)
            if target != library.system_arch():
                rules.add_arch(target)
                rules.remove_arch(library.system_arch())
        _add_rules(library, rules, target)
        return _exported(rules)
    except (OSError, ValueError, RuntimeError, AttributeError) as error:
        raise SandboxError(f"expected libseccomp to build the filter, got: {error}") from error


def _sort_into_a_tree(library: ModuleType, rules: Any) -> None:
    """Ask for a filter that finds a call in a tree rather than in a list, where libseccomp can (2.5 and later).

    At each load the kernel runs the filter once for every number of a call, to know which it need not ask about: with a
    list that is half of the time that a child takes to confine itself.
    """
    with contextlib.suppress(AttributeError, OSError, ValueError, RuntimeError):
        rules.set_attr(library.Attr.CTL_OPTIMIZE, _BINARY_TREE)


def _add_rules(library: ModuleType, rules: Any, target: int) -> None:
    def add(action: Any, name: str, *conditions: Any) -> None:
        if _exists(library, target, name):
            rules.add_rule(action, name, *conditions)

    allow, arg = library.ALLOW, library.Arg
    masked, equal = library.MASKED_EQ, library.EQ
    for name in ALLOWED:
        add(allow, name)
    for number, names in REFUSED.items():
        for name in names:
            add(library.ERRNO(number), name)
    add(allow, "write", arg(0, equal, RESULT_FD))
    add(library.ERRNO(errno.EBADF), "write", arg(0, library.NE, RESULT_FD))
    add(allow, "mmap", arg(2, masked, _but(_PROT), 0), arg(3, masked, _but(_MAP_OPTIONAL), _MAP_NEEDED))
    add(allow, "mprotect", arg(2, masked, _but(_PROT), 0))
    add(allow, "mremap", arg(3, masked, _but(_MREMAP_FLAGS), 0))
    add(library.ERRNO(errno.EINVAL), "prctl", arg(0, equal, _PR_SET_VMA))
    for name in ("clock_gettime", "clock_getres"):
        add(allow, name, arg(0, library.LE, _LAST_CLOCK))
    for advice in _ADVICE:
        add(allow, "madvise", arg(2, equal, advice))
    # Waking is needed when a lock is let go; waiting alone would be for ever, at no cost of CPU time.
    add(allow, "futex", arg(1, masked, _FUTEX_COMMAND, _FUTEX_WAKE))


def _but(bits: int) -> int:
    """Return the mask of all bits of an argument but these."""
    return (1 << 64) - 1 - bits


def _exists(library: ModuleType, target: int, name: str) -> bool:
    """Return whether the architecture has a call of this name; libseccomp gives the others negative numbers."""
    try:
        return int(library.resolve_syscall(target or library.system_arch(), name)) >= 0
    except (OSError, ValueError, RuntimeError):
        return False


def _exported(rules: Any) -> bytes:
    descriptor = os.memfd_create("populora-filter")
    with os.fdopen(descriptor, "r+b") as file:
        rules.export_bpf(file)
        file.seek(0)
        return file.read()
