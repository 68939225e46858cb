"""Each step's metrics for a tracker that people know: TensorBoard, Weights & Biases, MLflow.

Owns the three and what their failure means: a run goes on without its tracker. Owns no metrics. The packages are
imported when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, Protocol, Self

from league.types import StepReport, Watcher

TrackerName = Literal["none", "tensorboard", "wandb", "mlflow"]
PROJECT = "populora"
"""Name of the project (Weights & Biases) or experiment (MLflow) that runs are put into."""
FOLDER = "tensorboard"
"""Of TensorBoard's files, in the run folder."""


class Tracker(Protocol):
    """Takes numbers."""

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Take the metrics of one step."""
        ...

    def close(self) -> None:
        """Send what is left."""
        ...


def check_tracker(name: TrackerName) -> None:
    """Check that a tracker can be used.

    Raises:
        ValueError: Its package is missing.
    """
    if name != "none" and find_spec(name) is None:
        raise ValueError(f"`log` {name} needs a package: pip install {name}")


class Teller(Watcher, Protocol):
    """A watcher that can be told something for people; `league.display.Display` is one."""

    def note(self, text: str) -> None:
        """Show one line."""
        ...


class Tracking:
    """Tells another watcher, and a tracker, of every step; a context manager that implements `league.types.Watcher`."""

    def __init__(self, watcher: Teller, open_tracker: Callable[[], Tracker | None]) -> None:
        """Pass on to both; the tracker is opened when the context is entered."""
        self._watcher = watcher
        self._open = open_tracker
        self._tracker: Tracker | None = None

    def __enter__(self) -> Self:
        """Open the tracker."""
        with self._without_it("cannot be opened"):
            self._tracker = self._open()
        return self

    def __exit__(self, *ended: object) -> None:
        """Close the tracker."""
        if self._tracker is not None:
            with self._without_it("cannot be closed"):
                self._tracker.close()

    def committed(self, report: StepReport) -> None:
        """Pass on a committed step; see `Watcher`."""
        self._watcher.committed(report)
        if self._tracker is not None and report.step:
            seconds = {f"seconds/{phase}": value for phase, value in report.seconds.items()}
            with self._without_it(f"failed in step {report.step}"):
                self._tracker.log(report.step, {**report.metrics, **seconds})

    @contextmanager
    def _without_it(self, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # Whatever a tracker's server or disk does, the run is worth more.
            self._watcher.note(f"the tracker {what}, the run goes on without it: {error}")
            self._tracker = None


def tracker_of(
    name: TrackerName, run: Path, run_id: str, settings: Mapping[str, Any], first: int
) -> Callable[[], Tracker | None]:
    """Return what opens a tracker, or None where none is wanted.

    Args:
        name: Which one.
        run: The run folder.
        run_id: A run that is resumed goes on in its own record.
        settings: Of the run, as plain values.
        first: Step that comes next; what a record has from there on is of steps that were undone.
    """
    return lambda: None if name == "none" else _MAKERS[name](run, run_id, settings, first)


class _TensorBoard:
    def __init__(self, run: Path, run_id: str, settings: Mapping[str, Any], first: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        del run_id, settings  # The folder is the record.
        self._writer = SummaryWriter(str(run / FOLDER), purge_step=first)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class _WeightsAndBiases:
    def __init__(self, run: Path, run_id: str, settings: Mapping[str, Any], first: int) -> None:
        import wandb

        del first  # It keeps the first value of a step.
        self._run = wandb.init(
            project=PROJECT, name=run.name, id=run_id, dir=str(run), config=dict(settings), resume="allow"
        )

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        self._run.finish()


class _MLflow:
    def __init__(self, run: Path, run_id: str, settings: Mapping[str, Any], first: int) -> None:
        import mlflow

        del first
        self._mlflow = mlflow
        mlflow.set_experiment(PROJECT)
        found = mlflow.search_runs(filter_string=f"tags.run_id = '{run_id}'", output_format="list", max_results=1)
        if found:
            mlflow.start_run(run_id=found[0].info.run_id)
        else:
            mlflow.start_run(run_name=run.name, tags={"run_id": run_id})
            mlflow.log_dict(dict(settings), "config.json")

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._mlflow.log_metrics(dict(metrics), step=step)

    def close(self) -> None:
        self._mlflow.end_run()


_MAKERS: Mapping[str, Callable[[Path, str, Mapping[str, Any], int], Tracker]] = {
    "tensorboard": _TensorBoard,
    "wandb": _WeightsAndBiases,
    "mlflow": _MLflow,
}
