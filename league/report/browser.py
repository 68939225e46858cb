"""The problems that a report shows one by one: which ones, how much of each, and how their programs are coloured.

Pure, and the one place through which text of models gets into a report. It leaves here with everything unprintable
spelt out and cut to a bound; the page puts it in as text, never as markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import numpy as np
import pyarrow as pa
from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType

from league.escaping import printable
from league.report.embedding import embedded
from league.report.measures import STRUCTURE
from league.types import Row

MAX_CHARS = 2000
"""Of one text that is shown, in characters; the rest is cut, and the page says so."""
MAX_BYTES = 6_000_000
"""Of all problems of a report together, as they are embedded."""

_MOST = 16
"""Inputs, outputs and attempts shown of one problem."""
_CLASSES = ((Keyword, "k"), (Name.Builtin, "b"), (Name.Function, "f"), (String, "s"), (Number, "n"), (Comment, "c"))
_LEXER = PythonLexer(stripnl=False, ensurenl=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The problems that are embedded."""

    rows: Sequence[Row]
    total: int
    """Proposals of the run."""


def chosen(problems: pa.Table, limit: int) -> pa.Table:
    """Return at most `limit` proposals, valid or not, evenly spread over the run, in order.

    Raises:
        ValueError: `limit` is below 0.
    """
    if limit < 0:
        raise ValueError(f"`limit` must be at least 0, got {limit!r}")
    total = problems.num_rows
    if total <= limit:
        return problems
    return problems.take(pa.array(np.linspace(0, total - 1, limit).round().astype(np.int64)))


def shown(problems: pa.Table, attempts: Sequence[Row], *, total: int, max_bytes: int = MAX_BYTES) -> Shown:
    """Return what the page needs of each chosen problem; fewer, evenly thinned, where they take too much room.

    Args:
        problems: As `chosen` gave them.
        attempts: At these, in any order.
        total: Proposals of the run.
        max_bytes: Of all of them.
    """
    by_proposal = {
        name: list(rows)
        for name, rows in groupby(
            sorted(attempts, key=lambda row: (row["group_id"], row["seat"])), lambda row: row["group_id"]
        )
    }
    rows = [_entry(row, by_proposal.get(row["proposal_id"], ())) for row in problems.to_pylist()]
    sizes = np.array([len(embedded(row).encode()) + 1 for row in rows], dtype=np.int64)
    if sizes.sum() > max_bytes:
        keep = int(len(rows) * max_bytes / sizes.sum())
        order = np.linspace(0, len(rows) - 1, keep).round().astype(np.int64) if keep else np.zeros(0, np.int64)
        within = order[np.cumsum(sizes[order]) <= max_bytes]
        rows = [rows[place] for place in within]
    return Shown(rows=rows, total=total)


def _entry(row: Row, attempts: Sequence[Row]) -> Row:
    program = cut(row["program"] or "")
    return {
        "id": cut(row["proposal_id"]),
        "step": row["step"],
        "task": row["task"],
        "teacher": row["teacher_id"],
        "valid": row["valid"],
        "reason": cut(row["invalid_reason"] or ""),
        "rate": None if row["solve_rate"] is None else round(row["solve_rate"], 4),
        "structure": [row[name] for name in STRUCTURE],
        "program": program,
        "colours": colours(program),
        "inputs": [cut(text) for text in row["inputs"][:_MOST]],
        "outputs": [cut(text) for text in row["outputs"][:_MOST]],
        "visible": row["n_visible"],
        "message": cut(row["message"]),
        "attempts": [
            [one["member_id"], cut(one["verdict"]), one["reward"], cut(one["completion"])] for one in attempts[:_MOST]
        ],
    }


def cut(text: str, limit: int = MAX_CHARS) -> str:
    """Return a text with what is unprintable spelt out, and an ellipsis in the place of what is beyond the limit."""
    safe = printable(text[: limit + 1], keep_lines=True)
    return safe if len(safe) <= limit else safe[:limit] + "\u2026"


@lru_cache(maxsize=4096)
def colours(program: str) -> str:
    """Return how a program is coloured: runs of characters, each a letter (or `-`) and its length, such as `k3-1f1`."""
    runs: list[tuple[str, int]] = []
    for _, token, text in _LEXER.get_tokens_unprocessed(program):
        letter = _letter(token)
        if runs and runs[-1][0] == letter:
            runs[-1] = letter, runs[-1][1] + len(text)
        else:
            runs.append((letter, len(text)))
    return "".join(f"{letter}{length}" for letter, length in runs)


@lru_cache
def _letter(token: _TokenType) -> str:
    if token is Operator.Word:
        return "k"
    return next((letter for kind, letter in _CLASSES if token in kind), "-")
