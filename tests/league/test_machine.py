"""Process-wide settings, looked at in a process of their own."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import os, sys
from league.machine import prepare_torch
assert "torch" not in sys.modules
count = prepare_torch({threads})
import torch
print(count, torch.get_num_threads(), os.environ["OMP_WAIT_POLICY"], len(os.sched_getaffinity(0)))
"""


def told(threads: int, policy: str | None = None) -> list[str]:
    environment = {} if policy is None else {"OMP_WAIT_POLICY": policy}
    script = SCRIPT.format(threads=threads)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment, timeout=60
    )
    return done.stdout.split()


def test_threads_are_those_asked_for_and_sleep_while_they_wait() -> None:
    assert told(1)[:3] == ["1", "1", "PASSIVE"]


def test_no_number_means_all_cores_and_the_environment_wins() -> None:
    count, used, policy, cores = told(0, "ACTIVE")
    assert count == used == cores
    assert policy == "ACTIVE"
