"""What is measured of one step, from the rows of its tables.

Owns names and formulas of the metrics. Owns no files and no history. Nothing is reported of what did not happen: a
metric whose rows are missing is left out, so that no NaN and no invented 0 gets into a curve.

Names: `SIDE/MEASURE` over all tasks, `SIDE/MEASURE/TASK` for one.

- `teacher/proposals`, `teacher/validity`: how many were made, and the share of them that is valid;
- `teacher/solve_rate`: mean over valid problems (each counts once), `student/solve_rate`: share of correct attempts;
- `teacher/reward`, `student/reward`: mean over rollouts; `student/format_failures`: share of attempts;
- `teacher/ast_depth`, `teacher/distinct_programs`, `teacher/distinct_templates`: over the valid problems that have a
  program of their own; distinct ones as a share of them. A template is the program with its constants masked: a
  collapsed teacher that varies a number only has many programs and one template.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from league.types import Row, Side
from populora_env.source import SourceError, normalise, parse_program
from populora_env.types import Role, Status, Task

Measure = Callable[[Sequence[Row]], float | None]
"""A mean or share over rows; None when there is nothing to take it of."""


def step_metrics(problems: Sequence[Row], rollouts: Sequence[Row]) -> dict[str, float]:
    """Return the metrics of one step by name.

    Args:
        problems: Rows of the problems table, one a proposal, valid or not.
        rollouts: Rows of the rollouts table.
    """
    proposals = [row for row in rollouts if row["role"] == Role.PROPOSER]
    attempts = [row for row in rollouts if row["role"] == Role.SOLVER]
    metrics = _by_task(problems, Side.TEACHER, _PROBLEM_MEASURES)
    metrics |= _by_task(proposals, Side.TEACHER, {"reward": _reward})
    metrics |= _by_task(attempts, Side.STUDENT, _ATTEMPT_MEASURES)
    return metrics


@lru_cache(maxsize=4096)
def template(program: str) -> str:
    """Return what is left of a program when every constant is masked by its type, signs included.

    Raises:
        SourceError: Not a program within the bounds.
    """
    return ast.dump(_Mask().visit(parse_program(normalise(program))))


class _Mask(ast.NodeTransformer):
    """Replaces constants by the names of their types."""

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return ast.Constant(value=type(node.value).__name__)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        signed = isinstance(node.op, ast.USub | ast.UAdd) and isinstance(node.operand, ast.Constant)
        return self.visit(node.operand) if signed else self.generic_visit(node)


def _by_task(rows: Sequence[Row], side: Side, measures: Mapping[str, Measure]) -> dict[str, float]:
    metrics: dict[str, float] = {}
    tasks = [task for task in Task if any(row["task"] == task for row in rows)]
    for name, measure in measures.items():
        for task in (None, *tasks):
            value = measure([row for row in rows if task is None or row["task"] == task])
            if value is not None:
                metrics[f"{side.value}/{name}" + (f"/{task.value}" if task else "")] = value
    return metrics


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return sum(listed) / len(listed) if listed else None


def _valid(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["valid"]]


def _reward(rows: Sequence[Row]) -> float | None:
    return _mean(float(row["reward"]) for row in rows)


def _problem_solve_rate(rows: Sequence[Row]) -> float | None:
    return _mean(float(row["solve_rate"]) for row in _valid(rows) if row["solve_rate"] is not None)


def _ast_depth(rows: Sequence[Row]) -> float | None:
    return _mean(float(row["ast_depth"]) for row in _own_programs(rows) if row["ast_depth"] is not None)


def _own_programs(rows: Sequence[Row]) -> list[Row]:
    """Leave out induction, whose programs are references that somebody wrote earlier."""
    return [row for row in _valid(rows) if row["task"] != Task.INDUCTION]


def _distinct(form: Callable[[str], str]) -> Measure:
    def share(rows: Sequence[Row]) -> float | None:
        forms = [_form_or_text(form, row["program"]) for row in _own_programs(rows)]
        return len(set(forms)) / len(forms) if forms else None

    return share


def _form_or_text(form: Callable[[str], str], program: str) -> str:
    try:
        return form(program)
    except SourceError:  # Another game's problems need not be Python.
        return program


_PROBLEM_MEASURES: Mapping[str, Measure] = {
    "proposals": lambda rows: float(len(rows)) if rows else None,
    "validity": lambda rows: _mean(float(bool(row["valid"])) for row in rows),
    "solve_rate": _problem_solve_rate,
    "ast_depth": _ast_depth,
    "distinct_programs": _distinct(normalise),
    "distinct_templates": _distinct(template),
}
_ATTEMPT_MEASURES: Mapping[str, Measure] = {
    "solve_rate": lambda rows: _mean(float(row["verdict"] == Status.OK) for row in rows),
    "format_failures": lambda rows: _mean(
        float(str(row["verdict"]).partition(":")[0] == Status.FORMAT) for row in rows
    ),
    "reward": _reward,
}
