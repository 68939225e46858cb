"""The benchmark of the operators, one round on one layer: every figure is there and makes sense."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from league.operators import OPERATORS

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "operators.py"


@pytest.mark.slow
def test_one_round_on_one_layer_times_every_operator_and_shows_the_cross_terms_of_peft() -> None:
    command = [sys.executable, str(BENCHMARK), "--json", "--rounds", "1", "--layers", "1", "--square", "256"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    assert figures["parameters"] * 28 == 80_740_352
    assert figures["seconds"].keys() == {"copy", *OPERATORS}
    assert figures["ratios"].keys() == {"slowest_operator_s", "slowest_vs_copy"}
    assert figures["ratios"]["slowest_operator_s"] == figures["seconds"][figures["slowest_operator"]]
    peft = figures["peft_one_matrix"]
    assert peft["linear_error"] > 0.5
    assert peft["ours_error"] == pytest.approx(peft["svd_error"], rel=1e-3)
