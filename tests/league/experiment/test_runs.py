"""Runs are made, stopped, gone on with and kept once."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from finished_runs import make_record

from league.experiment.arms import jobs
from league.experiment.runs import Plan
from league.experiment.summary import append_record, read_summary


def test_what_is_left_is_what_the_summary_lacks(tmp_path: Path) -> None:
    plan = Plan(jobs=jobs(1), steps=3, out=tmp_path, summary=tmp_path / "summary.jsonl")
    assert plan.left() == list(plan.jobs)
    append_record(plan.summary, make_record("single-agent", 1, flags=plan.flags(plan.jobs[0])))
    assert plan.left() == list(plan.jobs[1:])
    plan.steps = 4
    with pytest.raises(ValueError, match="name another summary"):
        plan.left()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("matplotlib") is None, reason="needs matplotlib")
def test_the_command_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    places = [f"--{name}={tmp_path / name}" for name in ("out", "summary", "document")]
    asked = [*places, f"--picture={tmp_path / 'p.svg'}", "--seeds=1", "--steps=8", "--heldout=3"]
    asked += ["--arms", "single-agent", "1T+1S", "--flag", "--proposals", "2", "--save-every", "1"]
    command = [sys.executable, "-m", "league.experiment", "coevolution", *asked]
    first = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    single = tmp_path / "out" / "single-agent" / "seed=1"
    while not (single / "state" / "step=2").exists() and first.poll() is None:
        time.sleep(0.05)
    first.send_signal(signal.SIGTERM)
    first.wait(60)
    assert read_summary(tmp_path / "summary") == []
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    records = read_summary(tmp_path / "summary")
    assert [(record.arm, record.steps) for record in records] == [("single-agent", 8), ("1T+1S", 8)]
    assert [sorted(record.heldout) for record in records] == [["agent_0"], ["student_0", "teacher_0"]]
    assert all(0 <= share <= 1 for record in records for share in record.scores())
    assert all(value is not None for value in records[0].series["teacher_reward"])
    assert records[0].settings["play.proposals"] == 2
    assert not {"seed", "out"} & records[0].settings.keys()
    assert None not in records[0].series["worked"]
    assert "going on after step" in single.with_suffix(".log").read_text()
    again = subprocess.run([*command[:4], *places, f"--picture={tmp_path / 'p.svg'}", "--from-summary"], check=False)
    assert again.returncode == 0
    assert "| `1T+1S` |" in (tmp_path / "document").read_text()
