"""`Ledger`: where the present weights and the optimiser state of every slot lie, as files that all machines see.

Owns the exchange folder of a running league, `SLOT/NUMBER/` each once written and never changed, and who may forget
which. Only paths travel; a path names one state of one slot for ever, so that nobody can mistake old weights for new.
The folder is no part of what a run keeps: a resumed run begins a fresh one.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from league.storage import storage_errors
from populora_agents.config import LoraConfig
from populora_agents.lora import Adapter, load_adapter, save_adapter

MOMENTS_FILE = "moments.safetensors"
RowShapes = Mapping[str, tuple[tuple[int, ...], torch.dtype]]
"""What the optimiser keeps for one slot: shape and dtype by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one slot's state lies."""

    weights: str
    """Folder of the adapter, in PEFT's format."""
    moments: str | None
    """Folder with `MOMENTS_FILE`; None: nothing was learnt yet."""


class Ledger:
    """Implements `league.executors.types.Adapters` by files."""

    def __init__(self, folder: Path, lora: LoraConfig, base_name: str, slots: int) -> None:
        """Keep the states of `slots` slots under `folder`, which is made when the first is written."""
        self._folder = folder
        self._lora = lora
        self._base_name = base_name
        self._slots = slots
        self._places: dict[int, Place] = {}
        self._written = 0

    def place(self, slot: int) -> Place:
        """Return where a slot's state lies.

        Raises:
            ValueError: Nothing was ever put into it.
        """
        if slot not in self._places:
            raise ValueError(f"slot {slot!r} is empty, nothing was loaded into it")
        return self._places[slot]

    def fresh(self, slot: int) -> str:
        """Return a path that was never used."""
        if self._written == 0:
            # What is there was left by a process that was killed; nobody else uses the folder of this run.
            shutil.rmtree(self._folder, ignore_errors=True)
        self._written += 1
        return str(self._folder / str(slot) / str(self._written))

    def load(self, slot: int, adapter: Adapter) -> None:
        """Put `adapter` into a slot; its moments stay."""
        with self._errors():
            path = self.fresh(slot)
            save_adapter(path, adapter, self._lora, self._base_name)
        before = self._places.get(slot)
        self._move(slot, Place(weights=path, moments=before.moments if before else None))

    def adapter(self, slot: int) -> Adapter:
        """Return what a slot holds."""
        with self._errors():
            return load_adapter(self.place(slot).weights)[0]

    def learnt(self, targets: Mapping[int, str]) -> None:
        """Take note that updates wrote weights and moments of these slots."""
        for slot, path in targets.items():
            self._move(slot, Place(weights=path, moments=path))

    def reset_moments(self, slot: int) -> None:
        """Forget the moments of a slot."""
        self._move(slot, Place(weights=self.place(slot).weights, moments=None))

    def moments(self, shapes: RowShapes) -> dict[str, Tensor]:
        """Return the moments of all slots, each tensor with a row for every slot, as `UpdateRule.state_dict` does."""
        zeros = {name: torch.zeros(shape, dtype=dtype) for name, (shape, dtype) in shapes.items()}
        places = [self._places.get(slot) for slot in range(self._slots)]
        paths = [None if place is None else place.moments for place in places]
        with self._errors():
            rows = [zeros if path is None else read_moments(path) for path in paths]
        return {name: torch.stack([row[name] for row in rows]) for name in shapes}

    def set_moments(self, state: Mapping[str, Any], shapes: RowShapes) -> None:
        """Take over what `moments` gave.

        Raises:
            ValueError: It belongs to another league.
        """
        for name, (shape, _) in shapes.items():
            expected = (self._slots, *shape)
            if name not in state or tuple(state[name].shape) != expected:
                found = list(state[name].shape) if name in state else "nothing"
                raise ValueError(f"expected {name!r} to be {list(expected)!r}, got {found!r}: the state is another's")
        for slot in sorted(self._places):
            path = self.fresh(slot)
            with self._errors():
                write_moments(path, {name: state[name][slot] for name in shapes})
            self._move(slot, Place(weights=self._places[slot].weights, moments=path))

    def close(self) -> None:
        """Remove the files."""
        if self._written:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _errors(self) -> AbstractContextManager[None]:
        return storage_errors(f"cannot keep adapters in {str(self._folder)!r}")

    def _move(self, slot: int, place: Place) -> None:
        """Point a slot to new files, and remove those that it no longer needs."""
        before = self._places.get(slot)
        self._places[slot] = place
        if before is not None:
            for path in {before.weights, before.moments} - {place.weights, place.moments, None}:
                shutil.rmtree(str(path), ignore_errors=True)


def write_moments(folder: str, row: Mapping[str, Tensor]) -> None:
    """Write the moments of one slot."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    (Path(folder) / MOMENTS_FILE).write_bytes(save({name: value.contiguous() for name, value in row.items()}))


def read_moments(folder: str) -> dict[str, Tensor]:
    """Return the moments of one slot."""
    return load((Path(folder) / MOMENTS_FILE).read_bytes())
