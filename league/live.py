"""What stands on a terminal while a run goes on: how far it is, what it does right now, and how the league stands.

Owns what is remembered for that, and its layout. Owns no terminal (`display`). Text that a model wrote is shown with
its control characters spelt out and never read as markup.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from league.escaping import printable
from league.lineage import side_of
from league.types import Rating, Row, Side, StepReport
from populora_env.types import Role

_BLOCKS = "▁▂▃▄▅▆▇█"
_CURVE = 48
"""Steps of the curve."""
_PACE = 10
"""Steps whose mean time tells how long the others take."""
_LEADERS = 3
_LINES = 8
"""Of a program, at most."""
_WIDTH = 30


class LiveView:
    """A picture of a run in progress; it is drawn anew several times a second, by another thread than the run's.

    What changes is copied or read once before it is walked through.
    """

    def __init__(self, steps: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin before the founding of a run of that many steps; `clock` is in seconds."""
        self._steps = steps
        self._clock = clock
        self._began = self._since = clock()
        self._step = 0
        self._paces: deque[float] = deque(maxlen=_PACE)
        self._phase: tuple[str, int, str] | None = None
        self._phase_began = 0.0
        self._rates: dict[tuple[str, str], float] = {}
        self._ratings: dict[str, Rating] = {}
        self._curve: deque[float] = deque(maxlen=_CURVE)
        self._line = ""
        self._problem: RenderableType | None = None

    def phase(self, name: str, count: int, unit: str) -> None:
        """Hear that a phase begins, with so many items of a unit to do."""
        self._end_phase()
        self._phase, self._phase_began = (name, count, unit), self._clock()

    def _end_phase(self) -> None:
        if self._phase is not None:
            name, count, unit = self._phase
            spent = self._clock() - self._phase_began
            if count and spent > 0:
                self._rates[name, unit] = count / spent
        self._phase = None

    def committed(self, report: StepReport, line: str) -> None:
        """Hear of a committed step, and what is said of it."""
        self._end_phase()
        now = self._clock()
        if report.step:
            self._paces.append(now - self._since)
        self._since, self._step, self._line = now, report.step, line
        if (rate := report.metrics.get("teacher/solve_rate")) is not None:
            self._curve.append(rate)
        for row in report.tables.get("ratings", ()):
            self._rate(row)
        valid = [row for row in report.tables.get("problems", ()) if row["valid"]]
        if valid:
            self._problem = _problem(valid[-1], report.tables.get("rollouts", ()))

    def _rate(self, row: Row) -> None:
        if row["event"] == "retire":
            self._ratings.pop(row["member_id"], None)
        else:
            self._ratings[row["member_id"]] = Rating(mu=row["mu"], sigma=row["sigma"])

    def __rich__(self) -> RenderableType:
        """Return the picture."""
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold", no_wrap=True)
        grid.add_column(overflow="ellipsis", no_wrap=True)
        grid.add_row("step", self._progress())
        grid.add_row("phase", self._doing())
        if self._curve:
            curve = list(self._curve)
            grid.add_row("solve rate", f"{sparkline(curve)}  {curve[-1]:.2f}")
        if self._line:
            grid.add_row("last step", Text(self._line))
        for side in Side:
            if leaders := self._leaders(side):
                grid.add_row(f"{side.value}s", leaders)
        return Group(grid, *([] if self._problem is None else [self._problem]))

    def _progress(self) -> RenderableType:
        left = ""
        if self._paces and self._step < self._steps:
            paces = list(self._paces)
            pace = sum(paces) / len(paces)
            left = f", about {clock_time(pace * (self._steps - self._step))} left"
        gone = clock_time(self._clock() - self._began)
        bar = ProgressBar(total=max(1, self._steps), completed=self._step, width=_WIDTH)
        return _beside(f"{self._step}/{self._steps}", bar, f"{gone} gone{left}")

    def _doing(self) -> RenderableType:
        phase = self._phase  # read once: the run's thread may end it meanwhile
        if phase is None:
            return Text("waiting" if self._step < self._steps else "done")
        name, count, unit = phase
        told = f"{name} {count:,} {unit}"
        rate = self._rates.get((name, unit))
        if rate is None or not count:
            return Text(told)
        # What is done is not told before the end; the last time's rate says how much it should be.
        share = min(0.99, (self._clock() - self._phase_began) * rate / count)
        bar = ProgressBar(total=1.0, completed=share, width=_WIDTH)
        return _beside(told, bar, f"about {share:.0%} at {rate:,.0f} {unit}/s")

    def _leaders(self, side: Side) -> str:
        own = [(rating.mu, name, rating) for name, rating in list(self._ratings.items()) if side_of(name) is side]
        best = sorted(own, reverse=True)[:_LEADERS]
        return ", ".join(f"{name} {rating.mu:.1f} ± {rating.sigma:.1f}" for _, name, rating in best)


def _beside(left: str, middle: RenderableType, right: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_row(Text(left), middle, Text(right))
    return grid


def _problem(problem: Row, rollouts: Sequence[Row]) -> RenderableType:
    """Return the last problem of a step, and how it was answered."""
    attempts = [row for row in rollouts if row["role"] == Role.SOLVER and row["group_id"] == problem["proposal_id"]]
    said = ", ".join(str(row["verdict"]) for row in attempts)
    who = attempts[0]["member_id"] if attempts else "nobody"
    title = f"{problem['teacher_id']} asks {who} ({problem['task']}): {said or 'no answer'}"
    lines = printable(str(problem["program"])[:2000], keep_lines=True).split("\n")
    shown = lines[:_LINES] + ([] if len(lines) <= _LINES else [f"... {len(lines) - _LINES} more lines"])
    text = Text("\n".join([printable(title), *(f"  {line}" for line in shown)]), no_wrap=True, overflow="ellipsis")
    return Group(Text(), text)


def sparkline(values: Sequence[float]) -> str:
    """Return shares in [0, 1] as a curve of blocks, one a value; what lies outside is drawn at the edge."""
    return "".join(_BLOCKS[round(min(1.0, max(0.0, value)) * (len(_BLOCKS) - 1))] for value in values)


def clock_time(seconds: float) -> str:
    """Return a time as hours (where there are any), minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
