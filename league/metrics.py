"""What is measured of one step, from the rows of its tables.

Owns formulas; docs/metrics.md lists them with their units. Owns no files and no history. Nothing is reported of what
did not happen: a metric whose rows are missing is left out, so that no NaN and no invented 0 gets into a curve.

Every measure is taken of four groups of rows: of a side, of each task, of each member, of each member's part in each
task. Structure and distinctness are of valid problems that have a program of their own: induction is about programs
that somebody wrote earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from league.metric_table import Metric
from league.types import Row, Side
from populora_env.config import StyleName
from populora_env.parsing import is_worked
from populora_env.source import SourceError, template
from populora_env.types import Role, Status, Task

Measure = Callable[[Sequence[Row]], float | None]
"""A mean or share over rows; None when there is nothing to take it of."""

_TASK_ORDER = {task.value: place for place, task in enumerate(Task)}


def step_metrics(problems: Sequence[Row], rollouts: Sequence[Row], style: StyleName) -> Iterator[Metric]:
    """Yield the metrics of one step, of whole sides and of members.

    Args:
        problems: Rows of the problems table, one a proposal, valid or not; programs in normal form.
        rollouts: Rows of the rollouts table.
        style: In which answers are written; worked ones can be told in `compact` alone.
    """
    proposals = [row for row in rollouts if row["role"] == Role.PROPOSER]
    attempts = [row for row in rollouts if row["role"] == Role.SOLVER]
    of_attempts = {**_ATTEMPT_MEASURES, **({"worked": _worked} if style == "compact" else {}), **_ROLLOUT_MEASURES}
    yield from _measured(problems, "teacher_id", Side.TEACHER, _PROBLEM_MEASURES)
    yield from _measured(proposals, "member_id", Side.TEACHER, _ROLLOUT_MEASURES)
    yield from _measured(attempts, "member_id", Side.STUDENT, of_attempts)


def _measured(rows: Sequence[Row], member: str, side: Side, measures: Mapping[str, Measure]) -> Iterator[Metric]:
    """Yield every measure of every group; `member` is the column with the members' ids."""
    groups: dict[tuple[str | None, str | None], list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row[member], _TASK_ORDER.get(row["task"], len(_TASK_ORDER)))):
        task, member_id = str(row["task"]), row[member]
        for key in ((None, None), (None, task), (member_id, None), (member_id, task)):
            groups.setdefault(key, []).append(row)
    for (member_id, of_task), group in groups.items():
        for name, measure in measures.items():
            value = measure(group)
            if value is not None:
                yield Metric(side.value, name, value, task=of_task, member_id=member_id)


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return sum(listed) / len(listed) if listed else None


def _count(rows: Sequence[Row]) -> float:
    return float(len(rows))


def _of_column(column: str) -> Measure:
    return lambda rows: _mean(float(row[column]) for row in rows)


def _problem_solve_rate(rows: Sequence[Row]) -> float | None:
    return _mean(float(row["solve_rate"]) for row in rows if row["valid"] and row["solve_rate"] is not None)


def _own_programs(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["valid"] and row["task"] != Task.INDUCTION]


def _structure(column: str) -> Measure:
    return lambda rows: _mean(float(row[column]) for row in _own_programs(rows) if row[column] is not None)


def _distinct(form: Callable[[str], str]) -> Measure:
    def share(rows: Sequence[Row]) -> float | None:
        forms = [form(row["program"]) for row in _own_programs(rows)]
        return len(set(forms)) / len(forms) if forms else None

    return share


def _template_or_text(program: str) -> str:
    try:
        return template(program)
    except SourceError:  # Another game's problems need not be Python.
        return program


def _worked(rows: Sequence[Row]) -> float | None:
    return _mean(float(is_worked(row["completion"])) for row in rows)


_PROBLEM_MEASURES: Mapping[str, Measure] = {
    "proposals": _count,
    "validity": _of_column("valid"),
    "solve_rate": _problem_solve_rate,
    **{column: _structure(column) for column in ("ast_depth", "cyclomatic", "lines", "variables")},
    "repeats": lambda rows: _mean(float(row["repeated"]) for row in rows if row["repeated"] is not None),
    "distinct_programs": _distinct(str),
    "distinct_templates": _distinct(_template_or_text),
}
_ATTEMPT_MEASURES: Mapping[str, Measure] = {
    "attempts": _count,
    "solve_rate": lambda rows: _mean(float(row["verdict"] == Status.OK) for row in rows),
    "format_failures": lambda rows: _mean(
        float(str(row["verdict"]).partition(":")[0] == Status.FORMAT) for row in rows
    ),
}
_ROLLOUT_MEASURES: Mapping[str, Measure] = {
    "reward": _of_column("reward"),
    "completion_tokens": lambda rows: _mean(float(len(row["completion_ids"])) for row in rows),
}
