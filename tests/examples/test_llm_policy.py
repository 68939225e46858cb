"""`examples/llm_policy.py` plays with nano and prints what its docstring promises."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_nano_takes_its_seats() -> None:
    command = [sys.executable, str(ROOT / "examples" / "llm_policy.py"), "--rounds", "6"]
    out = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    assert out.startswith("round 1: deduction\n  proposer_0  ")
    valid = re.search(r"(\d+) of 6 proposals were valid", out)
    assert valid is not None
    assert int(valid[1]) >= 3
    assert re.search(rf"nano-3 solved +\d+ of {valid[1]}; mean reward", out)
    assert re.search(rf"guesses solved +\d+ of {valid[1]}; mean reward", out)
