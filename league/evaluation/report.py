"""What an evaluation comes to: the paper's table, one object for programs, and a Parquet file of all answers.

Owns layout and columns. Owns no printing (`display`) and no statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from league import seeds
from league.durable import write
from league.evaluation.players import Group
from league.evaluation.runner import Result
from league.evaluation.statistics import Estimate, estimate, mean_scores, pass_at_k
from league.schemas import storable

ANSWERS_VERSION = "1"
"""`schema_version` of the answers' file."""
_COLUMNS = pa.schema(
    [
        pa.field("suite", pa.string(), nullable=False),
        pa.field("question_id", pa.string(), nullable=False),
        pa.field("player", pa.string(), nullable=False),
        pa.field("group", pa.string(), nullable=False),
        pa.field("sample", pa.int32(), nullable=False),
        pa.field("correct", pa.bool_(), nullable=False),
        pa.field("detail", pa.string(), nullable=False),
        pa.field("finish_reason", pa.string(), nullable=False),
        pa.field("tokens", pa.int32(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
    ],
    metadata={"schema_version": ANSWERS_VERSION},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One row of the table."""

    suite: str
    k: int
    who: str
    """`base`, `population`, `best member`, `weakest member`, `baseline`, `population - baseline`."""
    name: str
    """The player, where it is one."""
    value: Estimate


def summarise(results: Sequence[Result], ks: Sequence[int], seed: int) -> list[Line]:
    """Return the table of one suite: for each k the base, the population, its best and weakest member, the baseline.

    Best and weakest are chosen by the same scores that are shown for them, so that the best is flattered by chance.

    Args:
        results: All answers to the suite's questions.
        ks: Draws, each at most the number of samples.
        seed: Root of the bootstrap's draws.
    """
    return [line for k in ks for line in _lines(results, k, seed)]


def _lines(results: Sequence[Result], k: int, seed: int) -> list[Line]:
    suite = results[0].suite
    scores = {group: _scores(results, group, k) for group in ("base", "member", "baseline")}
    shown: list[tuple[str, str, NDArray[np.float64]]] = [("base", name, s) for name, s in scores["base"].items()]
    members, baseline = scores["member"], scores["baseline"]
    if members:
        order = sorted(members, key=lambda name: float(members[name].mean()))
        shown.append(("population", "", mean_scores(list(members.values()))))
        if len(members) > 1:
            shown += [("best member", order[-1], members[order[-1]]), ("weakest member", order[0], members[order[0]])]
    if baseline:
        shown.append(("baseline", "", mean_scores(list(baseline.values()))))
    if members and baseline:
        difference = mean_scores(list(members.values())) - mean_scores(list(baseline.values()))
        shown.append(("population - baseline", "", difference))
    # The same draws for every row: questions that are easy are easy for all.
    return [
        Line(suite=suite, k=k, who=who, name=name, value=estimate(one, seeds.generator(seed, 0, "bootstrap", suite)))
        for who, name, one in shown
    ]


def _scores(results: Sequence[Result], group: Group, k: int) -> dict[str, NDArray[np.float64]]:
    """Return pass@k [Q] of each player of a group."""
    counts: dict[str, dict[str, list[bool]]] = {}
    for result in results:
        if result.player.group == group:
            by_question = counts.setdefault(result.player.name, {})
            by_question.setdefault(result.question_id, []).append(result.grade.correct)
    return {
        name: np.array([pass_at_k(len(grades), sum(grades), k) for grades in by_question.values()])
        for name, by_question in counts.items()
    }


def table(lines: Sequence[Line]) -> list[str]:
    """Return the table as lines of text: percent, with the interval behind."""
    head = f"{'suite':14s} {'pass@':>5s}  {'who':38s} {'%':>6s}   95 % interval"
    body = [
        f"{line.suite:14s} {line.k:>5d}  {_who(line):38s} "
        f"{100 * line.value.mean:6.1f}   {100 * line.value.low:.1f} to {100 * line.value.high:.1f}"
        for line in lines
    ]
    return [head, *body]


def _who(line: Line) -> str:
    return line.who if line.name in ("", line.who) else f"{line.who} ({line.name})"


def as_object(lines: Sequence[Line]) -> list[Mapping[str, object]]:
    """Return the table for `--json`; shares, not percent."""
    return [
        {
            "suite": line.suite,
            "k": line.k,
            "who": line.who,
            "name": line.name,
            "mean": line.value.mean,
            "low": line.value.low,
            "high": line.value.high,
        }
        for line in lines
    ]


def write_answers(path: Path, results: Sequence[Result]) -> None:
    """Write all answers as one Parquet file.

    Raises:
        OSError: The disk failed.
    """
    columns = {
        "suite": [result.suite for result in results],
        "question_id": [result.question_id for result in results],
        "player": [result.player.name for result in results],
        "group": [result.player.group for result in results],
        "sample": [result.sample for result in results],
        "correct": [result.grade.correct for result in results],
        "detail": [result.grade.detail for result in results],
        "finish_reason": [result.finish_reason for result in results],
        "tokens": [result.tokens for result in results],
        "text": [storable(result.text) for result in results],
    }
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pydict(columns, schema=_COLUMNS), sink, compression="zstd")
    write(path, sink.getvalue().to_pybytes())
