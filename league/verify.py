"""The command that examines a run folder: `python -m league.verify RUN`.

Owns the table and the exit status: 0 whole, 1 something is damaged, 2 it could not be told. The checks are in
`integrity`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from league.display import complain, tell
from league.integrity import Check, check_run
from league.storage import StorageError

_SHOWN = 20
_EPILOG = """\
what is checked:
  settings    config.yaml and versions.json can be read, and the run has this version's tables
  commits     a marker a step, from 0 without gaps
  tables      each file has the committed sha256, number of rows, columns, schema_version and run_id
  adapters    each file has the committed sha256
  state       there is one to go on from, with its members' adapters
  references  matches, members, problems and parents that rows name are there; no id is used twice
  ratings     the ratings table follows from the matches table, match by match
  metrics     one line of finite numbers a step, the same as in the table

what no committed step owns is not looked at; --resume removes it.
exit status: 0 whole, 1 something is damaged, 2 RUN is no run folder or cannot be read
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Do as the command line says; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m league.verify",
        description="Examine a run folder: are its files those that were committed, do its tables agree?",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="run folder, for example runs/first")
    parser.add_argument("--all", action="store_true", help=f"tell every fault, not the first {_SHOWN} of each check")
    given = parser.parse_args(arguments)
    try:
        checks = check_run(given.run)
    except StorageError as error:
        complain(str(error))
        return 2
    except OSError as error:
        complain(f"cannot read {error.filename!s}: {error.strerror}")
        return 2
    for check in checks:
        tell(_line(check))
    for check in checks:
        shown = check.faults if given.all else check.faults[:_SHOWN]
        for fault in shown:
            tell(f"{check.name}: {fault}")
        if more := len(check.faults) - len(shown):
            tell(f"{check.name}: and {more} more, --all tells them")
    whole = all(not check.faults and not check.skipped for check in checks)
    tell(f"{given.run} is whole" if whole else f"{given.run} is damaged")
    return 0 if whole else 1


def _line(check: Check) -> str:
    result = f"not done: {check.skipped}" if check.skipped else f"FAULTS: {len(check.faults)}" if check.faults else "ok"
    return f"{check.name:<10}  {check.examined:>8} {check.unit:<7}  {result}"


if __name__ == "__main__":
    sys.exit(main())
