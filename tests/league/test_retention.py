"""Which adapters stay: worked by hand, and whole runs that keep few go on and are whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import save_base

from league.options import MachineOptions
from league.retention import Retention, kept
from league.run import main
from league.storage import read_rows, read_table
from league.verify import main as verify

SAVED = {0: ["a/0", "b/0"], 5: ["a/5", "b/5", "c/0"], 10: ["a/10", "c/5"], 15: ["a/15", "c/10"], 20: ["a/20", "c/15"]}


@pytest.mark.parametrize(
    ("retention", "stay"),
    [
        (Retention(newest=1), {"a/0", "a/5", "a/20", "b/0", "b/5", "c/0", "c/15"}),
        (Retention(newest=2), {"a/0", "a/5", "a/15", "a/20", "b/0", "b/5", "c/0", "c/10", "c/15"}),
        (Retention(newest=1, every=10), {"a/0", "a/5", "a/10", "a/20", "b/0", "b/5", "c/0", "c/5", "c/15"}),
        (Retention(newest=99), {name for names in SAVED.values() for name in names}),
    ],
)
def test_the_newest_the_first_parents_and_every_kth_step_stay(retention: Retention, stay: set[str]) -> None:
    assert kept(SAVED, [(0, []), (5, ["a"])], retention) == stay


@given(st.dictionaries(st.integers(0, 9), st.sets(st.sampled_from(["a/0", "a/1", "a/2", "b/1"]))), st.integers(1, 4))
def test_what_a_run_goes_on_with_always_stays(saved: dict[int, set[str]], newest: int) -> None:
    stay = kept(saved, [], Retention(newest=newest))
    names = {name for step in saved.values() for name in step}
    assert stay <= names
    for member in {name[0] for name in names}:
        assert max(name for name in names if name[0] == member) in stay


@pytest.mark.parametrize("value", ["0", "-1", "few", "", "1.5"])
def test_what_is_no_number_of_adapters_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="`keep_adapters` must be all or a number of at least 1"):
        MachineOptions(keep_adapters=value)


def test_a_run_that_keeps_few_adapters_goes_on_to_the_same_end_and_is_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = [
        *("--teachers", "2", "--students", "2", "--evolve-every", "3", "--min-age", "0", "--save-every", "2"),
        *("--proposals", "2", "--proposal-tokens", "24", "--answer-tokens", "8", "--game.seed-problems", "16"),
        *("--base", str(save_base(tmp_path / "base")), "--keep-adapters", "1"),
        *("--past-opponents", "0.4", "--hall-size", "2"),
    ]
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    assert main([*settings, "--steps", "5", "--out", str(broken)]) == 0
    assert main(["--resume", str(broken), "--steps", "8"]) == 0
    assert main([*settings, "--steps", "8", "--out", str(whole)]) == 0
    assert verify([str(broken)]) == verify([str(whole)]) == 0
    assert read_table(broken, "ratings").drop_columns("run_id") == read_table(whole, "ratings").drop_columns("run_id")
    for member in {path.name for path in (whole / "adapters").iterdir()}:
        versions = {int(path.name) for path in (whole / "adapters" / member).iterdir()}
        assert {0} <= versions
    saved = {
        name.rpartition("/")[0]
        for marker in (whole / "commits").iterdir()
        for name in json.loads(marker.read_text())["adapters"]
    }
    there = {str(path.relative_to(whole / "adapters")) for path in (whole / "adapters").glob("*/*")}
    assert there < saved
    for row in read_rows(whole, "lineage"):
        marker = json.loads((whole / "commits" / f"step={row['step']}.json").read_text())
        then = {name.rpartition("/")[0] for name in marker["adapters"]}
        assert all(any(name.startswith(f"{parent}/") for name in then & there) for parent in row["parents"])
    needed = json.loads((whole / "commits" / "step=8.json").read_text())["needs"]
    assert len(needed) == 4
    assert set(needed) <= there
    assert any(row["kind"] == "frozen" for row in read_rows(whole, "matches"))
    standing = json.loads((whole / "state" / "step=8" / "league.json").read_text())
    past = min(set(needed) - {f"{one['member_id']}/{one['version']}" for one in standing["members"]})
    lost = whole / "adapters" / past
    lost.rename(tmp_path / "lost")
    assert verify([str(whole)]) == 1
    assert f"the adapter adapters/{past} of a past opponent is missing" in capsys.readouterr().out
    assert main(["--resume", str(whole), "--steps", "9"]) == 2
    assert f"cannot read adapters/{past}/" in capsys.readouterr().err
    (tmp_path / "lost").rename(lost)
    newest = max(there, key=lambda name: (name.startswith("teacher_0"), int(name.rpartition("/")[2])))
    (whole / "adapters" / newest / "adapter_model.safetensors").unlink()
    assert verify([str(whole)]) == 1
