"""What the tests of the sandbox look at from outside: processes, what they hold, and what they leave behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_SET_CHILD_SUBREAPER = 36


def descendants(pid: int) -> set[int]:
    """Return the process ids below a process."""
    children: set[int] = set()
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            children |= {int(child) for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()}
    return children | {below for child in children for below in descendants(child)}


def left_of(pids: set[int], *, seconds: float) -> set[int]:
    """Return which processes are still there after some seconds, or when all are gone."""
    end = time.monotonic() + seconds
    while (alive := {pid for pid in pids if Path(f"/proc/{pid}").exists()}) and time.monotonic() < end:
        time.sleep(0.01)
    return alive


def state(pid: int) -> str:
    """Return the letter of a process's state, empty if it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def resident_bytes(pid: int) -> int:
    """Return the memory of a process that is not shared with files, in bytes."""
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")


def descriptors(pid: int) -> int:
    """Return the number of descriptors that a process holds, 0 where the kernel does not tell."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


@contextlib.contextmanager
def orphans_come_here() -> Iterator[None]:
    """Make this process the parent of what its children leave behind, and collect it."""
    libc = ctypes.CDLL(None)
    before = descendants(os.getpid())
    libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        for pid in descendants(os.getpid()) - before:
            with contextlib.suppress(OSError):
                os.waitpid(pid, os.WNOHANG)


def as_oneself() -> tuple[list[str], dict[str, str]]:
    """Return the start of a command line, and the environment, that run Python with this project and its packages."""
    path = os.pathsep.join([str(ROOT), *sys.path])
    return [sys.executable], {"HOME": "/tmp", "PATH": os.environ["PATH"], "PYTHONPATH": path}


def as_user(number: int) -> tuple[list[str], dict[str, str]]:
    """Return the same for an ordinary user (`number` if this one is root); empty if there is no way."""
    command, environment = as_oneself()
    if os.geteuid() != 0:
        return command, environment
    if shutil.which("setpriv") is None:
        return [], environment
    become = ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups"]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    found = (shutil.which(version, path=folder) for folder in ("/usr/bin", "/usr/local/bin", "/bin"))
    # Started by root any may run once; it must be able to start itself again, and to import what is installed here.
    again = "import subprocess, sys, numpy; subprocess.run([sys.executable, '-S', '-c', ''], check=True)"
    for python in (sys.executable, *filter(None, found)):
        if (
            subprocess.run([*become, python, "-c", again], env=environment, cwd="/", capture_output=True).returncode
            == 0
        ):
            return [*become, python], environment
    return [], environment
