"""Durable files and locks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from league.durable import append, holds, lock, write, write_all


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "file"
    write(path, b"first")
    append(path, " line\n")
    assert path.read_bytes() == b"first line\n"

    def broken(descriptor: int) -> None:
        raise OSError(f"cannot sync {descriptor}")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="cannot sync"):
        write(path, b"second")
    assert path.read_bytes() == b"first line\n"


def test_many_files_are_written_at_once_or_none_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {tmp_path / name / "step=1" / "part": name.encode() * 1000 for name in "abcdef"}
    synced: list[str] = []
    real = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    write_all(files)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files
    folders = {folder for path in files for folder in (path.parent, path.parent.parent)}
    assert sorted(synced) == sorted(map(str, [*files, *folders]))

    def broken(descriptor: int) -> None:
        raise OSError(f"cannot sync {descriptor}")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="cannot sync"):
        write_all({tmp_path / "a" / "step=2" / "part": b"x", tmp_path / "b" / "step=2" / "part": b"y"})
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == set(files)


def test_a_lock_is_held_by_one_and_ends_with_its_process(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    code = "import sys, league.durable as d, pathlib; print(d.lock(pathlib.Path(sys.argv[1])), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline().strip().isdigit()
        assert lock(path) is None
        other.kill()
    held = lock(path)
    assert held is not None
    assert lock(path) is None
    os.close(held)


def test_a_lock_is_held_on_the_file_that_was_there(tmp_path: Path) -> None:
    held = lock(tmp_path / "lock")
    assert held is not None
    assert holds(held, tmp_path / "lock")
    (tmp_path / "lock").rename(tmp_path / "moved")
    assert not holds(held, tmp_path / "lock")
    (tmp_path / "lock").touch()
    assert not holds(held, tmp_path / "lock")
    os.close(held)
