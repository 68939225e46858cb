"""Raw system calls that Python has no function for: prctl, seccomp, unshare, mounts, Landlock, capabilities.

Owns numbers and structures of the kernel's interface, not the order in which they are used (that is `isolation`).
Loaded by the zygote, so it imports next to nothing.
"""

from __future__ import annotations

import ctypes
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

MACHINES: Final = {"x86_64": {"seccomp": 317, "pivot_root": 155}, "aarch64": {"seccomp": 277, "pivot_root": 41}}
"""Known architectures, with the calls whose numbers differ between them; the Landlock numbers are the same on both."""
_LANDLOCK_CREATE_RULESET, _LANDLOCK_RESTRICT_SELF = 444, 446
_LANDLOCK_CREATE_VERSION = 1

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 1, 4, 24
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_SET_MDWE = 38, 47, 65
_PR_CAP_AMBIENT_CLEAR_ALL, _PR_MDWE_REFUSE_EXEC_GAIN = 4, 1
_SECCOMP_SET_MODE_FILTER = 1
_CAPABILITY_VERSION_3 = 0x20080522
_LAST_CAPABILITY = 63

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (1 << 17, 1 << 26, 1 << 27, 1 << 28, 1 << 29, 1 << 30)
"""Flags of unshare()."""
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT = 1, 2, 4, 8, 32
_MS_BIND, _MS_REC, _MS_PRIVATE = 1 << 12, 1 << 14, 1 << 18
_MNT_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
_bare_libc = ctypes.PyDLL(None)
"""The same without errno, and without giving up the interpreter's lock: ten times cheaper in a process just forked."""
_bare_fork, _bare_prctl, _bare_syscall = _bare_libc.fork, _bare_libc.prctl, _bare_libc.syscall


class _SockFprog(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _check(result: int, name: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def machine() -> str:
    """Return the architecture of this machine, as in `MACHINES` if it is known."""
    return os.uname().machine


def prctl(option: int, argument: int = 0) -> None:
    """Make a prctl call with one argument.

    Raises:
        OSError: The kernel refused.
    """
    zero = ctypes.c_ulong(0)
    _check(_libc.prctl(option, ctypes.c_ulong(argument), zero, zero, zero), "prctl")


def die_with_parent(parent: int) -> None:
    """Ask for SIGKILL when the parent ends, and leave at once if it has ended already.

    Args:
        parent: Process id of the parent, as seen from here.
    """
    if _bare_prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0) or os.getppid() != parent:
        os._exit(1)


def fork() -> int:
    """Fork without Python's hooks.

    They seed `random` anew and mend the locks of threads that are not there, at a third of the price of a job.

    Raises:
        OSError: The kernel refused.
    """
    pid = int(_bare_fork())
    if pid < 0:
        raise OSError("fork failed")
    return pid


def hide_memory() -> None:
    """Forbid ptrace and /proc access by others of the same user."""
    prctl(_PR_SET_DUMPABLE, 0)


def no_new_privileges() -> None:
    """Give up gaining privileges by exec; needed for seccomp and Landlock."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def deny_write_execute() -> None:
    """Forbid memory that is or was writable to become executable (Linux 6.3)."""
    prctl(_PR_SET_MDWE, _PR_MDWE_REFUSE_EXEC_GAIN)


class Filter:
    """A seccomp filter whose structures are made once, so that a child loads it with a single call."""

    __slots__ = ("_buffer", "_number", "_program", "_reference")

    def __init__(self, bpf: bytes) -> None:
        """Keep `bpf`, an array of struct sock_filter."""
        self._buffer = ctypes.create_string_buffer(bpf, len(bpf))
        self._program = _SockFprog(len(bpf) // 8, ctypes.cast(self._buffer, ctypes.c_void_p))
        self._reference = ctypes.byref(self._program)
        self._number = MACHINES[machine()]["seccomp"]

    def load(self) -> None:
        """Put this process under the filter, for good.

        Raises:
            OSError: The kernel refused.
        """
        if _bare_syscall(self._number, _SECCOMP_SET_MODE_FILTER, 0, self._reference):
            raise OSError("seccomp: the filter was refused")


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags`.

    Raises:
        OSError: The kernel refused.
    """
    _check(_libc.unshare(flags), "unshare")


def empty_root(folder: str) -> None:
    """Make an empty read-only tmpfs the root, by way of `folder`; nothing of the old root stays reachable.

    Raises:
        OSError: The kernel refused one of the steps.
    """
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    _check(_libc.mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None), "mount")
    options = b"size=4k,nr_inodes=2,mode=555"
    _check(_libc.mount(b"none", folder.encode(), b"tmpfs", ctypes.c_ulong(flags), options), "mount")
    os.chdir(folder)
    _check(_syscall(MACHINES[machine()]["pivot_root"], b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _MNT_DETACH), "umount2")
    os.chdir("/")
    remount = flags | _MS_REMOUNT | _MS_BIND | _MS_RDONLY
    _check(_libc.mount(None, b"/", None, ctypes.c_ulong(remount), None), "mount")


def landlock_deny_all() -> None:
    """Deny every right over files and the network that this kernel's Landlock knows of.

    Raises:
        OSError: The kernel has no Landlock.
    """
    version = _check(_syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_CREATE_VERSION), "landlock")
    fs_rights = {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)
    rules = struct.pack("=Q", (1 << fs_rights) - 1)
    if version >= 4:
        rules += struct.pack("=Q", 0b11)
    if version >= 6:
        rules += struct.pack("=Q", 0b11)
    ruleset = _check(_syscall(_LANDLOCK_CREATE_RULESET, rules, len(rules), 0), "landlock_create_ruleset")
    try:
        _check(_syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
    finally:
        os.close(ruleset)


def drop_bounding_set() -> None:
    """Take every capability out of the bounding and ambient sets, as far as the kernel lets us."""
    for capability in range(_LAST_CAPABILITY + 1):
        if _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) < 0:
            break
    _libc.prctl(_PR_CAP_AMBIENT, ctypes.c_ulong(_PR_CAP_AMBIENT_CLEAR_ALL), 0, 0, 0)


def drop_capabilities() -> None:
    """Give up every capability.

    Raises:
        OSError: The kernel refused, or one is left.
    """
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, bytes(24)), "capset")
    left = ctypes.create_string_buffer(24)
    _check(_libc.capget(header, left), "capget")
    if any(left.raw):
        raise OSError(1, "capabilities are left")
