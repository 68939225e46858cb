"""One league on a classic game, from its settings to what is told of it.

Owns the rules that the engine is given and the measuring on the way. Owns no printing.
"""

from __future__ import annotations

import json
import logging
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from league.classic.arena import ClassicArena
from league.classic.games import load_game
from league.classic.hall import PastMembers
from league.classic.measures import nash_convs, payoff_report
from league.classic.options import GameChoice, Settings
from league.classic.references import references
from league.engine import League
from league.operators import find_operator, usable
from league.rules import Breeding, Rules
from league.schemas import SCHEMA_VERSION
from league.storage import RunFolder
from league.types import Recorder, Row, StepReport

_LOG = logging.getLogger(__name__)

RESULT_FILE = "classic.json"
"""What is told of the league, in its run folder."""


class Unkept:
    """A recorder that keeps nothing."""

    def commit(self, step: int, tables: Mapping[str, Sequence[Row]], metrics: Mapping[str, Any]) -> None:
        """Forget the step."""

    @contextmanager
    def adapters(self) -> Iterator[Path]:
        """Give a folder that goes away at once."""
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)

    @contextmanager
    def state(self, step: int, needs: Iterable[str] = ()) -> Iterator[Path]:
        """Give a folder that goes away at once."""
        del step, needs
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)

    @contextmanager
    def saved(self) -> Iterator[Path]:
        """Give a folder in which nothing is."""
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)


class Curve:
    """A watcher that measures NashConv now and then, and says how far the league is."""

    def __init__(self, arena: ClassicArena, *, every: int, last: int, say: Callable[[str], None]) -> None:
        """Measure every so many steps, and after the last."""
        self.rows: list[dict[str, float]] = []
        """`step`, `seconds` since the founding, measuring included, and `measures.nash_convs`."""
        self._arena, self._every, self._last, self._say = arena, every, last, say
        self._began = time.perf_counter()

    def committed(self, report: StepReport) -> None:
        """Measure if it is time."""
        if report.step % self._every == 0 or report.step == self._last:
            told = nash_convs(self._arena)
            seconds = time.perf_counter() - self._began
            entropy = {"entropy": report.metrics["entropy"]} if report.step else {}
            self.rows.append({"step": report.step, "seconds": round(seconds, 2)} | entropy | told)
            exact = f", NashConv {told['mixture']:.3f}" if "mixture" in told else ""
            self._say(f"step {report.step}/{self._last}, {seconds:.0f} s{exact}")


def play_league(
    name: GameChoice,
    settings: Settings,
    *,
    seed: int,
    measurements: int,
    out: Path | None = None,
    say: Callable[[str], None] = _LOG.info,
) -> dict[str, Any]:
    """Play one league and return what is to be told of it.

    Args:
        name: The game.
        settings: Of the league.
        seed: Root of all randomness.
        measurements: How often NashConv is measured, at least.
        out: Run folder to be made; None keeps nothing.
        say: Hears at each measurement how far the league is.

    Raises:
        StorageError: The run folder cannot be made or written.
    """
    began = time.perf_counter()
    arena = ClassicArena(load_game(name), settings, seed=seed)
    curve = Curve(arena, every=max(1, settings.steps // measurements), last=settings.steps, say=say)
    run = None if out is None else _folder(out, arena, settings)
    recorder: Recorder = Unkept() if run is None else run
    try:
        past = PastMembers(arena, settings, seed=seed)
        league = League(make_rules(settings, seed=seed), arena, recorder, curve, past)
        league.run()
        told = {
            "seed": seed,
            "curve": curve.rows,
            "payoff": payoff_report(arena, league.members, step=settings.steps),
            "references": references(arena, league.members, league.ratings, seed=seed),
            "ratings": {member.member_id: asdict(league.ratings[member.member_id]) for member in league.members},
            "seconds": round(time.perf_counter() - began, 2),
        }
        if out is not None:
            (out / RESULT_FILE).write_text(json.dumps(told) + "\n", encoding="utf-8")
    finally:
        if run is not None:
            run.close()
    return told


def make_rules(settings: Settings, *, seed: int) -> Rules:
    """Return the engine's rules: the paper's operators, and of matchmaking the scheme's part among the present."""
    chosen = {name: find_operator(name) for name, used in usable(()).items() if used}
    evolves = settings.evolve_every > 0
    return Rules(
        teachers=settings.teachers,
        students=settings.students,
        steps=settings.steps,
        seed=seed,
        matchmaking="uniform" if settings.opponents == "psro" else settings.opponents,
        exploration=settings.exploration,
        evolve_every=settings.evolve_every if evolves else None,
        evolve_last=False,  # its children would be measured before they have learned
        operators={
            name: Breeding(arity=operator.arity, parameters=operator.parameters) for name, operator in chosen.items()
        },
        # Nobody goes before the next evolution: a child is to be judged by what it has learned.
        min_age=settings.evolve_every,
        payoff_every=0,
        save_every=max(1, settings.steps),
    )


def _folder(out: Path, arena: ClassicArena, settings: Settings) -> RunFolder:
    versions = {
        "schema_version": SCHEMA_VERSION,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "base": arena.base_name,
    }
    config = json.dumps({"game": arena.game.name, **asdict(settings)}, indent=2) + "\n"
    return RunFolder.create(out, run_id=out.name, config=config, versions=versions)
