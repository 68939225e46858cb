"""Whether what one row names is a row of another table, in the same step or before.

Pure. Owns which column points where; `integrity` reads the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from league.types import Row

_OWN_ID = {"problems": "proposal_id", "rollouts": "rollout_id", "matches": "match_id", "lineage": "child_id"}
"""Columns whose values are a row's name, used once in a run."""

_POINTS_TO: Mapping[str, Mapping[str, str]] = {
    "problems": {"match_id": "matches", "teacher_id": "lineage"},
    "rollouts": {"match_id": "matches", "member_id": "lineage", "problem_id": "problem_id"},
    "matches": {"teacher_id": "lineage", "student_id": "lineage"},
    "ratings": {"match_id": "matches", "member_id": "lineage"},
    "metrics": {"member_id": "lineage"},
}


class References:
    """Follows a run step by step and tells which names lead nowhere."""

    def __init__(self, adapters: Mapping[str, str]) -> None:
        """Begin before the founding; `adapters` has the sha256 of each file that was saved, by name."""
        self._saved = {(name.rpartition("/")[0], sha256) for name, sha256 in adapters.items()}
        self._known: dict[str, set[Any]] = {name: set() for name in (*_OWN_ID, "problem_id")}

    def step(self, tables: Mapping[str, Sequence[Row]]) -> Iterator[str]:
        """Go through one step's rows, by table; yield what is wrong in them, a line each."""
        for name, column in _OWN_ID.items():
            known = self._known[name]
            for row in tables[name]:
                if row[column] in known:
                    yield f"{name}: {column} {row[column]!r} is used twice"
                known.add(row[column])
        self._known["problem_id"] |= {row["problem_id"] for row in tables["problems"]}
        for name, columns in _POINTS_TO.items():
            for row in tables[name]:
                for column, target in columns.items():
                    if row[column] is not None and row[column] not in self._known[target]:
                        yield f"{name}: {column} {row[column]!r} names nothing"
        for row in tables["rollouts"]:
            if row["role"] == "solver" and row["group_id"] not in self._known["problems"]:
                yield f"rollouts: group_id {row['group_id']!r} of a solver is no proposal"
        yield from self._lineage(tables["lineage"])

    def _lineage(self, rows: Sequence[Row]) -> Iterator[str]:
        for row in rows:
            for parent in row["parents"]:
                if parent not in self._known["lineage"]:
                    yield f"lineage: parent {parent!r} of {row['child_id']} names nothing"
            first = f"{row['child_id']}/0"
            if (first, row["adapter_sha256"]) not in self._saved:
                yield f"lineage: adapter_sha256 of {row['child_id']} is that of no file in {first}"
