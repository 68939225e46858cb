"""The environment's benchmark, with next to no work: both parts run and give their ratios."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "environment.py"


def measured(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, str(BENCHMARK), "--json", "--rounds", "1", "--steps", "200", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def test_tokens_are_measured_beside_connect_four_where_pygame_is_installed() -> None:
    figures = measured("--only", "tokens")
    ratio = figures["ratios"]["token_vs_connect_four"]
    assert (ratio is None) == (importlib.util.find_spec("pygame") is None)
    assert figures["steps_per_s"]["token"] > 0


def test_both_parts_stand_in_one_table() -> None:
    figures = measured()
    assert figures["ratios"].keys() == {"token_vs_connect_four", "vec64_vs_one_by_one"}
    assert figures["steps_per_s"].keys() >= {"token", "connect_four", "vec64", "one_by_one"}
    assert figures["ratios"]["vec64_vs_one_by_one"] > 0
