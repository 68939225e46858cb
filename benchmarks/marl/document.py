"""The document: one table and one plot of all runs.

Owns words and pictures. Every number of the table comes from the records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.marl.algorithms import ALGORITHMS, FIRST, RANDOM, REFERENCES
from benchmarks.marl.config import HIDDEN, TrainingConfig
from benchmarks.marl.environments import ENVIRONMENTS
from benchmarks.marl.statistics import Middle, Standing, bootstrap, standing
from benchmarks.marl.summary import Record
from benchmarks.marl.words import CLOSING, CONSTANT, OPENING, READING, SHOWN_NAMES
from league.experiment.statistics import Interval, interval
from league.seeds import generator

SOLVER_MODES = tuple(name for name, environment in ENVIRONMENTS.items() if environment.judged and environment.fixed)
"""Of the token game: those in which the solvers alone are measured, so that scores are of one kind."""
SOLVER_ROW = "both modes of solvers"
_HEADER = (
    "environment",
    "algorithm",
    "seeds",
    "mean over seeds, 95 % interval",
    "IQM, 95 % interval",
    "above random play",
    "above the first legal action",
    "seconds a run",
    "by seed",
)
_COLUMNS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the table."""

    environment: str
    algorithm: str
    mean: Interval
    """Of the seeds' scores; with several environments, of each seed's mean over them."""
    middle: Middle
    seconds: float
    """Of a run, their mean."""
    scores: tuple[float, ...]
    """By seed."""


def make_rows(records: Sequence[Record]) -> list[Row]:
    """Return a row for each environment and algorithm, and for those that played both modes of `SOLVER_MODES`."""
    rows = []
    for name in ENVIRONMENTS:
        for algorithm in (*REFERENCES, *ALGORITHMS):
            if found := _scores(records, name, algorithm):
                rows.append(_row(records, name, algorithm, [found]))
    for algorithm in (*REFERENCES, *ALGORITHMS):
        found_by_mode = [_scores(records, name, algorithm) for name in SOLVER_MODES]
        if all(found.keys() == found_by_mode[0].keys() and found for found in found_by_mode):
            rows.append(_row(records, SOLVER_ROW, algorithm, found_by_mode))
    return rows


def _scores(records: Sequence[Record], environment: str, algorithm: str) -> dict[int, float]:
    """Return the scores by seed, in the order of the seeds."""
    own = [record for record in records if (record.environment, record.algorithm) == (environment, algorithm)]
    return {record.seed: record.score for record in sorted(own, key=lambda record: record.seed)}


def _row(records: Sequence[Record], name: str, algorithm: str, strata: Sequence[Mapping[int, float]]) -> Row:
    by_seed = [float(np.mean([stratum[seed] for stratum in strata])) for seed in strata[0]]
    played = (name,) if name in ENVIRONMENTS else SOLVER_MODES
    seconds = [record.seconds for record in records if record.environment in played and record.algorithm == algorithm]
    return Row(
        environment=name,
        algorithm=algorithm,
        mean=interval(by_seed),
        middle=bootstrap([list(stratum.values()) for stratum in strata], generator(0, 0, "marl", name, algorithm)),
        seconds=float(np.mean(seconds)),
        scores=tuple(by_seed),
    )


def document(records: Sequence[Record], picture: str) -> str:
    """Return the text of docs/marl.md.

    Args:
        records: Of all runs.
        picture: Where the plot lies, as the document names it.
    """
    rows, budget = make_rows(records), _budget(records)
    parts = [
        OPENING,
        _environments(),
        "## Results",
        _findings(rows),
        _table(rows),
        f"![learning curves of all runs]({picture})",
        READING.format(**budget),
        CLOSING.format(**budget),
    ]
    return "\n\n".join(parts) + "\n"


def _budget(records: Sequence[Record]) -> Mapping[str, object]:
    """Return the numbers that the words name, which all runs of a summary share."""
    used = next((record.settings for record in records if record.algorithm in ALGORITHMS), asdict(TrainingConfig()))
    return {**used, "total_steps": used["batches"] * used["games"] * used["steps"], "hidden": HIDDEN}


def _findings(rows: Sequence[Row]) -> str:
    """Return how the algorithms stand to the references, an environment a line, and what the token game comes to."""
    lines = []
    for name in ENVIRONMENTS:
        parts = []
        for reference in REFERENCES:
            told: dict[str, list[str]] = {}
            for algorithm, found in _standings(rows, name, reference).items():
                told.setdefault(found, []).append(SHOWN_NAMES[algorithm])
            if told:
                verdicts = "; ".join(f"{', '.join(names)}: {found}" for found, names in told.items())
                parts.append(f"above {SHOWN_NAMES[reference]}? {verdicts}.")
        if parts:
            lines.append(f"- `{name}`: {' '.join(parts)}")
    judged = [name for name, environment in ENVIRONMENTS.items() if environment.judged]
    beyond = [found for name in judged for found in _standings(rows, name, FIRST).values()]
    if beyond and "yes" not in beyond:
        lines += ["", CONSTANT]
    return "\n".join(lines)


def _standings(rows: Sequence[Row], environment: str, reference: str) -> dict[str, Standing]:
    """Return by algorithm how it stands to a reference; nothing where that has not run."""
    own = {row.algorithm: row.mean for row in rows if row.environment == environment}
    if reference not in own:
        return {}
    return {name: standing(mean, own[reference]) for name, mean in own.items() if name not in REFERENCES}


def _environments() -> str:
    lines = ["| environment | what it is | score of an episode |", "|---" * 3 + "|"]
    lines += [_line((f"`{own.name}`", own.meaning, own.score)) for own in ENVIRONMENTS.values()]
    return "\n".join(lines)


def _table(rows: Sequence[Row]) -> str:
    lines = [_line(_HEADER), "|---" * len(_HEADER) + "|"]
    for row in rows:
        above = [_standings(rows, row.environment, reference).get(row.algorithm, "") for reference in REFERENCES]
        ends = "" if row.mean.count < 2 else f", {row.mean.low:.2f} to {row.mean.high:.2f}"
        lines.append(
            _line(
                (
                    f"`{row.environment}`" if row.environment in ENVIRONMENTS else row.environment,
                    SHOWN_NAMES[row.algorithm],
                    str(row.mean.count),
                    f"{row.mean.mean:.2f}{ends}",
                    f"{row.middle.mean:.2f}, {row.middle.low:.2f} to {row.middle.high:.2f}",
                    *above,
                    f"{row.seconds:.0f}",
                    " ".join(f"{score:.2f}" for score in row.scores),
                )
            )
        )
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def draw(records: Sequence[Record], path: Path) -> None:
    """Draw the learning curves, a panel an environment, into an SVG or PNG file."""
    from matplotlib import rc_context  # an extra: whoever only makes runs needs none
    from matplotlib.figure import Figure

    names = [name for name in ENVIRONMENTS if any(record.environment == name for record in records)]
    lines = -(-len(names) // _COLUMNS)
    figure = Figure(figsize=(9, 2.6 * lines + 0.7), layout="constrained")
    panels = figure.subplots(lines, _COLUMNS, squeeze=False).flatten()
    handles = {}
    for panel, name in zip(panels, names, strict=False):
        for place, algorithm in enumerate(ALGORITHMS):
            own = [record for record in records if (record.environment, record.algorithm) == (name, algorithm)]
            for record in own:
                panel.plot(*np.transpose(record.curve), color=f"C{place}", linewidth=0.4, alpha=0.4)
            if own:
                length = min(len(record.curve) for record in own)
                mean = np.mean([record.curve[:length] for record in own], axis=0)
                (handles[SHOWN_NAMES[algorithm]],) = panel.plot(*mean.T, color=f"C{place}", linewidth=1.5)
        for reference, dashes in ((RANDOM, ":"), (FIRST, "--")):
            if found := _scores(records, name, reference):
                level = float(np.mean(list(found.values())))
                handles[SHOWN_NAMES[reference]] = panel.axhline(level, color="black", linestyle=dashes, linewidth=1)
        panel.set_title(name, fontsize=9)
        panel.tick_params(labelsize=8)
        panel.set_ylabel(ENVIRONMENTS[name].score, fontsize=8)
    for panel in panels[len(names) :]:
        panel.set_axis_off()
    figure.supxlabel("steps of all games", fontsize=9)
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    with rc_context({"svg.hashsalt": path.name}):  # the same picture has the same names inside
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
