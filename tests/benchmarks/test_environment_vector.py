"""The vector benchmark, with one round: both sides are paid the same, and the figures are there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "environment_vector.py"


@pytest.mark.slow
def test_one_round_gives_the_ratio_and_how_busy_the_zygotes_are() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--json", "--rounds", "1"], capture_output=True, text=True, check=True
    )
    figures = json.loads(done.stdout)
    assert figures["ratios"]["vec64_vs_one_by_one"] > 0
    assert figures["zygotes_cpu"] > 0
    assert 0 < figures["zygotes_busy"] <= 1
    assert figures["zygotes"] >= 2
