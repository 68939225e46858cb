"""The tables of a run: their columns, and how hostile text becomes storable.

Owns the pyarrow schemas and `schema_version`. Owns no files; those are `storage`'s. Columns that measure time
(`TIME_COLUMNS`) and `run_id` are the only ones in which two runs of the same configuration and seed may differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from league.types import Row

SCHEMA_VERSION = 3
"""Grows when a column is added, renamed or given another meaning."""

TIME_COLUMNS = frozenset({"exec_ms"})
"""Columns that hold measured time."""

_TEXT, _STEP, _COUNT, _ID, _REAL = pa.string(), pa.int32(), pa.int32(), pa.int64(), pa.float64()
_MESSAGES = pa.list_(pa.struct([pa.field("role", _TEXT), pa.field("content", _TEXT)]))


def _schema(required: Mapping[str, pa.DataType], optional: Mapping[str, pa.DataType]) -> pa.Schema:
    fields = [pa.field("run_id", _TEXT, nullable=False)]
    fields += [pa.field(name, kind, nullable=False) for name, kind in required.items()]
    fields += [pa.field(name, kind, nullable=True) for name, kind in optional.items()]
    return pa.schema(fields, metadata={"schema_version": str(SCHEMA_VERSION)})


_PROBLEMS = _schema(
    {
        "proposal_id": _TEXT,
        "step": _STEP,
        "task": _TEXT,
        "teacher_id": _TEXT,
        "teacher_version": _COUNT,
        "match_id": _ID,
        "valid": pa.bool_(),
        "inputs": pa.list_(_TEXT),
        "outputs": pa.list_(_TEXT),
        "n_visible": _COUNT,
        "message": _TEXT,
        "exec_ms": _REAL,
        "data_source": _TEXT,
        "prompt": _MESSAGES,
        "ability": _TEXT,
        "reward_model": pa.struct([pa.field("style", _TEXT), pa.field("ground_truth", _TEXT)]),
        "extra_info": pa.struct([pa.field("split", _TEXT), pa.field("index", _ID), pa.field("proposal_id", _TEXT)]),
    },
    {
        "problem_id": _TEXT,
        "program": _TEXT,
        "invalid_reason": _TEXT,
        "solve_rate": _REAL,
        "repeated": pa.bool_(),
        "ast_depth": _COUNT,
        "cyclomatic": _COUNT,
        "lines": _COUNT,
        "variables": _COUNT,
        "cell_id": _COUNT,
    },
)
_ROLLOUTS = _schema(
    {
        "rollout_id": _TEXT,
        "step": _STEP,
        "match_id": _ID,
        "group_id": _TEXT,
        "seat": _COUNT,
        "task": _TEXT,
        "role": _TEXT,
        "member_id": _TEXT,
        "version": _COUNT,
        "prompt": _MESSAGES,
        "prompt_ids": pa.list_(pa.int32()),
        "completion_ids": pa.list_(pa.int32()),
        "logprobs": pa.list_(pa.float32()),
        "completion": _TEXT,
        "reward": _REAL,
        "reward_validity": _REAL,
        "reward_difficulty": _REAL,
        "reward_format": _REAL,
        "reward_correctness": _REAL,
        "advantage": _REAL,
        "verdict": _TEXT,
        "finish_reason": _TEXT,
        "temperature": _REAL,
        "sampler": _TEXT,
    },
    {"problem_id": _TEXT},
)
_MATCHES = _schema(
    {
        "match_id": _ID,
        "step": _STEP,
        "kind": _TEXT,
        "teacher_id": _TEXT,
        "teacher_version": _COUNT,
        "student_id": _TEXT,
        "student_version": _COUNT,
        "expected": _REAL,
        "outcome": _TEXT,
        "n_problems": _COUNT,
    },
    {"observed": _REAL},
)
_RATINGS = _schema(
    {"step": _STEP, "member_id": _TEXT, "mu": _REAL, "sigma": _REAL, "event": _TEXT},
    {"match_id": _ID},
)
_LINEAGE = _schema(
    {
        "child_id": _TEXT,
        "step": _STEP,
        "slot": _COUNT,
        "parents": pa.list_(_TEXT),
        "operator": _TEXT,
        "parameters": pa.list_(pa.struct([pa.field("name", _TEXT), pa.field("value", _REAL)])),
        "seed": pa.uint64(),
        "learning_rate_scale": _REAL,
        "temperature_scale": _REAL,
        "adapter_sha256": _TEXT,
    },
    {},
)

_METRICS = _schema(
    {"step": _STEP, "scope": _TEXT, "name": _TEXT, "value": _REAL},
    {"member_id": _TEXT, "task": _TEXT},
)

SCHEMAS: Mapping[str, pa.Schema] = {
    "problems": _PROBLEMS,
    "rollouts": _ROLLOUTS,
    "matches": _MATCHES,
    "ratings": _RATINGS,
    "lineage": _LINEAGE,
    "metrics": _METRICS,
}
"""Table name -> schema; every table begins with `run_id`."""


def storable(text: str) -> str:
    r"""Return `text` as valid UTF-8 without NUL: lone surrogates become `\ud800`, NULs `\x00`, spelt out."""
    if not text.isascii():
        text = text.encode(errors="backslashreplace").decode()
    return text.replace("\0", r"\x00")


def clean(value: Any) -> Any:
    """Return `value` with every text in it, however deep, made storable."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value] if not value or not isinstance(value[0], int | float) else value
    return value


def to_table(name: str, rows: Sequence[Row], run_id: str) -> pa.Table:
    """Return the rows as a table of the named schema.

    Raises:
        ValueError: An unknown table or column, a missing value in a column that must have one, or a value of
            another type.
    """
    schema = SCHEMAS.get(name)
    if schema is None:
        raise ValueError(f"`name` must be one of {sorted(SCHEMAS)}, got {name!r}")
    known = set(schema.names)
    for row in rows:
        if not row.keys() <= known:
            raise ValueError(f"table {name!r} has no column {sorted(row.keys() - known)!r}")
    columns: dict[str, list[Any]] = {}
    for field in schema:
        values = [run_id] * len(rows) if field.name == "run_id" else [row.get(field.name) for row in rows]
        if not field.nullable and None in values:
            raise ValueError(f"column {field.name!r} of table {name!r} must not be empty")
        columns[field.name] = list(map(clean, values)) if _holds_text(field.type) else values
    try:
        arrays = [pa.array(columns[field.name], type=field.type) for field in schema]
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        raise ValueError(f"rows of table {name!r} do not fit its schema: {error}") from error
    return cast(pa.Table, pa.Table.from_arrays(arrays, schema=schema))


def _holds_text(kind: pa.DataType) -> bool:
    """Return whether values of a type have text in them, however deep."""
    inside = [kind.field(place).type for place in range(kind.num_fields)]
    return pa.types.is_string(kind) or any(map(_holds_text, inside))


def empty_table(name: str) -> pa.Table:
    """Return the named table without rows."""
    return to_table(name, (), "")


def without_step(table: pa.Table, step: int) -> pa.Table:
    """Drop the column that the folder's name `step=N` says; readers of partitioned tables put it back."""
    if other := set(table["step"].to_pylist()) - {step}:
        raise ValueError(f"rows of step {step} must name that step, got {sorted(other)!r}")
    return table.drop_columns(["step"])


def from_parquet(source: Path, name: str, step: int, columns: Sequence[str]) -> pa.Table:
    """Return columns of the Parquet file of a table; `step`, which the folder's name says, is not in the file.

    Raises:
        ArrowException: It is no such file, or one of another schema version.
        OSError: It cannot be read.
    """
    file = pq.ParquetFile(source)
    version = (file.schema_arrow.metadata or {}).get(b"schema_version", b"")
    if version != str(SCHEMA_VERSION).encode():
        raise pa.ArrowInvalid(f"its schema version is {version[:20]!r}, this release reads {SCHEMA_VERSION} only")
    table = file.read(columns=[column for column in columns if column != "step"])
    field = SCHEMAS[name].field("step")
    steps = pa.array([step] * file.metadata.num_rows, type=field.type)
    whole = table.append_column(field, steps) if table.num_columns else pa.table([steps], schema=pa.schema([field]))
    return whole.select(columns)


def to_parquet(table: pa.Table) -> bytes:
    """Return the bytes of the Parquet file of a table."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return cast(bytes, sink.getvalue().to_pybytes())
