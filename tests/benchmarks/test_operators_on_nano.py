"""The experiment with the operators on nano, as small as it goes: every figure is there, and it may be stopped."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXPERIMENT = Path(__file__).parents[2] / "benchmarks" / "operators_on_nano.py"
SMALL = ["--seeds", "1", "--updates", "0", "1", "--parent-updates", "1", "--held-out", "20", "--proposals", "2"]


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(EXPERIMENT), *arguments], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_children_are_measured_once_and_reported(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    first = call("--out", out, *SMALL, "--operators", "copy_parent")
    assert first.returncode == 0, first.stderr
    lines = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").read_text().splitlines()]
    assert [line["operator"] for line in lines] == ["better parent", "worse parent", "copy_parent"]
    assert lines[0]["right"] >= lines[1]["right"]
    child = lines[2]
    for name in ("solve_rate", "greedy", "valid", "distinct"):
        assert len(child[name]) == 2
        assert all(0 <= share <= 1 for share in child[name])
        assert child[name][0] == lines[0][name][0], "a copy of the better parent measures as it does"

    more = call("--out", out, *SMALL, "--operators", "copy_parent", "svd_mix")
    assert [json.loads(line)["operator"] for line in more.stdout.splitlines()] == ["svd_mix"]
    picture = tmp_path / "curves.svg"
    plot = ["--plot", str(picture)] if find_spec("matplotlib") else []
    report = call("--out", out, "--report", *plot).stdout.splitlines()
    assert not plot or "<svg" in picture.read_text()
    assert report[0].startswith("|  | solves after 0 | solves after 1 | less `copy_parent` |")
    assert {line.split(" | ")[0] for line in report[2:]} == {
        "| better parent",
        "| worse parent",
        "| `copy_parent`",
        "| `svd_mix`",
    }
    assert len({line.count("|") for line in report}) == 1
    other = call("--out", out, *SMALL, "--parent-updates", "2")
    assert other.returncode == 2
    assert "parent_updates" in other.stderr
