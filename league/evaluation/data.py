"""The published sets on disk or from the hub, as rows.

Owns where rows come from, and the one line that says what to put where. Owns no meaning of rows (each suite does).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from league.evaluation.types import EvaluationError

Fields = Mapping[str, Any]
"""One row of a published set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a set may be found."""

    files: tuple[str, ...]
    """Names under which its file may lie in a data folder, without `.jsonl` or `.jsonl.gz`; the first is ours."""
    hub: tuple[str, str, str] | None
    """Hub id, configuration (`""`: the only one) and split; None where the hub has no copy with what is needed."""
    origin: str
    """Where a person finds it."""


def read_rows(name: str, source: Source, folder: Path | None) -> list[Fields]:
    """Return the rows of a set: from the folder if one is given, else from the hub or its cache.

    Raises:
        EvaluationError: It is not there, or not readable; the message says what to put where.
    """
    if folder is not None:
        for stem in source.files:
            for path in (folder / f"{stem}.jsonl", folder / f"{stem}.jsonl.gz"):
                if path.is_file():
                    return _read(path)
        raise EvaluationError(
            f"suite {name}: {str(folder)!r} has no {source.files[0]}.jsonl (or .jsonl.gz); put the file of "
            f"{source.origin} there under that name"
        )
    if source.hub is None:
        raise EvaluationError(
            f"suite {name}: the hub has no copy with all that is needed; put the file of {source.origin} into a folder "
            f"as {source.files[0]}.jsonl (or .jsonl.gz) and say --data FOLDER"
        )
    return _fetch(name, source, source.hub)


def _read(path: Path) -> list[Fields]:
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8", newline="\n") as file:
            rows = [json.loads(line) for line in file if line.strip()]
    except (OSError, ValueError, EOFError) as error:
        raise EvaluationError(f"cannot read {str(path)!r}: {str(error).splitlines()[0]}") from error
    if not rows or not all(isinstance(row, dict) for row in rows):
        raise EvaluationError(f"{str(path)!r} must hold one JSON object a line")
    return rows


def _fetch(name: str, source: Source, hub: tuple[str, str, str]) -> list[Fields]:
    advice = f"put the file of {source.origin} into a folder as {source.files[0]}.jsonl and say --data FOLDER"
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise EvaluationError(f"suite {name}: `pip install 'populora-league[eval]'`, or {advice}") from error
    path, configuration, split = hub
    try:
        return list(load_dataset(path, configuration or None, split=split))
    except Exception as error:
        # Which one a broken download raises depends on the version of three libraries.
        raise EvaluationError(f"suite {name}: {path!r} cannot be fetched ({type(error).__name__}); {advice}") from error


def required(name: str, row: Fields, *fields: str) -> Any:
    """Return the first of the named fields that a row has.

    Raises:
        EvaluationError: It has none of them.
    """
    for field in fields:
        if row.get(field) is not None:
            return row[field]
    raise EvaluationError(f"suite {name}: expected a row with {' or '.join(map(repr, fields))}, got {sorted(row)!r}")


def limited(rows: Sequence[Fields], limit: int | None) -> Sequence[Fields]:
    """Return the first rows."""
    return rows if limit is None else rows[:limit]
