"""The run folder: what a run writes, when it becomes visible, and how it is read back.

Owns files and their durability: everything is written under a temporary name, fsynced and renamed, and a step exists
only once its commit marker does. Owns no meaning: columns are in `schemas`, what goes into them is the engine's.

    config.yaml  versions.json  metrics.jsonl  commits/step=N.json  TABLE/step=N/part-0.parquet
    adapters/MEMBER/VERSION/    state/step=N/  lock
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from safetensors import SafetensorError

from league.durable import append, file_sha256, hashes, holds, lock, remove, sync, sync_all, write, write_all
from league.retention import Retention, kept
from league.schemas import SCHEMAS, empty_table, from_parquet, to_parquet, to_table, without_step
from league.types import Row

CONFIG, VERSIONS, METRICS, COMMITS = "config.yaml", "versions.json", "metrics.jsonl", "commits"
ADAPTERS, STATE, LOCK = "adapters", "state", "lock"
EXCHANGE = "exchange"
"""Folder of what is on its way between the machines of a cluster while a run goes on; nothing of it is kept."""


class StorageError(RuntimeError):
    """A run folder that cannot be made, written or read; the message is one line for the user."""


class RunFolder:
    """A run folder that this process writes; a lock keeps other processes from it until this object is closed."""

    retention: Retention | None = None
    """Which adapters stay; None is all."""

    def __init__(self, path: Path, run_id: str, held: int) -> None:
        """Wrap a folder that `create` made or `reopen` found, and the descriptor of its lock."""
        self._held = held
        self.path = path
        self.run_id = run_id
        self._saved: dict[str, str] = {}
        self._state: dict[str, str] = {}
        self._needs: list[str] = []
        self._unlock = weakref.finalize(self, os.close, held)

    @classmethod
    def create(cls, path: Path, *, run_id: str, config: str, versions: Mapping[str, Any]) -> RunFolder:
        """Make the folder with its `config.yaml` (the given text) and `versions.json`.

        Raises:
            StorageError: Something is there already, or the folder cannot be written. Nothing is left behind.
        """
        refuse_existing(path)
        made = not path.exists()
        with storage_errors(f"cannot make the run folder {str(path)!r}"):
            path.mkdir(parents=True, exist_ok=True)
            held = _locked(path)
            try:
                write(path / VERSIONS, _json({"run_id": run_id, **versions}))
                (path / COMMITS).mkdir()
                write(path / CONFIG, config.encode())
            except BaseException:
                remove(path, keep=not made)
                os.close(held)
                raise
        return cls(path, run_id, held)

    @classmethod
    def reopen(cls, path: Path) -> RunFolder:
        """Open a run folder to go on with it; nothing is changed yet.

        Raises:
            StorageError: No run folder, one that another process writes, or one that cannot be read.
        """
        committed_steps(path)
        with storage_errors(f"cannot open the run folder {str(path)!r}"):
            held = _locked(path)
            try:
                return cls(path, read_object(path / VERSIONS, "run_id")["run_id"], held)
            except BaseException:
                os.close(held)
                raise

    def close(self) -> None:
        """Let other processes write the folder."""
        self._unlock()

    def last_state(self) -> int | None:
        """Return the last committed step that has a state, None if nothing was committed.

        Raises:
            StorageError: Steps were committed, and none of them has a state.
        """
        steps = committed_steps(self.path)
        saved = [step for step in steps if self.state_of(step).is_dir()]
        if steps and not saved:
            raise StorageError(f"{str(self.path)!r} holds no state of a committed step: it cannot be gone on with")
        return max(saved, default=None)

    def state_of(self, step: int) -> Path:
        """Return the folder of the state of a step."""
        return self.path / STATE / f"step={step}"

    def roll_back(self, step: int | None) -> None:
        """Undo all that came after `step`, committed or not; None undoes everything but the settings.

        Commit markers go first and the last of them before the others, so that the folder is a run at every moment.

        Raises:
            StorageError: The folder cannot be written.
        """
        last = -1 if step is None else step
        with storage_errors(f"cannot write to {str(self.path)!r}"):
            steps = committed_steps(self.path)
            for later in [number for number in reversed(steps) if number > last]:
                self._marker(later).unlink()
                sync(self.path / COMMITS)
            kept = [number for number in steps if number <= last]
            parts = {part(self.path, name, number).parent for name in SCHEMAS for number in kept}
            self._keep_only(parts | {self.state_of(last)}, (*SCHEMAS, STATE))
            saved = {name for number in kept for name in self._promised(number, ADAPTERS)}
            adapters = self.path / ADAPTERS
            self._keep_only(
                {(adapters / name).parent for name in saved}, [f"{ADAPTERS}/{m.name}" for m in adapters.glob("*")]
            )
            lines = [json.dumps(line) + "\n" for line in read_metrics(self.path)]
            write(self.path / METRICS, "".join(lines).encode())

    def check_saved(self, step: int, adapters: Iterable[str]) -> None:
        """Compare what a run goes on with, the state of `step` and adapters (`MEMBER/VERSION`), with what was saved.

        Raises:
            StorageError: A file is missing or is not the one that was committed.
        """
        folders = {f"{ADAPTERS}/{name}" for name in adapters}
        saved = {
            f"{ADAPTERS}/{name}": sha256
            for number in committed_steps(self.path)
            for name, sha256 in self._promised(number, ADAPTERS).items()
        }
        wanted = {name: sha256 for name, sha256 in saved.items() if name.rpartition("/")[0] in folders}
        state = str(self.state_of(step).relative_to(self.path))
        wanted |= {f"{state}/{name}": sha256 for name, sha256 in self._promised(step, STATE).items()}
        for name, sha256 in wanted.items():
            with storage_errors(f"cannot read {name} in {str(self.path)!r}"):
                if file_sha256(self.path / name) != sha256:
                    raise StorageError(f"{name} in {str(self.path)!r} is not the file that was committed")

    def _promised(self, step: int, kind: str) -> dict[str, str]:
        """Return the files of a kind that the marker of a step names, with their sha256."""
        promised: dict[str, str] = read_object(self._marker(step)).get(kind, {})
        return promised

    def _keep_only(self, kept: set[Path], folders: Sequence[str]) -> None:
        for folder in folders:
            for path in (self.path / folder).glob("*"):
                if path not in kept:
                    shutil.rmtree(path)

    def change_config(self, config: str) -> None:
        """Replace the text of `config.yaml`.

        Raises:
            StorageError: The folder cannot be written; the settings before stand.
        """
        with storage_errors(f"cannot write to {str(self.path)!r}"):
            write(self.path / CONFIG, config.encode())

    def _check_there(self) -> None:
        """Raise when the folder has gone: writing would make a new one that holds only the end of the run.

        Raises:
            StorageError: What lies at the path is not the folder that this process locked.
        """
        if not holds(self._held, self.path / LOCK):
            raise StorageError(f"the run folder {str(self.path)!r} is gone: it was moved, removed or its disk is lost")

    def _marker(self, step: int) -> Path:
        return self.path / COMMITS / f"step={step}.json"

    def commit(self, step: int, tables: Mapping[str, Sequence[Row]], metrics: Mapping[str, Any]) -> None:
        """Write one step's rows and metrics, then the marker that makes the step visible.

        Raises:
            StorageError: The disk is full, read-only or gone; earlier steps stand as they were.
            ValueError: Rows that do not fit their table, or a step that was committed before.
        """
        marker = self._marker(step)
        written: dict[str, dict[str, Any]] = {}
        files: dict[Path, bytes] = {}
        self._check_there()
        with storage_errors(f"cannot write step {step} to {str(self.path)!r}"):
            if marker.exists():
                raise ValueError(f"step {step} was committed before")
            for name, rows in tables.items():
                data = to_parquet(without_step(to_table(name, rows, self.run_id), step))
                if rows:
                    files[part(self.path, name, step)] = data
                    written[name] = {"rows": len(rows), "sha256": hashlib.sha256(data).hexdigest()}
            write_all(files)
            append(self.path / METRICS, json.dumps({"step": step, **metrics}) + "\n")
            promised = {ADAPTERS: self._saved, STATE: self._state, "needs": self._needs}
            write(marker, _json({"step": step, "tables": written, **promised}))
            self._saved, self._state, self._needs = {}, {}, []
            if self.state_of(step).is_dir():
                self._drop_older(step)

    def _drop_older(self, step: int) -> None:
        """Remove what a committed step with a state makes superfluous: older states, adapters that need not stay."""
        dropped = [older for older in (self.path / STATE).iterdir() if older != self.state_of(step)]
        if self.retention is not None:
            stay = kept_adapters(self.path, self.retention)
            adapters = self.path / ADAPTERS
            dropped += [path for path in adapters.glob("*/*") if str(path.relative_to(adapters)) not in stay]
        for path in dropped:
            # What cannot be removed takes room but misleads nobody: the step is committed.
            shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def adapters(self) -> Iterator[Path]:
        """Give the folder of the adapters, `MEMBER/VERSION/`; what was written is durable at the end.

        The next commit names the new files with their sha256.

        Raises:
            StorageError: The folder cannot be written.
        """
        folder = self.path / ADAPTERS
        self._check_there()
        with storage_errors(f"cannot write adapters to {str(folder)!r}"):
            folder.mkdir(exist_ok=True)
            before = set(folder.rglob("*"))
            yield folder
            fresh = [path for path in folder.rglob("*") if path not in before]
            sync_all([*{*fresh, *(path.parent for path in fresh), folder}])
            self._saved |= hashes(folder, fresh)

    @contextmanager
    def saved(self) -> Iterator[Path]:
        """Give the folder of all saved adapters to read from; what is missing or damaged there is a `StorageError`."""
        self._check_there()
        try:
            yield self.path / ADAPTERS
        except (OSError, ValueError, SafetensorError) as error:
            raise StorageError(f"cannot read an adapter that {str(self.path)!r} saved: {error}") from error

    @contextmanager
    def state(self, step: int, needs: Iterable[str] = ()) -> Iterator[Path]:
        """Give a folder to write the state of `step` into; it takes its place at the end.

        The next commit names its files with their sha256, and the adapters (`MEMBER/VERSION`) that it `needs` beside
        its members' own. The state before goes when `step` is committed: the last one that had a state keeps it.

        Raises:
            StorageError: The folder cannot be written; the state before stands.
        """
        final = self.state_of(step)
        draft = final.with_name(f".step={step}.tmp")
        self._check_there()
        with storage_errors(f"cannot write the state of step {step} to {str(self.path)!r}"):
            draft.mkdir(parents=True)
            try:
                yield draft
                sync_all([*draft.rglob("*"), draft])
                self._state, self._needs = hashes(draft, draft.rglob("*")), list(needs)
                draft.rename(final)
            except BaseException:
                shutil.rmtree(draft, ignore_errors=True)
                raise


def refuse_existing(path: Path) -> None:
    """Raise unless a run folder may be made at `path`: nothing there, or an empty folder.

    Raises:
        StorageError: Something is there.
    """
    with storage_errors(f"cannot make the run folder {str(path)!r}"):
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise StorageError(f"{str(path)!r} exists already; nothing was written, choose another --out")


def committed_steps(run: Path) -> list[int]:
    """Return the numbers of the committed steps, ascending.

    Raises:
        StorageError: `run` is no run folder.
    """
    if not (run / CONFIG).is_file():
        raise StorageError(f"{str(run)!r} is no run folder: it holds no {CONFIG}")
    names = (path.name.removeprefix("step=").removesuffix(".json") for path in (run / COMMITS).glob("step=*.json"))
    return sorted(int(name) for name in names if name.isdecimal())


def read_table(run: Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the rows of one table, of committed steps only, in the order of steps and, within, as written.

    Args:
        run: A run folder.
        name: Of the table.
        columns: Those wanted, in this order; None is all.

    Raises:
        StorageError: No run folder, or a file of a committed step that is missing or damaged.
        ValueError: There is no such table or column.
    """
    parts = [empty_table(name)]
    wanted = parts[0].column_names if columns is None else list(columns)
    if unknown := sorted(set(wanted) - set(parts[0].column_names)):
        raise ValueError(f"table {name!r} has no column {unknown!r}, its columns are {parts[0].column_names!r}")
    parts = [parts[0].select(wanted)]
    for step in committed_steps(run):
        with storage_errors(f"cannot read step {step} of table {name!r} in {str(run)!r}"):
            if name in read_object(run / COMMITS / f"step={step}.json", "tables")["tables"]:
                parts.append(from_parquet(part(run, name, step), name, step, wanted))
    return pa.concat_tables(parts, promote_options="default")


def read_rows(run: Path, name: str) -> list[Row]:
    """Return the rows of one table as `read_table` orders them."""
    return cast(list[Row], read_table(run, name).to_pylist())


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """Return the metrics of the committed steps, in order."""
    steps = set(committed_steps(run))
    with storage_errors(f"cannot read {METRICS} in {str(run)!r}"):
        text = (run / METRICS).read_text() if steps else ""
        # A line that was being written when the power went is the last, and no committed step's.
        lines = [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]
    if not all(isinstance(line, dict) and "step" in line for line in lines):
        raise StorageError(f"{METRICS} in {str(run)!r} is damaged: it has a line that holds no metrics of a step")
    return [line for line in lines if line["step"] in steps]


def kept_adapters(run: Path, retention: Retention) -> set[str]:
    """Return which adapters of a run must be there, as `MEMBER/VERSION`, by what its committed steps saved.

    Raises:
        StorageError: A marker or the lineage cannot be read.
    """
    markers = {step: read_object(run / COMMITS / f"step={step}.json", ADAPTERS) for step in committed_steps(run)}
    saved = {step: {name.rpartition("/")[0] for name in marker[ADAPTERS]} for step, marker in markers.items()}
    births = [(row["step"], row["parents"]) for row in read_rows(run, "lineage")]
    needed = [marker.get("needs", ()) for marker in markers.values() if marker.get(STATE)]
    return kept(saved, births, retention, needed=needed[-1] if needed else ())


def read_object(path: Path, *keys: str) -> dict[str, Any]:
    """Return the JSON object of a file; `keys` must be in it.

    Raises:
        StorageError: The file is missing or damaged.
    """
    with storage_errors(f"cannot read {str(path)!r}"):
        value = json.loads(path.read_bytes())
    if not isinstance(value, dict) or not set(keys) <= value.keys():
        raise StorageError(f"{str(path)!r} is damaged: expected an object with {', '.join(keys) or 'keys'}")
    return value


@contextmanager
def storage_errors(what: str) -> Iterator[None]:
    """Turn the operating system's and Parquet's errors into a `StorageError` of one line that begins with `what`."""
    try:
        yield
    except (OSError, pa.ArrowException, json.JSONDecodeError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error).split("\n")[0]
        raise StorageError(f"{what}: {reason}") from error


def part(run: Path, name: str, step: int) -> Path:
    """Return the file of one step's rows of a table, whether it is there or not."""
    return run / name / f"step={step}" / "part-0.parquet"


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()


def _locked(path: Path) -> int:
    held = lock(path / LOCK)
    if held is None:
        raise StorageError(f"another process is writing {str(path)!r}; wait for its end, or stop it")
    return held
