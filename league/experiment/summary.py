"""What is kept of a finished run: one JSON line with its series and what its members can do.

Owns the record and the file of records, which is the point to resume from on another machine. Owns no statistics.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from league.experiment.arms import Job
from league.lineage import side_of
from league.selection import count_victims
from league.storage import CONFIG, VERSIONS, committed_steps, read_metrics, read_object, read_rows
from league.types import Row, Side
from populora_env.types import Role, Task

_DIGITS = 4
_COMPLEXITY = ("ast_depth", "cyclomatic", "lines", "variables")
_FROM_METRICS = ("teacher/validity", "teacher/coverage", "teacher/distinct_templates", "student/worked")

Shares = dict[str, float]
"""Solved greedily on the held-out suite, by task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A finished run."""

    arm: str
    seed: int
    flags: tuple[str, ...]
    """All that the run was started with, but seed and folder."""
    base: str
    settings: Mapping[str, Any]
    """Of the run's configuration by dotted name, but seed and folder."""
    steps: int
    series: Mapping[str, list[float | None]]
    """By name, a number a step from the first on, None where there was nothing to measure: `solve_rate` (mean over
    valid problems), `base_solve_rate` (of the frozen base on a sample of them), `student_reward`, `teacher_reward`,
    `ast_depth`, `cyclomatic`, `lines`, `variables`, `validity`, `coverage`, `distinct_templates`, `seconds`, `tokens`
    (sampled), `worked` (share of the answers), and `solve_rate/MEMBER` for each teacher."""
    heldout: Mapping[str, Shares]
    """Of each member that was there at the end."""

    @property
    def job(self) -> Job:
        """Which run it was."""
        return Job(seed=self.seed, arm=self.arm)

    def numbers(self, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return a series, [steps], NaN where there is no number.

        Raises:
            KeyError: The run has no such series.
        """
        return np.array([math.nan if value is None else value for value in self.series[name]], dtype=np.float64)

    def scores(self, *, teachers: bool = True, newborn: bool = True) -> list[float]:
        """Return each member's mean over the tasks of the suite.

        Args:
            teachers: Also of those that only teach.
            newborn: Also of those that `newborn` names.
        """
        left_out = frozenset() if newborn else self.newborn()
        return [
            sum(shares.values()) / len(shares)
            for member_id, shares in self.heldout.items()
            if member_id not in left_out and (teachers or side_of(member_id) is not Side.TEACHER)
        ]

    def newborn(self) -> frozenset[str]:
        """Return the members that were born after the last step: they have never learned."""
        settings = self.settings
        evolves = settings["evolve.evolution"] and not settings["single_agent"]
        if not evolves or self.steps % settings["evolve.evolve_every"]:
            return frozenset()
        found: set[str] = set()
        for side in (Side.TEACHER, Side.STUDENT):
            members = sorted((one for one in self.heldout if side_of(one) is side), key=_number)
            found |= set(members[len(members) - count_victims(len(members), settings["evolve.fraction"]) :])
        return frozenset(found)


def _number(member_id: str) -> int:
    return int(member_id.rpartition("_")[2])


def summarise(run: Path, job: Job, flags: Sequence[str], heldout: Mapping[str, Shares]) -> Record:
    """Return the record of a finished run folder.

    Args:
        run: The folder.
        job: Which run it is.
        flags: What it was started with.
        heldout: Of its members, measured by the caller.
    """
    problems, rollouts, metrics = (
        read_rows(run, "problems"),
        read_rows(run, "rollouts"),
        {line["step"]: line for line in read_metrics(run)},
    )
    steps = range(1, max(committed_steps(run)) + 1)
    by_step = {step: ([], []) for step in steps}  # type: dict[int, tuple[list[Row], list[Row]]]
    for place, rows in enumerate((problems, rollouts)):
        for row in rows:
            by_step[row["step"]][place].append(row)
    columns = [_numbers(*by_step[step], metrics.get(step, {})) for step in steps]
    names = sorted({name for column in columns for name in column})
    return Record(
        arm=job.arm,
        seed=job.seed,
        flags=tuple(flags),
        base=read_object(run / VERSIONS, "base")["base"],
        settings={name: value for name, value in _flat(_config(run)) if name not in ("seed", "out")},
        steps=len(steps),
        series={name: [_rounded(column.get(name)) for column in columns] for name in names},
        heldout={
            name: {task: round(share, _DIGITS) for task, share in shares.items()} for name, shares in heldout.items()
        },
    )


def _numbers(problems: Sequence[Row], rollouts: Sequence[Row], metrics: Mapping[str, Any]) -> dict[str, float | None]:
    """Return one step's numbers by series."""
    valid = [row for row in problems if row["valid"]]
    own = [row for row in valid if row["task"] != Task.INDUCTION]
    numbers = {"solve_rate": _mean(row["solve_rate"] for row in valid)}
    numbers |= {name: _mean(row[name] for row in own) for name in _COMPLEXITY}
    for role, name in ((Role.PROPOSER, "teacher_reward"), (Role.SOLVER, "student_reward")):
        numbers[name] = _mean(row["reward"] for row in rollouts if row["role"] == role)
    for teacher in sorted({row["teacher_id"] for row in valid}):
        numbers[f"solve_rate/{teacher}"] = _mean(row["solve_rate"] for row in valid if row["teacher_id"] == teacher)
    numbers["tokens"] = float(sum(len(row["completion_ids"]) for row in rollouts))
    numbers |= {name.rpartition("/")[2]: metrics.get(name) for name in _FROM_METRICS}
    numbers["base_solve_rate"] = metrics.get("base/solve_rate")
    return numbers | {"seconds": sum(metrics.get("seconds", {}).values())}


def _config(run: Path) -> Mapping[str, Any]:
    return dict(yaml.safe_load((run / CONFIG).read_text(encoding="utf-8")))


def _flat(settings: Mapping[str, Any], under: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{under}{name}.")
        else:
            yield under + name, value


def _mean(values: Iterable[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), _DIGITS)


def read_summary(path: Path) -> list[Record]:
    """Return the records of a summary, none where the file is not there.

    Raises:
        ValueError: A line is no record, or two are of the same run.
    """
    records: list[Record] = []
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            fields = json.loads(line)
            records.append(Record(**{**fields, "flags": tuple(fields["flags"])}))
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path}: line {number} is no record of a run: {error}") from error
    if len({record.job for record in records}) < len(records):
        raise ValueError(f"{path}: two records are of the same run")
    return records


def append_record(path: Path, record: Record) -> None:
    """Add a record to a summary, as a line of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(record), separators=(",", ":")) + "\n")
