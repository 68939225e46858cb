"""Files that survive a lost process or a lost power line: written under a temporary name, fsynced, renamed; and locks.

Owns the order of system calls. Owns no names and no formats; those are `storage`'s.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_SYNCS = 16
"""Most files that are synced at once."""


def write(path: Path, data: bytes) -> None:
    """Write a file whole: it is there, durable, once this returns, and what was there before stands until then.

    What could not be written whole is taken away again: on a full disk it would hold the room that is missing.
    """
    fresh = not path.parent.exists()
    _put(path, data, durable=True)
    sync(path.parent)
    if fresh:
        sync(path.parent.parent)


def write_all(files: Mapping[Path, bytes]) -> None:
    """Write files whole, in folders of their own: all are there, durable, once this returns.

    Faster than one `write` a file, since the disk is waited for once. If the power goes meanwhile, some may be torn:
    only for what nobody reads before something else has said that it is complete. Where one cannot be written, all are
    taken away again.
    """
    try:
        for path, data in files.items():
            _put(path, data, durable=False)
        folders = {folder for path in files for folder in (path.parent, path.parent.parent)}
        sync_all([*files, *sorted(folders)])
    except BaseException:
        for path in files:
            path.unlink(missing_ok=True)
        raise


def _put(path: Path, data: bytes, *, durable: bool) -> None:
    """Write a file under a temporary name and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.tmp")
    try:
        with draft.open("wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def append(path: Path, line: str) -> None:
    """Add to a file; the end of it may be torn if the power goes meanwhile."""
    with path.open("a") as file:
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def hashes(folder: Path, paths: Iterable[Path]) -> dict[str, str]:
    """Return the sha256 of those of the paths that are files, by their names below the folder."""
    return {str(path.relative_to(folder)): file_sha256(path) for path in paths if path.is_file()}


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file, read a piece at a time."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Make a file, or the entries of a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_all(paths: Sequence[Path]) -> None:
    """Make files and folders durable, all at once: a file system that keeps a journal writes it once for many.

    Raises:
        OSError: One of them could not be synced; all have been tried.
    """
    with ThreadPoolExecutor(min(_SYNCS, max(1, len(paths)))) as pool:
        for done in [pool.submit(sync, path) for path in paths]:
            done.result()


def lock(path: Path) -> int | None:
    """Lock a file, made if need be; return the descriptor that holds the lock, None if another process holds it.

    The lock ends with the descriptor, hence with the process, however that ends; the file stays.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def remove(path: Path, *, keep: bool) -> None:
    """Take away a folder that could not be completed; only what is inside it if it had been there before."""
    for inside in path.iterdir() if keep else []:
        shutil.rmtree(inside) if inside.is_dir() else inside.unlink()
    if not keep:
        shutil.rmtree(path, ignore_errors=True)


def holds(held: int, path: Path) -> bool:
    """Return whether the file at `path` is still the one whose lock the descriptor `held` holds."""
    try:
        return os.path.samestat(os.fstat(held), path.stat())
    except OSError:
        return False
