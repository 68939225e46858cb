"""The PPO example: it runs from the command line, and a minute of it beats random play."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_ppo_token.py"


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), *arguments], capture_output=True, text=True, check=True, timeout=500
    )
    return done.stdout


def shares(text: str) -> dict[str, tuple[float, ...]]:
    """Return what was printed at the end, by name: mean, lower and upper 95 % bound."""
    lines = re.findall(r"^  (\S.*?)  +(\d\.\d+)  \[(\S+), (\S+)\]$", text, re.MULTILINE)
    return {name: tuple(map(float, figures)) for name, *figures in lines}


def test_it_trains_evaluates_and_draws(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib draws the curve")
    small = ("--updates", "2", "--games", "2", "--seats", "2", "--steps", "32", "--episodes", "2", "--seeds", "2")
    text = run(*small, "--plot", str(tmp_path / "curve.svg"))
    assert re.search(r"^ +1 +1 +\d+ ", text, re.MULTILINE)
    assert shares(text).keys() >= {"random play", "PPO, seed 0", "PPO, seed 1"}
    assert (tmp_path / "curve.svg").read_text().startswith("<?xml")


@pytest.mark.slow
def test_a_minute_of_training_beats_random_play_twice() -> None:
    found = shares(run("--updates", "20", "--episodes", "200"))
    assert found["PPO, seed 0"][1] > 2 * found["random play"][2]
