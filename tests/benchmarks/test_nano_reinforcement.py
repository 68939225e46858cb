"""Reinforcement on nano, one update of one seed: every figure is there, and the same seed gives the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "nano_reinforcement.py"


def lines(side: str) -> list[dict[str, Any]]:
    command = [sys.executable, str(BENCHMARK), side, "--seeds", "1", "--updates", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_a_student_is_measured_before_between_and_after() -> None:
    update, last = lines("student")
    assert update["seed_0"].keys() == {"right", "worked", "tokens"}
    assert last["seed_0"].keys() == {"greedy_before", "greedy_after", "worked_before", "worked_after"}
    assert last["mean"] == last["seed_0"]
    assert 0 < last["seed_0"]["greedy_before"] < 1
    assert lines("student") == [update, last]


@pytest.mark.slow
def test_a_teacher_is_measured_at_every_update() -> None:
    update, last = lines("teacher")
    names = ("valid", "solve_rate", "reward", "templates")
    assert update["seed_0"].keys() == set(names)
    assert last["seed_0"] == {
        f"{name}_{when}": update["seed_0"][name] for when in ("before", "after") for name in names
    }
    assert update["seed_0"]["valid"] > 0.5
