"""What a report is made of: the columns of a run's tables that it needs, its settings and its metrics.

Owns the reading. Owns no numbers: those are worked out of these tables in `measures`, `lineages` and `browser`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml

from league.lineage import side_of
from league.storage import (
    CONFIG,
    VERSIONS,
    committed_steps,
    part,
    read_metrics,
    read_object,
    read_table,
    storage_errors,
)
from league.types import Row, Side

PROBLEM_COLUMNS = (
    "proposal_id",
    "step",
    "match_id",
    "task",
    "teacher_id",
    "program",
    "inputs",
    "outputs",
    "n_visible",
    "message",
    "valid",
    "invalid_reason",
    "solve_rate",
    "ast_depth",
    "cyclomatic",
    "lines",
    "variables",
    "cell_id",
)
MATCH_COLUMNS = ("match_id", "step", "kind", "teacher_id", "student_id", "observed", "n_problems")
RATING_COLUMNS = ("step", "member_id", "mu", "sigma", "event")
LINEAGE_COLUMNS = ("child_id", "step", "slot", "parents", "operator", "parameters")
ROLLOUT_COLUMNS = ("step", "match_id", "role", "member_id", "task", "reward", "verdict")
ATTEMPT_COLUMNS = ("group_id", "role", "seat", "member_id", "verdict", "reward", "completion")


@dataclass(frozen=True)
class RunTables:
    """One run, as far as a report goes."""

    path: Path
    config: Mapping[str, Any]
    """Of `config.yaml`; empty where it cannot be read as settings."""
    versions: Mapping[str, Any]
    proposals: pa.Table
    """With `PROBLEM_COLUMNS`: all problems of the run, valid or not."""
    problems: pa.Table
    """Those of matches among the living, as metrics are of them alone."""
    rollouts: pa.Table
    """With `ROLLOUT_COLUMNS`, likewise."""
    matches: pa.Table
    ratings: pa.Table
    lineage: Sequence[Row]
    metrics: Sequence[Mapping[str, Any]]
    """Lines of `metrics.jsonl`; the founding has one too."""
    last_step: int

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.path.resolve().name

    @cached_property
    def births(self) -> Mapping[str, Row]:
        """Rows of the lineage by member, in the order of births."""
        return {row["child_id"]: row for row in self.lineage}

    def members(self, side: Side) -> list[str]:
        """Return all that ever were on a side, in the order of births."""
        return [name for name in self.births if side_of(name) is side]


def read_run(run: Path) -> RunTables:
    """Read a run folder; the run may still be going on.

    Raises:
        StorageError: No run folder, or one that is damaged.
    """
    steps = committed_steps(run)
    matches = read_table(run, "matches", MATCH_COLUMNS)
    proposals = read_table(run, "problems", PROBLEM_COLUMNS)
    return RunTables(
        path=run,
        config=_settings(run),
        versions=read_object(run / VERSIONS),
        proposals=proposals,
        problems=_among_the_living(proposals, matches),
        rollouts=_among_the_living(read_table(run, "rollouts", ROLLOUT_COLUMNS), matches),
        matches=matches,
        ratings=read_table(run, "ratings", RATING_COLUMNS),
        lineage=cast(list[Row], read_table(run, "lineage", LINEAGE_COLUMNS).to_pylist()),
        metrics=read_metrics(run),
        last_step=max(steps, default=0),
    )


def read_attempts(run: Path, proposals: Collection[str]) -> list[Row]:
    """Return `ATTEMPT_COLUMNS` of all attempts at the named proposals, step by step: completions may be large.

    Raises:
        StorageError: As for `read_run`.
    """
    wanted = [("group_id", "in", sorted(proposals)), ("role", "==", "solver")]
    rows: list[Row] = []
    for step in committed_steps(run) if proposals else []:
        path = part(run, "rollouts", step)
        with storage_errors(f"cannot read step {step} of table 'rollouts' in {str(run)!r}"):
            if path.is_file():
                rows += pq.read_table(path, columns=list(ATTEMPT_COLUMNS), filters=wanted).to_pylist()
    return rows


def _among_the_living(rows: pa.Table, matches: pa.Table) -> pa.Table:
    """Leave out matches against past members and cross tables."""
    living = matches.filter(pc.is_in(matches["kind"], pa.array(["train", "self_play"])))["match_id"]
    return rows.filter(pc.is_in(rows["match_id"], living.combine_chunks()))


def _settings(run: Path) -> Mapping[str, Any]:
    with storage_errors(f"cannot read {CONFIG} in {str(run)!r}"):
        text = (run / CONFIG).read_text(encoding="utf-8")
    try:
        settings = yaml.safe_load(text)
    except yaml.YAMLError:
        settings = None  # a report says less without them, and shows the numbers all the same
    return settings if isinstance(settings, dict) else {}
