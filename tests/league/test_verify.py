"""The examination of a run folder: a whole one passes, and each kind of damage is named."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scripted import save_base

from league.run import main as run_league
from league.verify import main

Damage = Callable[[Path], None]
SETTINGS = (
    *("--teachers", "2", "--students", "2", "--steps", "2", "--evolve-every", "1", "--min-age", "0"),
    *("--proposals", "2", "--proposal-tokens", "24", "--answer-tokens", "8", "--game.seed-problems", "16"),
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verify")
    assert run_league([*SETTINGS, "--base", str(save_base(folder / "base")), "--out", str(folder / "run")]) == 0
    return folder / "run"


def rewrite(run: Path, name: str, step: int, change: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change rows of a table and sign them as a writer that has gone wrong would."""
    path = run / name / f"step={step}" / "part-0.parquet"
    table = pq.ParquetFile(path).read()
    rows = table.to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    marker = run / "commits" / f"step={step}.json"
    values = json.loads(marker.read_text())
    values["tables"][name] = {"rows": len(rows), "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    marker.write_text(json.dumps(values))


def setting(name: str, step: int, column: str, value: Any) -> Damage:
    """Return a damage that sets a column of a table's first row."""
    return lambda run: rewrite(run, name, step, lambda rows: rows[0].__setitem__(column, value))


def replace_text(file: str, old: str, new: str) -> Damage:
    def damage(run: Path) -> None:
        text = (run / file).read_text()
        assert old in text
        (run / file).write_text(text.replace(old, new, 1))

    return damage


def twice(rows: list[dict[str, Any]]) -> None:
    rows.append(rows[0])


def flip(file: str) -> Damage:
    def damage(run: Path) -> None:
        data = bytearray((run / file).read_bytes())
        data[len(data) // 2] ^= 1
        (run / file).write_bytes(bytes(data))

    return damage


DAMAGES: dict[str, tuple[Damage, str]] = {
    "settings torn": (lambda run: (run / "config.yaml").write_text("seed: ["), "settings: config.yaml: no YAML"),
    "versions gone": (lambda run: (run / "versions.json").unlink(), "settings: versions.json: is missing"),
    "another schema": (
        replace_text("versions.json", '"schema_version": ', '"schema_version": 99'),
        "settings: versions.json: `schema_version` is 99",
    ),
    "marker torn": (lambda run: (run / "commits/step=1.json").write_text('{"st'), "commits: step=1.json: it is not"),
    "marker of another step": (
        replace_text("commits/step=1.json", '"step": 1', '"step": 7'),
        "commits: commits/step=1.json: no marker of step 1",
    ),
    "marker gone": (lambda run: (run / "commits/step=1.json").unlink(), "commits: commits: step 1 is missing"),
    "table gone": (
        lambda run: (run / "matches/step=1/part-0.parquet").unlink(),
        "tables: matches/step=1/part-0.parquet: is missing",
    ),
    "bit of a table": (flip("rollouts/step=2/part-0.parquet"), "tables: rollouts/step=2/part-0.parquet: its sha256"),
    "rows of another run": (setting("matches", 1, "run_id", "other"), "it has rows of another run"),
    "bit of an adapter": (
        flip("adapters/student_0/0/adapter_model.safetensors"),
        "adapters: adapters/student_0/0/adapter_model.safetensors: its sha256",
    ),
    "adapter gone": (
        lambda run: shutil.rmtree(run / "adapters/student_0/0"),
        "adapters: adapters/student_0/0/adapter_config.json: is missing",
    ),
    "bit of the state": (flip("state/step=2/optimiser.safetensors"), "state: state/step=2/optimiser.safetensors: its"),
    "state gone": (lambda run: shutil.rmtree(run / "state"), "state: state: there is none of a committed step"),
    "match without member": (setting("matches", 1, "student_id", "student_99"), "'student_99' names nothing"),
    "rollout without problem": (setting("rollouts", 1, "problem_id", "?"), "rollouts: problem_id '?' names nothing"),
    "problem without match": (setting("problems", 1, "match_id", 99), "problems: match_id 99 names nothing"),
    "child without parent": (setting("lineage", 1, "parents", ["teacher_77"]), "parent 'teacher_77' of"),
    "child of other weights": (setting("lineage", 1, "adapter_sha256", "0"), "lineage: adapter_sha256 of"),
    "match twice": (
        lambda run: rewrite(run, "matches", 1, twice),
        "references: step 1, matches: match_id 0 is used twice",
    ),
    "another rating": (setting("ratings", 2, "mu", 26.0), "ratings: step 2: update of teacher_"),
    "another prior": (setting("ratings", 0, "sigma", 1.0), "ratings: step 0: birth of teacher_0 should be mu 25.0"),
    "another result": (setting("matches", 2, "observed", 2.0), "cannot be rated: `observed` must be"),
    "another expectation": (setting("matches", 1, "expected", 0.25), "`expected` should be 0.5, is 0.25"),
    "another outcome": (setting("matches", 1, "outcome", "draw"), "`outcome` should be"),
    "rating without match": (lambda run: rewrite(run, "ratings", 1, lambda rows: rows.pop(0)), "in the order of match"),
    "metrics gone": (lambda run: (run / "metrics.jsonl").unlink(), "metrics: metrics.jsonl: is missing"),
    "a line of metrics lost": (
        replace_text("metrics.jsonl", '{"step": 1', '{"step": 5'),
        "metrics: metrics.jsonl: step 1 has 0 lines",
    ),
    "no metrics": (replace_text("metrics.jsonl", '{"step": 1', '["step", 1'), "line 2 holds no metrics of a step"),
    "a metric that nobody measured": (
        replace_text("metrics.jsonl", '{"step": 1', '{"step": 1, "x": 1.0'),
        "metrics: metrics.jsonl: line 2 differs from the table `metrics`",
    ),
    "another metric": (setting("metrics", 1, "value", -7.0), "line 2 differs from the table `metrics`"),
    "metric without member": (setting("metrics", 2, "member_id", "teacher_99"), "'teacher_99' names nothing"),
    "metrics not finite": (replace_text("metrics.jsonl", '{"step": 1', '{"step": 1, "x": NaN'), "x is not finite"),
}


def test_a_finished_run_is_whole_and_so_is_one_with_leftovers(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    (run / "ratings" / "step=3").mkdir()
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"step": 3, "x')
    assert main([str(run)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == f"{run} is whole"
    assert out.count(" ok\n") == 8


@pytest.mark.parametrize("kind", DAMAGES)
def test_each_kind_of_damage_is_named(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    damage, message = DAMAGES[kind]
    damage(run)
    assert main([str(run)]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert message in out
    assert out.splitlines()[-1] == f"{run} is damaged"


def test_what_is_no_run_is_one_line_and_exit_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"error: {str(tmp_path)!r} is no run folder: it holds no config.yaml\n"


def test_many_faults_are_cut_short_unless_all_are_asked_for(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Path(shutil.copytree(whole, tmp_path / "run"))
    rewrite(run, "rollouts", 1, lambda rows: rows.extend(rows * 2))
    assert main([str(run)]) == 1
    short = capsys.readouterr().out
    assert "more, --all tells them" in short
    assert main([str(run), "--all"]) == 1
    assert len(capsys.readouterr().out.splitlines()) > len(short.splitlines())
