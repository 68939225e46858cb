"""Process-wide settings, looked at in a process of their own."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from league.machine import choose_device
from league.options import MachineOptions

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


def test_auto_is_the_first_gpu_or_else_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for count, device in ((0, "cpu"), (2, "cuda")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda count=count: count > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda count=count: count)
        assert choose_device("auto") == device
        assert choose_device("cpu") == "cpu"
    assert choose_device("cuda:1") == "cuda:1"
    with pytest.raises(ValueError, match="torch sees 2 CUDA devices"):
        choose_device("cuda:2")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="torch sees no CUDA devices"):
        choose_device("cuda")


@pytest.mark.parametrize("name", ["", "gpu", "cuda:", "cuda:-1", "cuda:٣", "cpu\n"])
def test_what_is_no_device_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="must be auto, cpu, cuda or cuda:N"):
        MachineOptions(device=name)
