"""What people see of a run; the only module of the league that prints.

Owns layout. Owns no numbers: steps come as reports, the closing table from `standings`. On a terminal there is a
picture of the run (`live`), elsewhere a line a step. Text that a model or a user wrote is printed with its control
characters spelt out and never read as markup.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from league.escaping import printable
from league.live import LiveView
from league.standings import Standing
from league.types import Row, StepReport

_PLAIN_WIDTH = 140
_LONGEST_SHOWN = 2000


class Display:
    """Watches a league and prints; a context manager, so that the terminal is left tidy."""

    def __init__(self, steps: int, *, stream: TextIO | None = None, quiet: bool = False) -> None:
        """Prepare to show a run of that many steps on the stream (standard output); quiet, only its last line."""
        out = stream if stream is not None else sys.stdout
        terminal = out.isatty()
        self._out = out
        self._console = Console(
            file=out, width=None if terminal else _PLAIN_WIDTH, highlight=False, markup=False, emoji=False, quiet=quiet
        )
        self._steps = steps
        self._view = LiveView(steps)
        self._live: Live | None = None
        able = terminal and not self._console.is_dumb_terminal and self._console.encoding.startswith("utf")
        if able and not quiet:
            self._live = Live(self._view, console=self._console, refresh_per_second=4, redirect_stdout=False)

    def __enter__(self) -> Self:
        """Start the picture, if there is one."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the picture, if there is one; it stays as it was last."""
        if self._live is not None:
            self._live.stop()

    def note(self, text: str) -> None:
        """Print one line."""
        self._console.print(Text(printable(text)), soft_wrap=True)

    def last(self, text: str) -> None:
        """Print one line, also where all else is quiet."""
        print(printable(text), file=self._out)

    def phase(self, name: str, count: int, unit: str) -> None:
        """Hear that a phase of a step begins, with so many items of a unit to do."""
        self._view.phase(name, count, unit)

    def committed(self, report: StepReport) -> None:
        """Show a committed step: in the picture, or as a line; births get a line each."""
        line = step_line(report)
        if self._live is not None:
            self._view.committed(report, line)
        elif report.step:
            self.note(f"step {report.step:>{len(str(self._steps))}}/{self._steps}  {line}")
        for birth in report.births:
            self.note(
                f"  evolution: {birth.victim.member_id} -> {birth.child.member_id} "
                f"= {birth.operator}({', '.join(birth.parents)})"
            )

    def sample(self, problem: Row) -> None:
        """Print one row of the problems table as an example of what teachers wrote."""
        solve_rate = f"{problem['solve_rate']:.2f}"
        self._console.print()
        self.note(
            f"For example, {problem['teacher_id']} in step {problem['step']} ({problem['task']}, "
            f"solve rate {solve_rate}):"
        )
        for title, text in (("", problem["program"]), ("input  ", problem["inputs"][0])):
            body = printable(text[:_LONGEST_SHOWN], keep_lines=True)
            self._console.print(Text("\n".join("  " + title + line for line in body.split("\n"))), soft_wrap=True)

    def closing(self, standings: Sequence[Standing], *, caution: float, run: Path) -> None:
        """Print the closing table of both sides and the run folder."""
        self._console.print()
        self._console.print(closing_table(standings, caution=caution))
        self.note(str(run))


def closing_table(standings: Sequence[Standing], *, caution: float) -> Table:
    """Return the table of ratings of both sides."""
    table = Table(title="Ratings at the end", title_justify="left")
    table.add_column("member")
    for name in ("mu", "sigma", f"mu - {caution:g} sigma", "won", "drawn", "lost", "solve rate", "born"):
        table.add_column(name, justify="right")
    table.add_column("made by")
    for before, one in zip([None, *standings], standings, strict=False):
        if before is not None and before.side is not one.side:
            table.add_section()
        table.add_row(
            one.member_id,
            *(f"{value:.2f}" for value in (one.rating.mu, one.rating.sigma, one.bound)),
            *(str(count) for count in (one.won, one.drawn, one.lost)),
            "-" if one.solve_rate is None else f"{one.solve_rate:.3f}",
            str(one.born),
            Text(printable(f"{one.operator}({', '.join(one.parents)})" if one.parents else one.operator)),
        )
    return table


def step_line(report: StepReport) -> str:
    """Return what is said of one step."""
    shown = (
        ("valid", "teacher/validity"),
        ("solve rate", "teacher/solve_rate"),
        ("teacher reward", "teacher/reward"),
        ("student reward", "student/reward"),
    )
    parts = [f"{title} {report.metrics[name]:.2f}" for title, name in shown if name in report.metrics]
    if report.seconds:
        parts.append(f"{sum(report.seconds.values()):.1f} s")
    return "  ".join(parts)


def tell(message: str) -> None:
    """Print one line to standard output."""
    print(printable(message))


def mention(message: str) -> None:
    """Print one line of progress to standard error, which leaves standard output to results."""
    print(printable(message), file=sys.stderr, flush=True)


def complain(message: str) -> None:
    """Print one line of error to standard error."""
    print(f"error: {printable(' '.join(message.split()))}", file=sys.stderr)
