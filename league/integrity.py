"""Whether a run folder is whole: what its commit markers promise, and whether its tables agree with each other.

Owns the checks. Owns no printing (`verify`) and no mending: `--resume` takes away what no committed step owns. Tables
are read a step at a time, so a long run needs no more memory than its ids.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from league.config import RunConfig
from league.config_file import load_config
from league.durable import file_sha256
from league.engine import STANDING_FILE
from league.metric_table import unnamed
from league.references import References
from league.replay import Replay
from league.schemas import SCHEMA_VERSION, SCHEMAS
from league.storage import ADAPTERS, COMMITS, CONFIG, METRICS, STATE, VERSIONS, committed_steps, kept_adapters, part
from league.types import Row

_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "problems": ("run_id", "proposal_id", "problem_id", "match_id", "teacher_id"),
    "rollouts": ("run_id", "rollout_id", "group_id", "match_id", "problem_id", "member_id", "role"),
    "matches": tuple(name for name in SCHEMAS["matches"].names if name != "step"),
    "ratings": tuple(name for name in SCHEMAS["ratings"].names if name != "step"),
    "lineage": ("run_id", "child_id", "parents", "adapter_sha256"),
    "metrics": ("run_id", "scope", "member_id", "task", "name", "value"),
}
"""What the checks read of each table."""


@dataclass(slots=True, kw_only=True)
class Check:
    """What one check looked at and found."""

    name: str
    examined: int = 0
    """Files, rows or lines, as `unit` says."""
    unit: str = "files"
    faults: list[str] = field(default_factory=list)
    """What is wrong, a line each, with the place."""
    skipped: str = ""
    """Why it was not done, empty if it was."""


def check_run(run: Path) -> list[Check]:
    """Examine a run folder; only committed steps count.

    Raises:
        StorageError: `run` is no run folder.
        OSError: Something in it cannot be read.
    """
    steps = committed_steps(run)
    settings, config, run_id = _settings(run)
    commits, markers = _commits(run, steps)
    saved = {name: sha256 for marker in markers.values() for name, sha256 in marker[ADAPTERS].items()}
    tables, references, ratings = Check(name="tables"), Check(name="references"), Check(name="ratings")
    references.unit, ratings.unit = "rows", "matches"
    index, replay = References(saved), None if config is None else Replay(config.rating_rules())
    measured: dict[int, _Measured] = {}
    for step, marker in markers.items():
        rows = _tables(run, step, marker, run_id, tables)
        if rows["metrics"]:
            measured[step] = _measured(rows["metrics"])
        references.examined += sum(map(len, rows.values()))
        references.faults += [f"step {step}, {line}" for line in index.step(rows)]
        if replay is not None:
            ratings.examined += len(rows["matches"])
            ratings.faults += [f"step {step}: {line}" for line in replay.step(rows["ratings"], rows["matches"])]
    if replay is None:
        _skip(ratings, f"{CONFIG} is damaged")
    if tables.faults or commits.faults:
        _skip(references, "commits or tables are damaged")
        _skip(ratings, "commits or tables are damaged")
        measured = {}
    adapters = {f"{ADAPTERS}/{name}": sha256 for name, sha256 in saved.items()}
    if config is not None and config.machine.retention is not None and not (tables.faults or commits.faults):
        stay = {f"{ADAPTERS}/{name}" for name in kept_adapters(run, config.machine.retention)}
        adapters = {
            name: sha256
            for name, sha256 in adapters.items()
            if name.rpartition("/")[0] in stay or (run / name).is_file()
        }
    weights, state, metrics = _files(ADAPTERS, run, adapters), _state(run, markers), _metrics(run, steps, measured)
    return [settings, commits, tables, weights, state, references, ratings, metrics]


def _skip(check: Check, why: str) -> None:
    """Take back what was found: it would only echo another check's faults."""
    check.skipped, check.faults, check.examined = why, [], 0


def _settings(run: Path) -> tuple[Check, RunConfig | None, str | None]:
    check = Check(name="settings", examined=2)
    config, versions = None, _read_json(run / VERSIONS, check)
    try:
        config = load_config((run / CONFIG).read_text(encoding="utf-8"))
        config.rating_rules()
    except ValueError as error:
        config = None
        check.faults.append(f"{CONFIG}: {error}")
    if versions is not None and versions.get("schema_version") != SCHEMA_VERSION:
        check.faults.append(f"{VERSIONS}: `schema_version` is {versions.get('schema_version')!r}, not {SCHEMA_VERSION}")
    return check, config, None if versions is None else versions.get("run_id")


def _commits(run: Path, steps: Sequence[int]) -> tuple[Check, dict[int, dict[str, Any]]]:
    check, markers = Check(name="commits", examined=len(steps)), {}
    for step in steps:
        name = f"step={step}.json"
        marker = _read_json(run / COMMITS / name, check)
        if marker is None:
            continue
        if marker.get("step") == step and all(isinstance(marker.get(key), dict) for key in ("tables", ADAPTERS)):
            markers[step] = marker
        else:
            check.faults.append(f"{COMMITS}/{name}: no marker of step {step}")
    if missing := sorted(set(range(max(steps, default=-1))) - set(steps)):
        check.faults.append(f"{COMMITS}: step {missing[0]} is missing, later ones are there")
    return check, markers


def _tables(run: Path, step: int, marker: Mapping[str, Any], run_id: str | None, check: Check) -> dict[str, list[Row]]:
    """Compare the files of a step's tables with marker and schema; return the columns that the other checks read."""
    rows: dict[str, list[Row]] = {name: [] for name in SCHEMAS}
    for name, promised in marker["tables"].items():
        check.examined += 1
        path = part(run, name, step)
        where = str(path.relative_to(run))
        try:
            data = path.read_bytes()
            if name not in SCHEMAS:
                check.faults.append(f"{where}: there is no table {name!r}")
            elif hashlib.sha256(data).hexdigest() != promised["sha256"]:
                check.faults.append(f"{where}: its sha256 is not the one that was committed")
            else:
                rows[name] = _read_part(name, data, promised["rows"], run_id, where, check)
        except FileNotFoundError:
            check.faults.append(f"{where}: is missing")
        except (pa.ArrowException, KeyError, TypeError) as error:
            check.faults.append(f"{where}: {str(error).splitlines()[0]}")
    return rows


def _read_part(name: str, data: bytes, count: int, run_id: str | None, where: str, check: Check) -> list[Row]:
    file, schema = pq.ParquetFile(pa.BufferReader(data)), SCHEMAS[name]
    found = file.schema_arrow
    if (found.metadata or {}).get(b"schema_version") != str(SCHEMA_VERSION).encode():
        check.faults.append(f"{where}: its `schema_version` is not {SCHEMA_VERSION}")
    if not found.remove_metadata().equals(schema.remove(schema.get_field_index("step")).remove_metadata()):
        check.faults.append(f"{where}: its columns are not those of table {name!r}")
        return []
    rows: list[Row] = file.read(columns=list(_COLUMNS[name])).to_pylist()
    if len(rows) != count:
        check.faults.append(f"{where}: it holds {len(rows)} rows, {count} were committed")
    if any(row["run_id"] != run_id for row in rows):
        check.faults.append(f"{where}: it has rows of another run than {run_id!r}")
    return rows


def _files(name: str, run: Path, saved: Mapping[str, str]) -> Check:
    """Compare files with the sha256 that was committed, by their names in the run folder."""
    check = Check(name=name, examined=len(saved))
    for file, sha256 in saved.items():
        if not (run / file).is_file():
            check.faults.append(f"{file}: is missing")
        elif file_sha256(run / file) != sha256:
            check.faults.append(f"{file}: its sha256 is not the one that was committed")
    return check


def _state(run: Path, markers: Mapping[int, Mapping[str, Any]]) -> Check:
    """Check that the run can be gone on with: a whole state of a committed step, and its members' adapters."""
    states = [step for step in markers if (run / STATE / f"step={step}").is_dir()]
    folder = f"{STATE}/step={max(states, default=0)}"
    saved = markers[max(states)].get(STATE, {}) if states else {}
    check = _files(STATE, run, {f"{folder}/{name}": sha256 for name, sha256 in saved.items()})
    if not states:
        check.faults += [f"{STATE}: there is none of a committed step"] if markers else []
        return check
    for name in markers[max(states)].get("needs", []):
        if not (run / ADAPTERS / name).is_dir():
            check.faults.append(f"{folder}: the adapter {ADAPTERS}/{name} of a past opponent is missing")
    standing = _read_json(run / folder / STANDING_FILE, check)
    try:
        for member in standing["members"] if standing is not None else ():
            adapter = Path(ADAPTERS) / member["member_id"] / str(member["version"])
            if not (run / adapter).is_dir():
                check.faults.append(f"{folder}: the adapter {adapter} of its member is missing")
    except (KeyError, TypeError) as error:
        check.faults.append(f"{folder}/{STANDING_FILE}: not the standing of a league ({error})")
    return check


_Measured = dict[tuple[str, str, str | None], float]
"""Metrics of one step that are of no single member, by scope, name and task."""


def _measured(rows: Sequence[Row]) -> _Measured:
    return {(row["scope"], row["name"], row["task"]): row["value"] for row in rows if row["member_id"] is None}


def _metrics(run: Path, steps: Sequence[int], measured: Mapping[int, _Measured]) -> Check:
    """Check the lines of metrics, and that the table of them, where a step has one, says the same."""
    check = Check(name="metrics", unit="lines")
    try:
        text = (run / METRICS).read_text(encoding="utf-8") if steps else ""
    except (FileNotFoundError, UnicodeDecodeError) as error:
        check.faults.append(f"{METRICS}: {'is missing' if isinstance(error, OSError) else 'it is not UTF-8'}")
        return check
    found: list[int] = []
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines, start=1):
        if number == len(lines) and not line.endswith("\n"):
            break  # it was being written when the run ended, and is no committed step's
        check.examined += 1
        try:
            values = json.loads(line)
            found.append(values["step"])
        except (ValueError, KeyError, TypeError):
            check.faults.append(f"{METRICS}: line {number} holds no metrics of a step")
            continue
        bad = [name for name, value in values.items() if isinstance(value, float) and not math.isfinite(value)]
        check.faults += [f"{METRICS}: line {number}: {name} is not finite" for name in bad]
        if found[-1] in measured and not bad:
            numbers = {name: value for name, value in values.items() if name not in ("step", "seconds")}
            said = {(one.scope, one.name, one.task): one.value for one in unnamed(numbers) if one.member_id is None}
            if said != measured[found[-1]]:
                check.faults.append(f"{METRICS}: line {number} differs from the table `metrics`")
    count = Counter(found)
    check.faults += [f"{METRICS}: step {step} has {count[step]} lines, not one" for step in steps if count[step] != 1]
    return check


def _read_json(path: Path, check: Check) -> dict[str, Any] | None:
    """Return the object of a file, or None and a fault."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        check.faults.append(f"{path.name}: is missing")
    except ValueError:
        check.faults.append(f"{path.name}: it is not JSON")
    else:
        if isinstance(value, dict):
            return value
        check.faults.append(f"{path.name}: it holds no JSON object")
    return None
