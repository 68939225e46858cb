"""Ratings worked out again from the matches are the engine's, whatever the rules; other rules are found out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from league.ratings import RatingRules
from league.replay import Replay
from league.storage import read_rows

RULES = {
    "paper": RatingRules(),
    "attempts": RatingRules(outcome="attempts", attempts=4),
    "inflated": RatingRules(sigma_inflation=0.7),
    "openskill": RatingRules(engine="openskill", outcome="attempts", attempts=2, sigma_inflation=0.3),
}


def faults(run: Any, rules: RatingRules) -> list[str]:
    """Replay all steps of a run folder."""
    replay = Replay(rules)
    ratings, matches = read_rows(run.path, "ratings"), read_rows(run.path, "matches")
    lines: list[str] = []
    for step in range(max(row["step"] for row in ratings) + 1):
        now = [[row for row in rows if row["step"] == step] for rows in (ratings, matches)]
        lines += replay.step(*now)
    return lines


@pytest.mark.parametrize("name", RULES)
def test_the_engines_ratings_follow_from_its_matches(make_league: Any, name: str) -> None:
    if name == "openskill":
        pytest.importorskip("openskill", reason="needs the package openskill")
    league, run = make_league(rating=RULES[name])
    league.run()
    assert faults(run, RULES[name]) == []


def test_other_rules_are_found_out(make_league: Any) -> None:
    rules = RULES["inflated"]
    league, run = make_league(rating=rules)
    league.run()
    assert faults(run, replace(rules, sigma_inflation=0.6))
    assert faults(run, replace(rules, outcome="attempts", attempts=4))
