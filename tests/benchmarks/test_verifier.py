"""The verifier's benchmark, with next to no work: all contenders that are installed start, agree, and are compared."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "verifier.py"
RATIOS = {
    "isolated_vs_unisolated": "unisolated",
    "vs_fresh_python": "fresh_python",
    "vs_evalplus": "evalplus",
    "vs_human_eval": "human_eval",
    "vs_bubblewrap": "bubblewrap",
    "vs_reused_pool": "reused_pool",
    "mix_vs_reused_pool": "reused_pool",
    "mix_vs_reused_pool_at_once": "reused_pool",
}


def test_one_small_round_gives_a_ratio_for_every_contender_that_is_installed() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--json", "--rounds", "1", "--share", "0.01"],
        capture_output=True,
        text=True,
        check=True,
    )
    figures = json.loads(done.stdout)
    assert figures["versions"].keys() == set(RATIOS.values())
    installed = {name for name, version in figures["versions"].items() if version is not None}
    assert installed >= {"unisolated", "fresh_python"}
    assert {name for name, ratio in figures["ratios"].items() if ratio is not None} == {
        name for name, other in RATIOS.items() if other in installed
    }
    assert figures["ratios"].keys() == RATIOS.keys()
    assert figures["jobs_per_s"].keys() == {"isolated", *installed}
    assert figures["mix_items_per_s"]["isolated"] > 0
    assert 0 < figures["p50_ms"] <= figures["p99_ms"]
    assert (figures["rounds"], figures["callers"] >= 2) == (1, True)
