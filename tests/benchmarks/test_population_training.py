"""The benchmark of training, one round on nano: every figure is there and makes sense."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "population_training.py"


@pytest.mark.slow
def test_one_round_on_nano_gives_every_ratio_and_memory_grows_by_factors_and_moments() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--json", "--rounds", "1", "--part", "nano", "memory"],
        capture_output=True,
        text=True,
        check=True,
    )
    figures = json.loads(done.stdout)
    assert figures["ratios"].keys() == {
        "train_8_vs_1",
        "fused_vs_sequential_peft",
        "fused_vs_sequential_peft_groups",
    }
    assert all(ratio > 0 for ratio in figures["ratios"].values())
    assert figures["seconds"].keys() == {"eight", "one", "peft", "eight_groups", "peft_groups"}
    peaks = figures["peak_mib"]
    # 102,400 numbers a member: factors, gradients and two moments in float32 are 1.6 MiB.
    assert peaks["64_members"] - peaks["1_members"] < 2 * 63 * 1.6
    assert peaks["512_rows_checkpointed"] < peaks["512_rows"]
