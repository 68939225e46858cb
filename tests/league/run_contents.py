"""What two runs of the same settings have in common, read from their folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from league.schemas import SCHEMAS, TIME_COLUMNS
from league.storage import committed_steps, read_table


def contents(run: Path) -> dict[str, Any]:
    """Return all but settings, run id and measured times: tables, metrics, adapters, states, committed steps."""
    tables = {
        name: read_table(run, name).drop_columns(
            [column for column in ("run_id", *TIME_COLUMNS) if column in SCHEMAS[name].names]
        )
        for name in SCHEMAS
    }
    files = {
        str(path.relative_to(run)): path.read_bytes()
        for folder in ("adapters", "state")
        for path in (run / folder).rglob("*")
        if path.is_file()
    }
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    metrics = [{name: value for name, value in line.items() if name != "seconds"} for line in lines]
    return {**tables, **files, "metrics": metrics, "steps": committed_steps(run)}
