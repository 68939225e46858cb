"""The document: every claim with statistic, interval and verdict, and the curves of all arms.

Owns words and pictures. Every number comes from the records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import yaml

from league.experiment.arms import ARMS
from league.experiment.claims import CLAIMS, RATIO, Finding, find
from league.experiment.summary import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curve = np.ndarray[tuple[int], np.dtype[np.float64]]

TITLES = {
    1: "Self-calibration of the single agent",
    2: "The arms race of the population",
    3: "Coverage",
    4: "What members can do",
    5: "Training reward",
    6: "Wall clock",
    7: "What evolution is good for",
    8: "Reward schemes",
    9: "Changed settings, on other seeds",
}
PLOTTED = (
    ("solve_rate", "solve rate"),
    ("base_solve_rate", "solve rate of the frozen base"),
    ("ast_depth", "depth of the syntax tree"),
    ("coverage", "coverage"),
    ("student_reward", "students' reward"),
    ("worked", "worked answers"),
)
_SMOOTH = 5
_OPENING = """The paper shows it once, at 7B, with one seed. Here its claims are put to the test on nano: several seeds,
intervals, baselines matched in compute both ways, ablations. `python -m league.experiment coevolution` made the runs
and this page. A claim is *seen* where the 95 % interval of its mean over seeds (Student's t) lies wholly on the side
that it claims, *reversed* where it lies wholly on the other."""
_READING = """How to read it:

- Every claim has its own interval, and nothing is corrected for their number: of twenty that are false about one is
  *seen* or *reversed* by chance. With three seeds an interval is 2.5 standard deviations wide to either side.
- *Not seen* is not *shown to be false*: the interval tells which sizes are left.
- The held-out suite is solved greedily, by all members, teachers too; those of a side that learn only to propose are
  better at solving than the base only as far as one carries over to the other.
- Evolution also happens after the last step, since a run may be made longer. Its children have not learned when they
  are measured: one in four of each side. Groups 4 and 7 tell students with and without that one.
- Solve rates of the arms with one teacher's proposals are means over a quarter of the problems, so they swing more by
  chance; hence the comparisons with `single-agent-total`.
- Seconds are of cores that other work shared, by turns more and less; `docs/training.md` has the paired measurement.
- What led to which claim, and what was added after seeing the first seeds, is in [log.md](log.md)."""
_SETTINGS = """All runs share these, by the names of a run's `config.yaml`; what they do not share is what the arms are
about. They were fixed by a pilot on other seeds before the first of these runs: [log.md](log.md) tells what was tried
and dropped."""
_CONCLUSION = "log.md#2026-12-04-what-the-experiment-came-to"
_ARM_HEADER = "| arm | what it is | seeds | steps | tokens a step | held-out, mean of members | weakest |"
_CLAIM_HEADER = "| | of | mean | 95 % interval | seeds | by seed | verdict |"


def document(records: Sequence[Record], picture: str) -> str:
    """Return the text of docs/experiment.md.

    Args:
        records: Of all runs.
        picture: Where the plot lies, as the document names it.
    """
    findings = [find(claim, records) for claim in CLAIMS]
    parts = [
        "# Does a population escape self-calibration?",
        _OPENING,
        _tally(findings),
        _arms(records),
        f"![curves of all arms]({picture})",
        "Thin lines are runs, thick ones their mean, both as means of five steps each.",
        _READING,
    ]
    for group, told in groupby(findings, key=lambda finding: finding.claim.group):
        parts += [f"## {group}. {TITLES[group]}", _table(list(told))]
    parts += ["## Settings", _SETTINGS, f"```yaml\n{_settings(records)}```"]
    return "\n\n".join(parts) + "\n"


def _tally(findings: Sequence[Finding]) -> str:
    told = Counter(finding.verdict or "not run" for finding in findings if finding.claim.claimed is not None)
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(told.items()))
    return f"Of {told.total()} claims: {verdicts}. [log.md]({_CONCLUSION}) says what that comes to."


def _arms(records: Sequence[Record]) -> str:
    lines = [_ARM_HEADER, "|---" * 7 + "|"]
    for arm in ARMS.values():
        own = sorted((record for record in records if record.arm == arm.name), key=lambda record: record.seed)
        if own:
            tokens = np.nanmean([np.nanmean(record.numbers("tokens")) for record in own])
            mean = np.mean([np.mean(record.scores()) for record in own])
            least = np.mean([min(record.scores()) for record in own])
            seeds = ", ".join(str(record.seed) for record in own)
            steps = "/".join(sorted({str(record.steps) for record in own}))
            name = f"`{arm.name}`"
            lines.append(_row((name, arm.meaning, seeds, steps, f"{tokens:,.0f}", f"{mean:.1%}", f"{least:.1%}")))
    return "\n".join(lines)


def _settings(records: Sequence[Record]) -> str:
    first = records[0].settings
    shared = {
        name: value for name, value in first.items() if all(record.settings.get(name) == value for record in records)
    }
    return str(yaml.safe_dump(shared, sort_keys=False, width=120))


def _table(findings: Sequence[Finding]) -> str:
    lines = [_CLAIM_HEADER, "|---" * 7 + "|"]
    for finding in findings:
        claim, found = finding.claim, finding.interval
        of = (" by " if claim.unit == RATIO else " less ").join(f"`{arm}`" for arm in claim.arms)
        if found is None:
            lines.append(_row((claim.text, of, "", "", "0", "", "not run")))
            continue
        numbers = ", ".join(_number(value, claim.unit) for value in finding.by_seed.values())
        ends = "" if found.count < 2 else f"{_number(found.low, claim.unit)} to {_number(found.high, claim.unit)}"
        mean, told = _number(found.mean, claim.unit, named=True), finding.verdict or "nothing claimed"
        lines.append(_row((claim.text, of, mean, ends, str(found.count), numbers, told)))
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(value: float, unit: str, *, named: bool = False) -> str:
    if unit == "share":
        return f"{100 * value:+.1f}" + (" %" if named else "")
    return f"{value:.2f}" if unit == RATIO else f"{value:+.2f}" + (f" {unit}" if named else "")


def draw(records: Sequence[Record], path: Path) -> None:
    """Draw the curves of all arms into an SVG or PNG file: a row a series, a column a length of runs."""
    from matplotlib import rc_context  # an extra: whoever only runs arms needs none
    from matplotlib.figure import Figure

    arms = [name for name in ARMS if any(record.arm == name for record in records)]
    lengths = sorted({record.steps for record in records})
    size = (4.5 * max(2, len(lengths)), 2 * len(PLOTTED) + 0.6)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(PLOTTED), len(lengths), sharex="col", sharey="row", squeeze=False)
    for row, (name, title) in zip(panels, PLOTTED, strict=True):
        for panel, length in zip(row, lengths, strict=True):
            for place, arm in enumerate(arms):
                own = [record for record in records if (record.arm, record.steps) == (arm, length)]
                curves = [_means(record.numbers(name)) for record in own if name in record.series]
                _plot(panel, [curve for curve in curves if not np.isnan(curve).all()], color=f"C{place}", label=arm)
            panel.tick_params(labelsize=8)
        row[0].set_ylabel(title, fontsize=9)
    for panel, length in zip(panels[-1], lengths, strict=True):
        panel.set_xlabel(f"step of {length}", fontsize=9)
    lines = {line.get_label(): line for panel in panels.flat for line in panel.get_lines()}
    told = [arm for arm in arms if arm in lines]
    figure.legend([lines[arm] for arm in told], told, loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    with rc_context({"svg.hashsalt": path.name}):  # the same picture has the same names inside
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _plot(panel: Axes, curves: Sequence[Curve], *, color: str, label: str) -> None:
    if not curves:
        return
    middles = np.arange(len(curves[0])) * _SMOOTH + (_SMOOTH + 1) / 2
    for curve in curves:
        panel.plot(middles, curve, color=color, linewidth=0.4, alpha=0.35)
    panel.plot(middles, np.mean(curves, axis=0), color=color, linewidth=1.5, label=label)


def _means(curve: Curve) -> Curve:
    """Return the means of `_SMOOTH` steps each, gaps filled by straight lines."""
    places = np.arange(len(curve))
    there = ~np.isnan(curve)
    if not there.any():
        return curve
    filled = np.interp(places, places[there], curve[there])
    whole = max(1, len(filled) // _SMOOTH)
    return np.array([part.mean() for part in np.array_split(filled[: whole * _SMOOTH], whole)])
