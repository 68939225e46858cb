"""Adapter versions on their way to an engine: folders in memory, names and numbers that are used once.

Engines keep what they computed by the name or the number of an adapter. New weights under an old name are how wrong
adapters answer, so that nothing here is ever used twice, not even for the same version.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO

from populora_agents.config import LoraConfig
from populora_agents.lora import Adapter, save_adapter
from populora_agents.types import AdapterVersion

_MEMORY = Path("/dev/shm")
_PREFIX = "populora-"
_LOCK = "in-use"
"""Locked as long as the folder's owner lives; the system lets go of it, however the owner ends."""

_NUMBERS: Iterator[int] = count(1)
"""Of all shelves of the process, since an engine may see several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A version as an engine knows it."""

    version: AdapterVersion
    name: str
    number: int
    """>= 1."""
    folder: Path
    modules: int
    """Modules that the adapter changes."""


class Shelf:
    """Writes adapters where an engine on the same machine reads them."""

    def __init__(self, config: LoraConfig, base_name: str, *, parent: Path | None = None) -> None:
        """Make a folder of our own, and remove those of processes that were killed: they take memory.

        Args:
            config: Of all adapters.
            base_name: Written beside the factors.
            parent: Where; None is memory-backed where the system has such a place. It must be seen by the engine.
        """
        if parent is None and _MEMORY.is_dir():
            parent = _MEMORY
        self._config = config
        self._base_name = base_name
        remove_abandoned(Path(tempfile.gettempdir()) if parent is None else parent)
        self._folder = tempfile.TemporaryDirectory(prefix=_PREFIX, dir=parent)
        self._lock = _lock(Path(self._folder.name))
        self._mark = Path(self._folder.name).name

    def publish(self, version: AdapterVersion, adapter: Adapter) -> Published:
        """Write the adapter under a new name and number.

        Raises:
            ValueError: Factors of another rank, or not finite.
            OSError: The memory is full.
        """
        number = next(_NUMBERS)
        folder = Path(self._folder.name) / str(number)
        save_adapter(folder, adapter, self._config, self._base_name)
        # The mark tells processes apart that share a server.
        name = f"{version}-{self._mark}-{number}"
        return Published(version=version, name=name, number=number, folder=folder, modules=len(adapter))

    def withdraw(self, published: Published) -> None:
        """Remove the files of a version that no engine needs any more."""
        shutil.rmtree(published.folder, ignore_errors=True)

    def close(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()
        self._lock.close()


def _lock(folder: Path) -> IO[bytes]:
    """Return the folder's lock file, locked before anybody can see it under its name."""
    unseen = folder / f"{_LOCK}.new"
    file = unseen.open("wb")
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    unseen.rename(folder / _LOCK)
    return file


def remove_abandoned(parent: Path) -> None:
    """Remove the folders of shelves whose process has ended without closing them; others' and open ones stay."""
    for lock in parent.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError), lock.open("rb") as file:  # in use, somebody else's, or just removed
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
