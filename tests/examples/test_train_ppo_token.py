"""`examples/train_ppo_token.py` trains, evaluates, writes and draws; a short training already beats random play."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "train_ppo_token.py"


def run(*flags: str) -> str:
    done = subprocess.run([sys.executable, str(SCRIPT), *flags], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def intervals(text: str) -> dict[str, tuple[float, float, float]]:
    """Return mean, lower and upper bound of each line of the evaluation."""
    found = re.findall(r"^  (\S.*?) +(\d\.\d+)  \[(-?\d\.\d+), (\d\.\d+)\]$", text, re.MULTILINE)
    return {name: (float(mean), float(low), float(high)) for name, mean, low, high in found}


def test_a_few_updates_of_two_seeds(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="`--plot` needs matplotlib")
    curve, picture = tmp_path / "curve.csv", tmp_path / "curve.svg"
    small = ("--seeds", "2", "--updates", "2", "--games", "2", "--seats", "2", "--steps", "48", "--episodes", "6")
    found = intervals(run(*small, "--csv", str(curve), "--plot", str(picture)))
    assert list(found) == ["random play", "always 0, [] or ''", "PPO, seed 0", "PPO, seed 1"]
    for mean, low, high in found.values():
        assert low <= mean <= high
    with curve.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["seed"], row["update"]) for row in rows] == [("0", "1"), ("0", "2"), ("1", "1"), ("1", "2")]
    assert all(0 <= float(row["right"]) <= 1 < int(row["answers"]) for row in rows)
    assert "</svg>" in picture.read_text()


def test_other_tasks_can_be_trained() -> None:
    small = ("--updates", "1", "--games", "2", "--seats", "2", "--steps", "32", "--episodes", "2")
    assert "PPO, seed 0" in intervals(run(*small, "--tasks", "abduction,induction"))


@pytest.mark.slow
def test_half_a_minute_of_training_surely_beats_random_play() -> None:
    found = intervals(run("--updates", "20", "--episodes", "400"))
    mean, low, _ = found["PPO, seed 0"]
    random_mean, _, random_high = found["random play"]
    assert low > random_high
    assert mean >= 2 * random_mean


def test_it_fits_in_250_lines() -> None:
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) < 250
