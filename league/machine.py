"""What is set once a process before torch works: threads, and how the C library keeps memory.

Owns process-wide settings, which nothing else of the league touches.
"""

from __future__ import annotations

import ctypes
import os
import sys

import torch

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_KEPT_BYTES = 1 << 30


def prepare_torch(threads: int) -> int:
    """Set torch's threads and have freed memory kept for the next batch; return the number of threads.

    Args:
        threads: 0 takes all the cores this process may use.
    """
    count = threads or len(os.sched_getaffinity(0))
    torch.set_num_threads(count)
    _keep_freed_memory()
    return count


def _keep_freed_memory() -> None:
    """Tell glibc not to give large blocks back to the kernel, only to fault them in again a moment later."""
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # musl has none
        mallopt(_M_MMAP_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
