"""How a run ends: an example problem and the closing table are printed, and the page that shows the run is written.

Owns which example and what a failure to write means. Owns neither the look (`display`, `report`) nor the numbers.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from league.display import Display, complain
from league.durable import write
from league.report.page import FILE, build
from league.standings import standings
from league.storage import read_rows


def close_run(run: Path, display: Display, *, caution: float) -> None:
    """Print how a run ended, all of it from its tables, and write its report; its path is the last line.

    A report that cannot be written is told on standard error: a run without one is a run all the same.
    """
    problems = [row for row in read_rows(run, "problems") if row["valid"]]
    if problems:
        display.sample(min(reversed(problems), key=lambda row: abs(row["solve_rate"] - 0.5)))
    table = standings(read_rows(run, "ratings"), read_rows(run, "matches"), read_rows(run, "lineage"), caution=caution)
    display.closing(table, caution=caution, run=run)
    try:
        write(run / FILE, build([run]).encode())
    except OSError as error:
        again = f"python -m league.report {shlex.quote(str(run))}"
        complain(f"no report was written: {error.strerror}; try again with {again}")
    else:
        display.last(str(run / FILE))
