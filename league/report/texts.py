"""Words made of numbers: what stands in the place of a picture, and how the end of a run compares with its beginning.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from league.archive import CELLS
from league.report import measures
from league.report.kinds import Kind
from league.report.measures import MEAN, Numbers
from league.report.source import RunTables

_PART = 5
"""The beginning and the end of a run are its first and last fifth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One measure at the beginning and at the end of a run."""

    title: str
    first: float | None
    """Mean over the first fifth of the steps."""
    last: float | None
    """Mean over the last fifth."""
    calibrated: str
    """What self-calibration would look like."""


def changes(run: RunTables) -> list[Change]:
    """Return how the end of a run compares with its beginning, in what tells an arms race from self-calibration."""
    rows = [
        ("Solve rate of the problems (share)", measures.solve_rates(run), "all", "rises towards 1"),
        *(
            (title, measures.structure(run, name), MEAN, "falls")
            for name, title in (
                ("ast_depth", "Depth of the syntax tree (levels)"),
                ("cyclomatic", "Cyclomatic complexity (paths)"),
                ("lines", "Lines"),
                ("variables", "Variables"),
            )
        ),
        ("Coverage (share)", measures.coverage(run, CELLS), "all", "stops rising"),
        ("Valid proposals (share)", measures.validity(run), "proposals", ""),
        ("Teachers' reward", measures.rewards(run), "teacher", "falls towards 0"),
        ("Students' reward", measures.rewards(run), "student", "rises towards 1"),
    ]
    return [
        Change(title=title, first=ends[0], last=ends[1], calibrated=calibrated)
        for title, numbers, column, calibrated in rows
        if (ends := first_and_last(numbers, column, run.last_step)) is not None
    ]


def first_and_last(numbers: Numbers, column: str, last_step: int) -> tuple[float | None, float | None] | None:
    """Return means of a column over the first and the last fifth of the steps 1 to `last_step`; None: no column."""
    if column not in numbers:
        return None
    part = max(1, last_step // _PART)
    pairs = [(step, value) for step, value in zip(numbers["step"], numbers[column], strict=True) if value is not None]
    return (
        _mean([value for step, value in pairs if step <= part]),
        _mean([value for step, value in pairs if step > last_step - part]),
    )


def alternative(kind: Kind, numbers: Numbers, run: str) -> str:
    """Return what a plot shows, for those who do not see it."""
    count = len(next(iter(numbers.values()), ()))
    if not count:
        return f"{kind.title}, {run}: nothing to show."
    told = kind.told or [name for name in numbers if name != "step" and _is_numeric(numbers[name])]
    parts = [_told(numbers, name) for name in told if name in numbers]
    return f"{kind.title}, {run}: {count} rows. " + " ".join(part for part in parts if part)


def _told(numbers: Numbers, column: str) -> str:
    values = [value for value in numbers[column] if value is not None]
    if not values:
        return ""
    title = column.replace("_", " ")
    ends = f"first {values[0]:.3g}, last {values[-1]:.3g}, " if "step" in numbers and "member" not in numbers else ""
    return f"{title}: {ends}between {min(values):.3g} and {max(values):.3g}."


def _is_numeric(values: Sequence[Any]) -> bool:
    there = [value for value in values if value is not None]
    return bool(there) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in there)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
