"""A run's tables for whoever analyses them or trains on them: `league.load("runs/first", "matches")`.

Owns the door. Owns no files (`storage`) and no other library: an Arrow table is what pandas, polars, duckdb and
datasets all take (docs/data.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from league.storage import read_table


def load(run: str | Path, table: str, columns: Sequence[str] | None = None) -> pa.Table:
    """Return one table of a run: rows of committed steps only, in the order of steps and, within, as written.

    Args:
        run: The run folder; the run may still be going on.
        table: `problems`, `rollouts`, `matches`, `ratings`, `lineage` or `metrics` (docs/data.md has their columns).
        columns: Those wanted, in this order; None is all. Token ids and log-probabilities are most of `rollouts`.

    Raises:
        StorageError: No run folder, or a file of a committed step that is missing or damaged.
        ValueError: There is no such table or column.
    """
    return read_table(Path(run), table, columns)
