"""One run or several as one page that needs nothing beside itself.

Owns what goes into the page; how it looks is in `templates`. Everything is put in by templates that escape, or as JSON
that cannot leave its place; a content security policy forbids the page every other script and all of the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from league.report.browser import MAX_BYTES, MAX_CHARS, Shown, chosen, shown
from league.report.embedding import embedded, script_hash
from league.report.kinds import Kind, Section, sections
from league.report.measures import Numbers, metric, metric_names
from league.report.source import RunTables, read_attempts, read_run
from league.report.texts import alternative, changes

FILE = "report.html"
"""Name of the report in a run folder."""
PROBLEMS = 2000
"""Problems shown of each run, unless another number is asked for."""
_METRICS = 400
"""Most metrics that can be looked up in the page."""


def build(paths: Sequence[Path], *, problems: int = PROBLEMS) -> str:
    """Return the page of one run, or of several side by side.

    Args:
        paths: Run folders.
        problems: Shown of each run at most, >= 0.

    Raises:
        StorageError: One is no run folder, or is damaged.
        ValueError: `problems` is below 0.
    """
    runs = [read_run(path) for path in paths]
    last_step = max(run.last_step for run in runs)
    plots: dict[str, list[Mapping[str, Any]]] = {}
    told: dict[str, list[str]] = {}
    parts = []
    for section in sections(last_step):
        measured = {kind: [kind.measure(run) for run in runs] for kind in section.kinds}
        kept = [kind for kind, numbers in measured.items() if not kind.optional or any(map(_has_rows, numbers))]
        parts.append(replace(section, kinds=tuple(kept)))
        for kind in kept:
            plots[kind.key], told[kind.key] = _plots(kind, runs, measured[kind])
    lists = [_problems(run, problems, MAX_BYTES // len(runs)) for run in runs]
    data = {
        "runs": [run.name for run in runs],
        "plots": plots,
        "metrics": _metrics(runs),
        "problems": [one.rows for one in lists],
    }
    return _render(runs, parts, told, lists, data)


def _has_rows(numbers: Numbers) -> bool:
    return any(map(len, numbers.values()))


def _plots(
    kind: Kind, runs: Sequence[RunTables], everyone: Sequence[Numbers]
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Return each run's plot of a kind with the numbers behind it, and what those who do not see it are told."""
    drawn: list[Mapping[str, Any]] = [{**kind.draw(numbers, everyone), "numbers": numbers} for numbers in everyone]
    return drawn, [alternative(kind, numbers, run.name) for numbers, run in zip(everyone, runs, strict=True)]


def _problems(run: RunTables, limit: int, max_bytes: int) -> Shown:
    few = chosen(run.proposals, limit)
    attempts = read_attempts(run.path, few["proposal_id"].to_pylist())
    return shown(few, attempts, total=run.proposals.num_rows, max_bytes=max_bytes)


def _metrics(runs: Sequence[RunTables]) -> Mapping[str, Sequence[Numbers]]:
    return {name: [metric(run, (name,)) for run in runs] for name in metric_names(runs)[:_METRICS]}


def _render(
    runs: Sequence[RunTables],
    parts: Sequence[Section],
    told: Mapping[str, Sequence[str]],
    lists: Sequence[Shown],
    data: Mapping[str, Any],
) -> str:
    environment = Environment(
        loader=PackageLoader("league.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    scripts = [get_plotlyjs(), _file("report.js")]
    page: str = environment.get_template("report.html").render(
        runs=runs,
        sections=parts,
        told=told,
        lists=lists,
        changes=[changes(run) for run in runs],
        most_chars=MAX_CHARS,
        metrics=sorted(data["metrics"]),
        data=embedded(data),
        style=_file("report.css"),
        scripts=scripts,
        hashes=[script_hash(script) for script in scripts],
    )
    return page


def _file(name: str) -> str:
    return resources.files("league.report").joinpath("templates", name).read_text(encoding="utf-8")
