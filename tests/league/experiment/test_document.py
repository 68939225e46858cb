"""The document: every claim stands in it, with numbers that follow from the records."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from finished_runs import make_record

from league.experiment.claims import CLAIMS, find
from league.experiment.document import TITLES, document, draw

RECORDS = [make_record("single-agent", seed, start=0.2, end=0.6, score=0.3) for seed in (1, 2)]
RECORDS += [make_record("4T+4S", seed, score=0.7) for seed in (1, 2)]


def test_every_claim_has_a_row() -> None:
    text = document(RECORDS, "curves.svg")
    for claim in CLAIMS:
        assert f"| {claim.text} |" in text
    for group, title in TITLES.items():
        assert f"## {group}. {title}" in text
    assert "![curves of all arms](curves.svg)" in text
    assert "| `4T+4S` | the population, with evolution | 1, 2 | 40 | 1,000 | 45.0% | 20.0% |" in text
    row = next(line for line in text.splitlines() if line.startswith("| Members solve more than the single agent |"))
    assert row.endswith("| +20.0 % | +20.0 to +20.0 | 2 | +20.0, +20.0 | seen |")
    told = [find(claim, RECORDS).verdict or "not run" for claim in CLAIMS if claim.claimed is not None]
    assert f"Of {len(told)} claims: {told.count('not run')} not run, " in text
    assert f" {told.count('seen')} seen." in text
    assert "| Evolution helps | `4T+4S` less `4T+4S-no-evolution` |  |  | 0 |  | not run |" in text


def test_settings_are_those_that_all_runs_share() -> None:
    other = make_record("4T+4S", 3, settings=RECORDS[0].settings | {"game.rewards.scheme": "variance"})
    shared = document([*RECORDS, other], "curves.svg").partition("```yaml\n")[2]
    assert "learn.lora_rank: 8\nplay.style: compact\n" in shared
    assert "game.rewards.scheme" not in shared


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="needs matplotlib")
def test_the_picture_is_the_same_for_the_same_records(tmp_path: Path) -> None:
    texts = []
    for _ in range(2):
        draw(RECORDS, tmp_path / "curves.svg")
        texts.append((tmp_path / "curves.svg").read_text())
    assert texts[0].startswith("<?xml")
    assert texts[0] == texts[1]
