"""What is kept of a finished run: one JSON line with its settings, learning curve and score.

Owns the record and the file of records, which is the point to resume from. Owns no statistics.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.marl.environments import ENVIRONMENTS


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Job:
    """One run."""

    seed: int
    environment: str
    algorithm: str
    """An algorithm or a reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A finished run."""

    environment: str
    algorithm: str
    seed: int
    settings: Mapping[str, Any]
    """All that it was run with."""
    curve: list[list[float]]
    """Steps of all games so far, and the mean score there; the last one is the score. References have one point."""
    score: float
    """Mean over the last evaluation's episodes."""
    seconds: float
    """Wall clock."""
    cpu_seconds: float
    """Of the run's own process; the verifier's processes are not in it."""

    @property
    def job(self) -> Job:
        """Which run it was."""
        return Job(seed=self.seed, environment=self.environment, algorithm=self.algorithm)


def read_summary(path: Path) -> list[Record]:
    """Return the records of a summary, none where the file is not there.

    Raises:
        ValueError: A line is no record, or of no environment, or two are of the same run.
    """
    records: list[Record] = []
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            records.append(Record(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: line {number} is no record of a run: {error}") from error
    if unknown := sorted({record.environment for record in records} - ENVIRONMENTS.keys()):
        raise ValueError(f"{path}: there is no environment {unknown[0]!r}; there are {', '.join(ENVIRONMENTS)}")
    if len({record.job for record in records}) < len(records):
        raise ValueError(f"{path}: two records are of the same run")
    return records


def append_record(path: Path, record: Record) -> None:
    """Add a record to a summary, as a line of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(record), separators=(",", ":")) + "\n")
