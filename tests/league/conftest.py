"""Leagues of rock, paper, scissors, and one verifier for all tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rock_paper_scissors import Reports, RockPaperScissors, make_rules

from league.engine import League
from league.storage import RunFolder
from populora_env.verifier import Verifier

LeagueMaker = Callable[..., tuple[League, RunFolder]]


@pytest.fixture
def make_league(tmp_path: Path) -> LeagueMaker:
    """Return a maker of leagues of rock, paper, scissors, each with a run folder of its own."""

    def make(name: str = "run", *, watcher: Any = None, arena: Any = None, **changes: Any) -> tuple[League, RunFolder]:
        rules = make_rules(**changes)
        run = RunFolder.create(tmp_path / name, run_id=name, config="", versions={})
        return League(rules, arena or RockPaperScissors(rules.seed), run, watcher or Reports()), run

    return make


@pytest.fixture(scope="session")
def verifier() -> Iterator[Verifier]:
    """One real verifier for all tests."""
    with Verifier() as running:
        yield running
