"""What a process takes of its machine: the device, threads, how they wait, and how the C library keeps memory.

Owns process-wide settings, which are made once before torch works and which nothing else of the league touches.
Importing it does not import torch: how threads wait is read from the environment while torch is loaded, so it has to be
said before.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 1 << 30
_MOST_THREADS = 64
"""That may be asked for on any machine: more than there are cores gives the numbers of a run on a larger one."""


def prepare_torch(threads: int) -> int:
    """Set torch's threads and have freed memory kept for the next batch; return the number of threads.

    Threads that wait for each other sleep instead of spinning, unless the environment says otherwise: where cores are
    shared with other work, spinning takes the core from the thread that is waited for.

    Args:
        threads: 0 takes all the cores this process may use.

    Raises:
        ValueError: More threads than make sense here.
    """
    cores = os.cpu_count() or 1
    if threads > (most := max(_MOST_THREADS, cores)):
        raise ValueError(f"`threads` must be at most {most} on this machine of {cores} cores, got {threads}")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch

    count = threads or len(os.sched_getaffinity(0))
    torch.set_num_threads(count)
    _keep_freed_memory()
    return count


def check_device(asked: str) -> None:
    """Check the name of a device.

    Raises:
        ValueError: It is none of auto, cpu, cuda and cuda:N.
    """
    if not re.fullmatch(r"auto|cpu|cuda(:\d{1,3})?", asked, re.ASCII):
        raise ValueError(f"`device` must be auto, cpu, cuda or cuda:N, got {asked!r}")


def choose_device(asked: str) -> str:
    """Return the device that a name stands for: auto is the first GPU, or else the CPU.

    Raises:
        ValueError: As `check_device`, or there is no such GPU here.
    """
    check_device(asked)
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if asked == "auto":
        return "cuda" if count else "cpu"
    if asked != "cpu" and int(asked.partition(":")[2] or 0) >= count:
        raise ValueError(f"`device` {asked!r} is not here: torch sees {count or 'no'} CUDA devices")
    return asked


def _keep_freed_memory() -> None:
    """Tell glibc not to give large blocks back to the kernel, only to fault them in again a moment later."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # musl has none
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
