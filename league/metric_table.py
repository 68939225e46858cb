"""The names of metrics, and the rows of the table that holds them.

Pure. Owns the two forms in which a metric is told: a name with slashes (`metrics.jsonl`) and a row (table `metrics`).
Owns no formula; those are in `metrics`, `learning`, `archive`, `payoff` and `yardstick`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from league.lineage import side_of
from league.types import Row, Side
from populora_env.types import Task

LEAGUE = "league"
"""Scope of what belongs to neither side."""

_SIDES = frozenset(Side)
_TASKS = frozenset(Task)


class Metric(NamedTuple):
    """One number of one step."""

    scope: str
    """Whose: `teacher`, `student`, `base` (the frozen base on the members' problems) or `league`."""
    name: str
    value: float
    """Finite."""
    task: str | None = None
    """None is all tasks."""
    member_id: str | None = None
    """None is all members."""


def named(metrics: Iterable[Metric]) -> dict[str, float]:
    """Return metrics that are of no single member under their names, `SCOPE/NAME` or `SCOPE/NAME/TASK`."""
    return {f"{one.scope}/{one.name}" + (f"/{one.task}" if one.task else ""): one.value for one in metrics}


def unnamed(metrics: Mapping[str, float]) -> Iterator[Metric]:
    """Yield the metrics behind names; what stands third is a task, a side or a member.

    A side in the third place is the scope, and a member's side is its scope: `league/nash_support/teacher` is the
    teachers' `nash_support`. A name without slashes is the league's; what else stands third remains part of the name.
    """
    for name, value in metrics.items():
        scope, slash, rest = name.partition("/")
        if not slash:
            scope, rest = LEAGUE, name
        measure, _, last = rest.partition("/")
        if not last:
            yield Metric(scope, measure, value)
        elif last in _SIDES:
            yield Metric(last, measure, value)
        elif last in _TASKS:
            yield Metric(scope, measure, value, task=last)
        elif (side := _side_of(last)) is not None:
            yield Metric(side, measure, value, member_id=last)
        else:
            yield Metric(scope, rest, value)


def _side_of(last: str) -> str | None:
    """Return the side of what may be a member's id."""
    try:
        return side_of(last).value
    except ValueError:
        return None


def metric_rows(step: int, metrics: Iterable[Metric]) -> list[Row]:
    """Return the rows of the table `metrics`."""
    return [
        {"step": step, "scope": scope, "member_id": member_id, "task": task, "name": name, "value": value}
        for scope, name, value, task, member_id in metrics
    ]
