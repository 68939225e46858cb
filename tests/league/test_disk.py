"""Whole runs on bad disks: one line, an exit status, nothing committed is lost, and --resume goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from scripted import save_base

from league.arena import ProgramArena
from league.run import main
from league.storage import committed_steps
from league.types import Match, Play
from league.verify import main as verify

SETTINGS = (
    *("--teachers", "2", "--students", "1", "--evolve-every", "2", "--min-age", "0", "--save-every", "2"),
    *("--proposals", "2", "--proposal-tokens", "24", "--answer-tokens", "8", "--game.seed-problems", "16"),
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def run(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    assert main([*SETTINGS, "--steps", "2", "--base", str(base), "--out", str(out)]) == 0
    return out


def test_a_run_whose_folder_goes_in_mid_run_stops_with_one_line(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    play, out = ProgramArena.play, tmp_path / "run"

    def lose(arena: ProgramArena, matches: Sequence[Match], *, step: int) -> Play:
        if step == 2:
            out.rename(tmp_path / "elsewhere")
        return play(arena, matches, step=step)

    monkeypatch.setattr(ProgramArena, "play", lose)
    assert main([*SETTINGS, "--steps", "4", "--base", str(base), "--out", str(out)]) == 2
    assert capsys.readouterr().err == (
        f"error: the run folder {str(out)!r} is gone: it was moved, removed or its disk is lost\n"
    )
    assert not out.exists()
    monkeypatch.undo()
    moved = tmp_path / "elsewhere"
    assert committed_steps(moved) == [0, 1]
    assert main(["--resume", str(moved)]) == 0
    assert committed_steps(moved) == [0, 1, 2, 3, 4]
    assert verify([str(moved)]) == 0


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("config.yaml", "config.yaml"),
        ("versions.json", "versions.json"),
        ("commits/step=1.json", "step=1.json"),
        ("metrics.jsonl", "metrics.jsonl"),
        ("state/step=2/league.json", "cannot go on with"),
        ("state/step=2/buffer.jsonl", "cannot go on with"),
        ("state/step=2/optimiser.safetensors", "cannot go on with"),
        ("adapters/teacher_1/2/adapter_config.json", "cannot go on with"),
        ("adapters/teacher_1/2/adapter_model.safetensors", "cannot go on with"),
    ],
)
def test_going_on_with_a_damaged_file_is_one_line_and_nothing_is_changed(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, message: str
) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    (copy / file).write_bytes(b"[\xff")
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    assert main(["--resume", str(copy), "--steps", "3"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert message in error
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_one_bit_of_the_weights_that_a_run_goes_on_with_is_noticed(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    weights = copy / "adapters" / "teacher_1" / "2" / "adapter_model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    assert main(["--resume", str(copy), "--steps", "3"]) == 2
    assert "adapter_model.safetensors in" in capsys.readouterr().err
    assert committed_steps(copy) == [0, 1, 2]


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    probe = ["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


FULL_DISK = """
league() { "$PYTHON" -m league.run "$@" >> "$LOG/out" 2> "$LOG/error"; echo "$?" >> "$LOG/status"; }
check() { "$PYTHON" -m league.verify disk/run >> "$LOG/verify" 2>&1; }
next() { mv "$LOG/error" "$LOG/error-$1"; ls disk/run/commits | wc -l >> "$LOG/commits"; }
cd "$PLACE" && mkdir disk && mount -t tmpfs -o size=500k tmpfs disk
league "$@" --out disk/run; next full; check
league --resume disk/run; next still-full
mount -o remount,size=50m disk
league --resume disk/run; next mended; check
mount -o remount,ro disk
league --resume disk/run --steps 17; next read-only; check
"""


@pytest.mark.slow
@pytest.mark.skipif(not can_mount(), reason="needs leave to mount a small file system")
def test_a_full_disk_and_a_read_only_one_are_one_line_each_and_the_run_goes_on_later(
    base: Path, tmp_path: Path
) -> None:
    script = ["unshare", "-m", "bash", "-c", FULL_DISK, "full-disk", *SETTINGS, "--steps", "16", "--base", str(base)]
    environment = os.environ | {"PYTHON": sys.executable, "PLACE": str(tmp_path), "LOG": str(tmp_path)}
    subprocess.run(script, env=environment, timeout=300, check=False)
    assert (tmp_path / "status").read_text().split() == ["2", "2", "0", "2"]
    for when, message in (
        ("full", "No space left on device; committed steps are kept, go on with --resume disk/run"),
        ("still-full", "No space left on device"),
        ("read-only", "Read-only file system"),
    ):
        error = (tmp_path / f"error-{when}").read_text()
        assert error.startswith("error: ")
        assert error.count("\n") == 1
        assert message in error
    first, _, mended, last = map(int, (tmp_path / "commits").read_text().split())
    assert 1 < first < 17
    assert mended == last == 17
    assert (tmp_path / "verify").read_text().count("disk/run is whole") == 3
