"""Runs on nano that are killed at random moments: each resume goes on, and the end is that of the uninterrupted run."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from run_contents import contents
from safetensors.torch import load_file

from league.storage import read_rows
from league.verify import main as verify

STEPS = 8
SETTINGS = (
    *("--teachers", "2", "--students", "2", "--steps", str(STEPS), "--evolve-every", "3", "--min-age", "0"),
    *("--save-every", "2", "--tasks", "deduction", "--proposals", "3", "--attempts", "2", "--threads", "1"),
    *("--game.seed-problems", "16"),
)
OPTIONS = {
    "plain": (),
    "past": (
        *("--past-opponents", "0.4", "--hall-size", "3", "--cross-eval-every", "2", "--cross-eval-problems", "2"),
        *("--keep-adapters", "1"),
    ),
}


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "league.run", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def commits_since(run: Path, began: float) -> int:
    found = 0
    for path in (run / "commits").glob("step=*.json"):
        with suppress(FileNotFoundError):  # a resumed run takes back what came after its state
            found += path.stat().st_mtime >= began
    return found


def wait_for_a_moment(
    process: subprocess.Popen[str], run: Path, rng: np.random.Generator, *, start_s: float, step_s: float
) -> None:
    """Wait into the time that the process takes to start, or into the step after its first, second or third commit.

    Commits are waited for, so that the moments lie all over a run on a machine of any speed and load.
    """
    began, commits = time.time(), int(rng.integers(4))
    while process.poll() is None and commits_since(run, began) < commits:
        time.sleep(0.005)
    time.sleep(rng.random() * (step_s if commits else start_s))


def play_whole(out: Path, options: tuple[str, ...]) -> tuple[float, float]:
    """Play a run without a break; return the seconds that its start and a step took."""
    began = time.time()
    with start(*SETTINGS, *options, "--out", str(out)) as process:
        _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    counts = load_file(out / "state" / f"step={STEPS}" / "optimiser.safetensors")["counts"]
    assert (counts > 0).sum() >= 2, "without learning the comparison would be worth little"
    first, last = ((out / "commits" / f"step={step}.json").stat().st_mtime for step in (0, STEPS))
    return first - began, (last - first) / STEPS


def check_kills(options: tuple[str, ...], kills: int, folder: Path) -> int:
    """Kill a run `kills` times; whenever it comes to its end, compare it, and begin another until the kills are done.

    Returns:
        How many ends were compared.
    """
    rng = np.random.default_rng(kills)
    whole, broken = folder / "whole", folder / "broken"
    start_s, step_s = play_whole(whole, options)
    expected, left, ends, seen = contents(whole), kills, 0, Counter[int]()
    while True:
        if (broken / "config.yaml").exists():
            arguments: tuple[str, ...] = ("--resume", str(broken))
        else:  # killed before there was a run: what was begun is of no use, and the command is given again
            shutil.rmtree(broken, ignore_errors=True)
            arguments = (*SETTINGS, *options, "--out", str(broken))
        with start(*arguments) as process:
            if left:
                wait_for_a_moment(process, broken, rng, start_s=start_s, step_s=step_s)
                process.kill()
            _, errors = process.communicate(timeout=600)
        if process.returncode == -signal.SIGKILL:
            left -= 1
            seen[len(list(broken.glob("commits/step=*.json")))] += 1
            continue
        assert process.returncode == 0, errors
        assert contents(broken) == expected
        assert verify([str(broken)]) == 0
        ends += 1
        if not left:
            break
        shutil.rmtree(broken)
    assert kills < 30 or len(seen) > 5, f"the kills came at few places: {seen!r}"
    return ends


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kills", "kinds"), [("plain", 2, {"train"}), ("past", 3, {"train", "frozen", "cross_eval"})]
)
def test_a_run_that_is_killed_at_random_moments_equals_the_uninterrupted_one(
    name: str, kills: int, kinds: set[str], tmp_path: Path
) -> None:
    check_kills(OPTIONS[name], kills, tmp_path)
    assert {row["kind"] for row in read_rows(tmp_path / "whole", "matches")} == kinds


@pytest.mark.soak
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_thirty_kills_change_nothing(options: tuple[str, ...], tmp_path: Path) -> None:
    check_kills(options, 30, tmp_path)
