"""`examples/custom_algorithm.py` is short, plays a league with a rule of its own, and its measure is kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "examples" / "custom_algorithm.py"


def test_two_steps_with_somebody_elses_update_rule(tmp_path: Path) -> None:
    flags = ["--teachers", "1", "--students", "1", "--steps", "2", "--threads", "1", "--out", "run"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *flags], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert "step 2/2" in done.stdout
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    for side in ("teacher", "student"):
        # What is minimised is the surprise, weighed by advantages of 0 and 1.
        assert 0 < last[f"{side}/loss"] < last[f"{side}/surprise"]


def test_it_fits_in_sixty_lines() -> None:
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) < 60
