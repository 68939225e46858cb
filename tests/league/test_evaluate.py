"""The command: a run, its base and a baseline on a made-up set, and what is said when something is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from scripted import save_base
from toy_data import ROWS, write_rows

from league.evaluate import ANSWERS_FILE, FIGURES_FILE, main


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(write_rows(tmp_path_factory.mktemp("data") / "sets", "humaneval"), "humanevalplus")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a run of two members and one of a single agent, on one base."""
    folder = tmp_path_factory.mktemp("runs")
    base = save_base(folder / "base")
    for name, *flags in (("pair", "--teachers", "1", "--students", "1"), ("alone", "--single-agent")):
        command = [sys.executable, "-m", "league.run", *flags, "--steps", "0", "--base", str(base)]
        command += ["--lora-rank", "2", "--alpha", "4", "--game.seed-problems", "16", "--out", str(folder / name)]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    return folder / "pair", folder / "alone"


def test_a_run_its_base_and_a_baseline_are_scored_at_once(
    runs: tuple[Path, Path], data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, baseline = map(str, runs)
    out = tmp_path / "out"
    flags = [
        run,
        "--baseline",
        baseline,
        "--suite",
        "humaneval,humaneval+",
        "--data",
        str(data),
        "--max-new-tokens",
        "4",
    ]
    assert main([*flags, "--samples", "2", "--k", "1,2", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "population - baseline" in printed
    assert printed.splitlines()[-1] == str(out)
    rows = pq.read_table(out / ANSWERS_FILE).to_pylist()
    assert {row["player"] for row in rows} == {"base", "teacher_0", "student_0", "baseline/agent_0"}
    assert len(rows) == 2 * len(ROWS) * 4 * 2
    assert json.loads((out / FIGURES_FILE).read_text())["settings"]["samples"] == 2
    assert main([*flags, "--side", "student", "--json", "--out", str(tmp_path / "again")]) == 0
    figures = json.loads(capsys.readouterr().out)["figures"]
    assert {figure["who"] for figure in figures} == {"base", "population", "baseline", "population - baseline"}


def test_canonical_solutions_are_graded_without_a_model(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--suite", "humaneval,humaneval+", "--data", str(data), "--check-canonical"]) == 0
    assert capsys.readouterr().out == (
        "humaneval: 2 of 2 canonical solutions are right\nhumaneval+: 2 of 2 canonical solutions are right\n"
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--suite", "humaneval+", "--data", "{data}"], "say which RUN to evaluate"),
        (["--suite", "chess", "--data", "{data}"], "there is no suite 'chess', only humaneval"),
        (["--suite", "mbpp", "--data", "{data}"], "has no mbpp_sanitized.jsonl (or .jsonl.gz); put the file of"),
        (["--suite", "mbpp+"], "mbppplus_release into a folder as mbppplus.jsonl (or .jsonl.gz) and say --data FOLDER"),
        (
            ["--suite", "humaneval", "--data", "{data}", "--base", "nano", "--k", "2"],
            "--k must lie between 1 and",
        ),
        (["nowhere", "--suite", "humaneval", "--data", "{data}"], "nowhere"),
        (["--suite", "humaneval", "--data", "{data}", "--base", "nano", "--prompt", "chat"], "has no chat template"),
        (["--data", "{data}"], "--suite"),
    ],
)
def test_what_is_wrong_is_one_line(
    flags: list[str],
    message: str,
    data: Path,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([flag.format(data=data) for flag in flags]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_set_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text, message in (
        ("{", "cannot read"),
        ("[1]\n", "one JSON object a line"),
        ('{"task_id": "x"}\n', "'prompt'"),
    ):
        (tmp_path / "humaneval.jsonl").write_text(text)
        assert main(["--suite", "humaneval", "--data", str(tmp_path), "--check-canonical"]) == 2
        assert message in capsys.readouterr().err
