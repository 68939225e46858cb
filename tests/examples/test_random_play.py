"""`examples/random_play.py` plays a game and shows it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_game_is_shown_to_its_end() -> None:
    command = [sys.executable, str(ROOT / "examples" / "random_play.py"), "0"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout.split("\n")
    assert lines[0] == "round 1: deduction"
    assert "game over after 3 rounds" in lines
    assert lines[-2].startswith("sum of rewards: proposer_0 ")
