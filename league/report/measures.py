"""The numbers behind the report's plots over time, each a few columns that follow from a run's tables.

Pure. Owns formulas, no look: `figures` draws what stands here. `Numbers` are columns of one length; what did not happen
is left out or None, never an invented 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from league.lineage import side_of
from league.report.source import RunTables
from league.types import Row, Side
from populora_env.types import Role, Status, Task

Numbers = Mapping[str, Sequence[Any]]
"""Columns by name, all of one length."""

STRUCTURE = ("ast_depth", "cyclomatic", "lines", "variables")
"""Measures of a program's structure, as the problems table has them."""
_FIGURES = ("step", "task", "teacher_id", "valid", "solve_rate", *STRUCTURE, "cell_id")
"""Columns of the problems table that are worked with here; copying its texts would take most of the time."""
MEAN, LOW, HIGH = "mean", "tenth", "ninetieth"
"""Columns of a spread: the mean, the 10th and the 90th percentile."""


def solve_rates(run: RunTables) -> Numbers:
    """Return by step the mean solve rate of the valid problems, each counted once, and by task."""
    valid = _valid(run.problems)
    return _wide(_by_step(valid, "solve_rate"), {task.value: _by_step(_of(valid, task), "solve_rate") for task in Task})


def teacher_solve_rates(run: RunTables) -> Numbers:
    """Return by step and teacher the mean solve rate of its valid problems; a single agent is one too."""
    return _members(run, _valid(run.problems), "teacher_id", "solve_rate", Side.TEACHER)


def student_solve_rates(run: RunTables) -> Numbers:
    """Return by step and student the share of its attempts that were correct; a single agent is one too."""
    attempts = _of_role(run.rollouts, Role.SOLVER)
    solved = pc.cast(pc.equal(attempts["verdict"], Status.OK.value), pa.float64())
    return _members(run, attempts.append_column("solve_rate", solved), "member_id", "solve_rate", Side.STUDENT)


def ratings(run: RunTables, side: Side) -> Numbers:
    """Return by step and member its rating at the end of the step, with the band of one standard deviation."""
    last = {
        (row["member_id"], row["step"]): row for row in run.ratings.to_pylist() if side_of(row["member_id"]) is side
    }
    rows = [
        {
            "step": step,
            "member": member,
            "slot": run.births[member]["slot"],
            "mu": row["mu"],
            "sigma": row["sigma"],
            "low": row["mu"] - row["sigma"],
            "high": row["mu"] + row["sigma"],
        }
        for (member, step), row in last.items()
        if member in run.births
    ]
    return columns(sorted(rows, key=_by_slot), ("step", "member", "slot", "mu", "sigma", "low", "high"))


def structure(run: RunTables, measure: str) -> Numbers:
    """Return by step the mean and spread of one of `STRUCTURE` over the teachers' own valid programs.

    Induction shows earlier programs and is left out.
    """
    own = own_programs(run.problems)
    rows = []
    for step, values in _groups(own["step"], own[measure]):
        low, high = np.percentile(values, (10, 90))
        rows.append({"step": step, MEAN: float(values.mean()), LOW: float(low), HIGH: float(high)})
    return columns(rows, ("step", MEAN, LOW, HIGH))


def coverage(run: RunTables, cells: int) -> Numbers:
    """Return by step the share of the archive's cells that valid problems have filled since the run began.

    Args:
        run: Whose problems.
        cells: Of the archive.

    Returns:
        `all` counts deduction and abduction, whose programs the teachers write; then each task.
    """
    valid = _valid(run.problems)
    by_task = {task.value: _filled(_of(valid, task), cells) for task in Task}
    return _wide(_filled(own_programs(run.problems), cells), by_task)


def rewards(run: RunTables) -> Numbers:
    """Return by step the mean reward of a rollout, of teachers and of students."""
    return _wide(None, {side.value: _by_step(_of_role(run.rollouts, role), "reward") for side, role in _ROLES.items()})


def validity(run: RunTables) -> Numbers:
    """Return by step the share of the proposals that are problems, and of the attempts that can be read."""
    problems, attempts = run.problems, _of_role(run.rollouts, Role.SOLVER)
    is_format = pc.starts_with(attempts["verdict"], pattern=Status.FORMAT.value)
    readable = attempts.append_column("readable", pc.cast(pc.invert(is_format), pa.float64()))
    valid = problems.append_column("share", pc.cast(problems["valid"], pa.float64()))
    return _wide(None, {"proposals": _by_step(valid, "share"), "attempts": _by_step(readable, "readable")})


def metric(run: RunTables, names: Sequence[str]) -> Numbers:
    """Return by step metrics of `metrics.jsonl` by name; steps that have none of them are left out."""
    found = {name: {line["step"]: line[name] for line in run.metrics if _is_number(line.get(name))} for name in names}
    return _wide(None, {name: values for name, values in found.items() if values})


def metric_names(runs: Iterable[RunTables]) -> list[str]:
    """Return the names of all metrics that are numbers in any of the runs, in order."""
    return sorted(
        {name for run in runs for line in run.metrics for name in line if name != "step" and _is_number(line[name])}
    )


def seconds(run: RunTables) -> Numbers:
    """Return by step the wall clock of each phase, in seconds."""
    spent = [(line["step"], line.get("seconds") or {}) for line in run.metrics]
    phases = dict.fromkeys(phase for _, parts in spent for phase in parts)
    return _wide(None, {phase: {step: parts[phase] for step, parts in spent if phase in parts} for phase in phases})


def trailing_mean(values: Sequence[float], window: int) -> list[float]:
    """Return at each place the mean of the last `window` values up to it, fewer at the beginning; window >= 1."""
    total = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.arange(1, len(values) + 1)
    starts = np.maximum(0, ends - window)
    means: list[float] = ((total[ends] - total[starts]) / (ends - starts)).tolist()
    return means


def window_of(last_step: int) -> int:
    """Return over how many steps noisy curves are smoothed: a twentieth of the run, at least 3."""
    return max(3, last_step // 20)


def own_programs(problems: pa.Table) -> pa.Table:
    """Return the rows of valid problems whose program the teacher wrote; induction shows earlier programs."""
    valid = _valid(problems)
    return valid.filter(pc.not_equal(valid["task"], Task.INDUCTION.value))


def columns(rows: Sequence[Row], names: Sequence[str]) -> dict[str, list[Any]]:
    """Return rows as columns, in the order of `names`."""
    return {name: [row[name] for row in rows] for name in names}


_ROLES = {Side.TEACHER: Role.PROPOSER, Side.STUDENT: Role.SOLVER}


def _members(run: RunTables, table: pa.Table, member: str, value: str, side: Side) -> Numbers:
    """Return means by step and member, by slot and then step, with the trailing mean of each member."""
    mean = table.group_by(["step", member], use_threads=False).aggregate([(value, "mean"), (value, "count")])
    rows = [
        {
            "step": row["step"],
            "member": row[member],
            "slot": run.births[row[member]]["slot"],
            value: row[f"{value}_mean"],
            "count": row[f"{value}_count"],
        }
        for row in mean.to_pylist()
        if row[member] in run.births and row[f"{value}_mean"] is not None and side_of(row[member]) in (side, Side.AGENT)
    ]
    rows.sort(key=_by_slot)
    window = window_of(run.last_step)
    for name in dict.fromkeys(row["member"] for row in rows):
        own = [row for row in rows if row["member"] == name]
        for row, smooth in zip(own, trailing_mean([row[value] for row in own], window), strict=True):
            row["smoothed"] = smooth
    return columns(rows, ("step", "member", "slot", value, "smoothed", "count"))


def _by_slot(row: Row) -> tuple[int, int]:
    return row["slot"], row["step"]


def _wide(everything: Mapping[int, float] | None, parts: Mapping[str, Mapping[int, float]]) -> dict[str, list[Any]]:
    """Return curves as columns over the steps of any of them; `all` first, and parts that have no value left out."""
    curves = ({"all": everything} if everything else {}) | {name: part for name, part in parts.items() if part}
    steps = sorted({step for curve in curves.values() for step in curve})
    return {"step": steps} | {name: [curve.get(step) for step in steps] for name, curve in curves.items()}


def _by_step(table: pa.Table, value: str) -> dict[int, float]:
    means = table.group_by("step", use_threads=False).aggregate([(value, "mean")]).to_pylist()
    return {row["step"]: row[f"{value}_mean"] for row in means if row[f"{value}_mean"] is not None}


def _filled(table: pa.Table, cells: int) -> dict[int, float]:
    seen: set[int] = set()
    shares: dict[int, float] = {}
    for step, values in _groups(table["step"], table["cell_id"]):
        seen.update(map(int, values))
        shares[step] = len(seen) / cells
    return shares


def _groups(steps: pa.ChunkedArray, values: pa.ChunkedArray) -> list[tuple[int, Any]]:
    """Return the values of each step, as float64 arrays, steps ascending; nulls are left out."""
    there = pc.is_valid(values)
    step = np.asarray(pc.filter(steps, there), dtype=np.int64)
    value = np.asarray(pc.filter(values, there), dtype=np.float64)
    order = np.argsort(step, kind="stable")
    names, starts = np.unique(step[order], return_index=True)
    return list(zip(names.tolist(), np.split(value[order], starts[1:]), strict=True)) if len(names) else []


def _valid(problems: pa.Table) -> pa.Table:
    return problems.select(_FIGURES).filter(problems["valid"])


def _of(table: pa.Table, task: Task) -> pa.Table:
    return table.filter(pc.equal(table["task"], task.value))


def _of_role(rollouts: pa.Table, role: Role) -> pa.Table:
    return rollouts.filter(pc.equal(rollouts["role"], role.value))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


Measure = Callable[[RunTables], Numbers]
"""Works the numbers of one plot out of one run."""
