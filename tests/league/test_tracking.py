"""Metrics sent to trackers: what they get, and that a run outlives them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from league.options import MeasureOptions
from league.tracking import Tracking, tracker_of
from league.types import StepReport


class Shown:
    """A watcher that keeps what it is told."""

    def __init__(self) -> None:
        """Begin without anything."""
        self.steps: list[int] = []
        self.notes: list[str] = []

    def committed(self, report: StepReport) -> None:
        """Keep the step."""
        self.steps.append(report.step)

    def note(self, text: str) -> None:
        """Keep the line."""
        self.notes.append(text)


class Failing:
    """A tracker whose disk is full from the second step on."""

    def __init__(self) -> None:
        """Begin without numbers."""
        self.seen: dict[int, Mapping[str, float]] = {}

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Keep the numbers, or fail."""
        if step > 1:
            raise OSError("no space left")
        self.seen[step] = metrics

    def close(self) -> None:
        """Hold nothing."""


def report(step: int) -> StepReport:
    return StepReport(
        step=step, results=(), births=(), metrics={"teacher/reward": step / 4}, seconds={"solve": float(step)}
    )


def test_a_tracker_gets_each_step_and_a_run_outlives_it() -> None:
    shown, tracker = Shown(), Failing()
    with Tracking(shown, lambda: tracker) as watcher:
        for step in range(4):
            watcher.committed(report(step))
    assert shown.steps == [0, 1, 2, 3]
    assert tracker.seen == {1: {"teacher/reward": 0.25, "seconds/solve": 1.0}}
    assert shown.notes == ["the tracker failed in step 2, the run goes on without it: no space left"]


def test_a_tracker_that_cannot_be_opened_is_told_once() -> None:
    def refuse() -> Failing:
        raise RuntimeError("no key")

    shown = Shown()
    with Tracking(shown, refuse) as watcher:
        watcher.committed(report(1))
    assert shown.notes == ["the tracker cannot be opened, the run goes on without it: no key"]


def test_tensorboard_reads_what_was_logged_also_after_a_resume(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for first, steps in ((1, (1, 2, 3)), (3, (3, 4))):
        with Tracking(Shown(), tracker_of("tensorboard", tmp_path, "r", {}, first)) as watcher:
            for step in steps:
                watcher.committed(report(step))
    events = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(one.step, one.value) for one in events.Scalars("teacher/reward")] == [
        (1, 0.25),
        (2, 0.5),
        (3, 0.75),
        (4, 1.0),
    ]


def test_weights_and_biases_keeps_a_record_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    shown = Shown()
    with Tracking(shown, tracker_of("wandb", tmp_path, "r", {"seed": 0}, 1)) as watcher:
        watcher.committed(report(1))
    assert shown.notes == []
    assert list(tmp_path.glob("wandb/offline-run-*/*.wandb"))


def test_mlflow_goes_on_in_the_runs_own_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow: Any = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    shown = Shown()
    for step in (1, 2):
        with Tracking(shown, tracker_of("mlflow", tmp_path, "r", {"seed": 0}, step)) as watcher:
            watcher.committed(report(step))
    assert shown.notes == []
    (run,) = mlflow.search_runs(search_all_experiments=True, output_format="list")
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "teacher/reward")
    assert [(one.step, one.value) for one in history] == [(1, 0.25), (2, 0.5)]


@pytest.mark.parametrize("name", ["tensorboard", "wandb", "mlflow"])
def test_a_tracker_whose_package_is_missing_is_refused(name: Any) -> None:
    if find_spec(name) is not None:
        pytest.skip(f"{name} is installed")
    with pytest.raises(ValueError, match=f"`log` {name} needs a package: pip install {name}"):
        MeasureOptions(log=name)
