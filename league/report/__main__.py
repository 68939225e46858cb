"""The command that writes a report: `python -m league.report RUN [RUN ...]`.

Owns the file and the exit status: 0 written, 2 something the user has to change (folders, disk). The page is in `page`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from league.display import complain, tell
from league.durable import write
from league.report.page import FILE, PROBLEMS, build
from league.storage import StorageError

_EPILOG = """\
One file is written that needs nothing beside itself: no server, no network. Several runs stand side by side with the
same axes, for example a population and a single agent. docs/report.md tells what it shows.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do as the command line says; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m league.report",
        description="Show runs as one page: solve rates, ratings, complexity, coverage, descent, problems.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", metavar="RUN", type=Path, nargs="+", help="run folder, for example runs/first")
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help=f"what to write (default: {FILE} in the first run's folder)"
    )
    parser.add_argument(
        "--problems",
        metavar="N",
        type=int,
        default=PROBLEMS,
        help="problems shown of each run, at most; they are spread evenly over it (default: %(default)s)",
    )
    given = parser.parse_args(arguments)
    out = given.out or given.runs[0] / FILE
    try:
        write(out, build(given.runs, problems=given.problems).encode())
    except (StorageError, ValueError) as error:
        complain(str(error))
        return 2
    except OSError as error:
        complain(f"cannot write {str(out)!r}: {error.strerror}")
        return 2
    tell(str(out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
