"""The benchmark of the league's own time, two steps of the smallest league: every figure is there and makes sense."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "league_overhead.py"


@pytest.mark.slow
def test_two_steps_of_two_members_give_every_figure() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--json", "--members", "2", "--steps", "2"],
        capture_output=True,
        text=True,
        check=True,
    )
    figures = json.loads(done.stdout)
    names = {"engine_s", "arena_s", "save_s", "step_s", "controller_share", "own_share"}
    assert figures.keys() == {f"{name}_2" for name in names} | {"parquet_100k_s"}
    assert all(figure > 0 for figure in figures.values())
    assert figures["controller_share_2"] < figures["own_share_2"]
