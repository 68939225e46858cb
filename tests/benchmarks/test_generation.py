"""The benchmark of generation, one round on nano: every figure is there and makes sense."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "generation.py"


@pytest.mark.slow
def test_one_round_on_nano_gives_every_ratio_and_rate() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--json", "--rounds", "1", "--model", "nano"],
        capture_output=True,
        text=True,
        check=True,
    )
    (figures,) = json.loads(done.stdout).values()
    ways = ("mixed", "one", "ragged", "ragged_one", "sequential", "transformers_peft")
    assert figures.keys() == {
        "generate_8_vs_1",
        "generate_8_vs_1_ragged",
        "generate_mixed_vs_sequential",
        "generate_vs_transformers_peft",
        *(f"tokens_per_s_{way}" for way in ways),
        "weight_bits",
    }
    assert all(figure > 0 for figure in figures.values())
