"""The order in which a zygote cuts itself off, and the limits that its children get.

Owns what is required and what is best effort. What is required raises; the rest is reported as a layer. Does not own
the calls themselves (that is `kernel`). Loaded by the zygote, so it imports next to nothing.
"""

from __future__ import annotations

import os
import resource
import sys

from populora_env.sandbox import kernel

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
    from typing import Final
else:
    import _signal  # what `signal` wraps in enums

NOBODY: Final = 65534
"""User and group that a zygote started by root becomes."""
OUTSIDE: Final = 0
"""Process id of a parent outside the process namespace, as getppid() gives it."""
STACK_BYTES: Final = 8 * 1024 * 1024
_EMPTY_ROOT_AT = "/tmp"
_OTHER_NAMESPACES = {
    "net": kernel.NEWNET,
    "ipc": kernel.NEWIPC,
    "uts": kernel.NEWUTS,
    "mount": kernel.NEWNS,
    "pid": kernel.NEWPID,
}


def best_effort(step: Callable[[], None]) -> bool:
    """Return whether a step that may be refused was granted."""
    try:
        step()
    except OSError:
        return False
    return True


def enter_namespaces() -> dict[str, bool]:
    """Leave the host's namespaces, all or one by one; an ordinary user needs a user namespace for it."""
    if os.geteuid() == 0:
        granted = {f"{name}_namespace": _unshared(flag) for name, flag in _OTHER_NAMESPACES.items()}
        return {"user_namespace": False, **granted}
    user, group = os.geteuid(), os.getegid()
    wanted = kernel.NEWUSER
    for flag in _OTHER_NAMESPACES.values():
        wanted |= flag
    granted_all = _unshared(wanted)
    if granted_all:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    return {f"{name}_namespace": granted_all for name in ("user", *_OTHER_NAMESPACES)}


def _unshared(flags: int) -> bool:
    return best_effort(lambda: kernel.unshare(flags))


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def become_first_process() -> None:
    """Fork into the new process namespace; the outer process only waits, and takes the inner one with it."""
    inner = os.fork()
    if inner == 0:
        kernel.die_with_parent(OUTSIDE)
        return
    os.closerange(0, 256)
    _, status = os.waitpid(inner, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def seal(*, mount_namespace: bool, parent: int, namespaces: bool) -> dict[str, bool]:
    """Take the steps after the standard library is loaded, from pivot_root to the loss of all capabilities.

    Args:
        mount_namespace: Whether this process has a mount namespace of its own.
        parent: Process id of the parent, as seen from here.
        namespaces: Whether namespaces, pivot_root and Landlock were asked for.

    Returns:
        The best-effort layers, granted or not.

    Raises:
        OSError: A required step was refused.
    """
    layers = {"pivot_root": mount_namespace and best_effort(lambda: kernel.empty_root(_EMPTY_ROOT_AT))}
    kernel.drop_bounding_set()
    if os.geteuid() == 0:
        drop_user()
    kernel.die_with_parent(parent)
    kernel.hide_memory()
    kernel.no_new_privileges()
    layers["landlock"] = namespaces and best_effort(kernel.landlock_deny_all)
    layers["memory_sealing"] = best_effort(kernel.deny_write_execute)
    kernel.drop_capabilities()
    limit_zygote()
    return layers


def drop_user() -> None:
    """Become nobody, for good.

    Raises:
        OSError: The user could not be changed.
    """
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    if os.getresuid() != (NOBODY,) * 3 or os.getresgid() != (NOBODY,) * 3:
        raise OSError(1, "the user could not be dropped")


def limit_zygote() -> None:
    """Set the limits that a zygote and its children share."""
    for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_MEMLOCK):
        resource.setrlimit(limit, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_STACK)
    stack = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (stack, stack))


class ChildLimits:
    """The limits of a child, made ready before the fork: address space, CPU time, no processes, no descriptors."""

    __slots__ = ("_cpu_hard", "_fixed", "_space", "_tight_space")

    def __init__(self, *, address_space: int, tight_address_space: int) -> None:
        """Take the limits on the address space, in bytes, of a job and of a tight one; see what hard limits allow."""
        self._space = _within_hard(resource.RLIMIT_AS, address_space)
        self._tight_space = _within_hard(resource.RLIMIT_AS, tight_address_space)
        self._cpu_hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        self._fixed = ((resource.RLIMIT_NPROC, (0, 0)), (resource.RLIMIT_NOFILE, (0, 0)))

    def apply(self, cpu_s: float, *, tight: bool) -> None:
        """Limit this process for good; CPU time in whole seconds, as the backstop.

        Raises:
            OSError: The kernel refused.
        """
        setrlimit = resource.setrlimit
        space = self._tight_space if tight else self._space
        setrlimit(resource.RLIMIT_AS, (space, space))
        seconds = int(cpu_s) + 2
        ceiling = seconds + 1
        if self._cpu_hard != resource.RLIM_INFINITY:
            seconds, ceiling = min(seconds, self._cpu_hard), min(ceiling, self._cpu_hard)
        setrlimit(resource.RLIMIT_CPU, (seconds, ceiling))
        for limit, pair in self._fixed:
            setrlimit(limit, pair)


def _within_hard(limit: int, wanted: int) -> int:
    _, hard = resource.getrlimit(limit)
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def reset_signals() -> None:
    """Ignore the terminal's signals (they are the trainer's affair) and give all others their default action."""
    ignored = {_signal.SIGINT, _signal.SIGQUIT, _signal.SIGHUP, _signal.SIGTSTP, _signal.SIGPIPE}
    for number in _signal.valid_signals():
        if number in (_signal.SIGKILL, _signal.SIGSTOP):
            continue
        try:
            _signal.signal(number, _signal.SIG_IGN if number in ignored else _signal.SIG_DFL)
        except OSError:
            continue
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def thread_count() -> int:
    """Return the threads of this process."""
    return len(os.listdir("/proc/self/task"))


def address_space() -> int:
    """Return the address space of this process, in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def require_platform() -> None:
    """Check what no fallback can replace.

    Raises:
        OSError: Not Linux, an unknown architecture, or more than one thread.
    """
    if sys.platform != "linux" or kernel.machine() not in kernel.MACHINES:
        raise OSError(1, f"expected Linux on one of {sorted(kernel.MACHINES)}, got {sys.platform} {kernel.machine()}")
    require_one_thread()


def require_one_thread() -> None:
    """Check that no library has started a thread: a fork would not have it, and might wait for it for ever.

    Raises:
        OSError: One has.
    """
    if (threads := thread_count()) != 1:
        raise OSError(1, f"expected a zygote with one thread, got {threads}")
