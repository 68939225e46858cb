"""The command: `python -m league.experiment coevolution`.

Owns flags and exit statuses.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from league.display import complain, tell
from league.experiment.arms import ARMS, FOLLOW_UP_SEEDS, FOLLOW_UPS, MAIN, STEPS, VARIATION_SEEDS, VARIATIONS, jobs
from league.experiment.document import document, draw
from league.experiment.runs import Plan, RunFailedError, run_all
from league.experiment.summary import read_summary
from league.storage import StorageError

_OUT, _SUMMARY = Path("runs/coevolution"), Path("docs/experiment.jsonl")
_DOCUMENT, _PICTURE = Path("docs/experiment.md"), Path("docs/experiment.svg")
_EPILOG = "arms:\n" + "\n".join(f"  {arm.name:20} {arm.meaning}" for arm in ARMS.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Do as the command line says; return the exit status."""
    given = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the runs are ended, too
    try:
        if not given.from_summary:
            plan = Plan(
                jobs=jobs(given.seeds, given.arms),
                steps=given.steps,
                out=given.out,
                summary=given.summary,
                extra=tuple(given.flag),
                heldout=given.heldout,
                processes=given.processes,
                threads=given.threads,
            )
            run_all(plan, tell)
        records = read_summary(given.summary)
        if not records:
            complain(f"{given.summary} holds no run yet")
            return 1
        draw(records, given.picture)
        given.document.write_text(document(records, given.picture.name), encoding="utf-8")
    except ValueError as error:
        complain(str(error))
        return 2
    except (RunFailedError, StorageError, OSError) as error:
        for line in str(error).splitlines():
            complain(line)
        return 1
    except ModuleNotFoundError as error:
        complain(f"the plot needs the package {error.name}: pip install {error.name}")
        return 1
    except KeyboardInterrupt:
        complain("interrupted; finished runs are in the summary, the same command goes on with the others")
        return 130
    tell(str(given.document))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m league.experiment",
        description="Test the paper's claims on nano: run all arms over several seeds, keep a line of each finished\n"
        "run in a summary, and write the document from it. Stop it whenever you like; the same command goes on.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("experiment", choices=["coevolution"], help="which experiment")
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="seeds 1 to N (default: 5)")
    parser.add_argument(
        "--arms",
        nargs="+",
        metavar="ARM",
        help=f"default: {' '.join(MAIN)} on all seeds, {' '.join(VARIATIONS)} on the first {VARIATION_SEEDS}, "
        f"{' '.join(FOLLOW_UPS)} on seeds {', '.join(map(str, FOLLOW_UP_SEEDS))}",
    )
    parser.add_argument("--steps", type=int, default=STEPS, metavar="N", help=f"steps of each run (default: {STEPS})")
    parser.add_argument("--out", type=Path, default=_OUT, metavar="DIR", help=f"folder of the runs (default: {_OUT})")
    parser.add_argument("--summary", type=Path, default=_SUMMARY, metavar="FILE", help=f"default: {_SUMMARY}")
    parser.add_argument("--document", type=Path, default=_DOCUMENT, metavar="FILE", help=f"default: {_DOCUMENT}")
    parser.add_argument("--picture", type=Path, default=_PICTURE, metavar="FILE", help=f"default: {_PICTURE}")
    parser.add_argument("--from-summary", action="store_true", help="only write the document")
    parser.add_argument("--heldout", type=int, default=150, metavar="N", help="held-out problems a task (default: 150)")
    parser.add_argument("--processes", type=int, choices=[1, 2], default=1, help="runs side by side (default: 1)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="threads of each run (default: 1)")
    parser.add_argument(
        "--flag",
        nargs=argparse.REMAINDER,
        default=[],
        metavar="FLAG",
        help="all that follows goes to league.run (pilots)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
