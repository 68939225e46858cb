"""The command: `python -m benchmarks.marl`, from the root of a checkout.

Owns flags and exit statuses.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.marl.algorithms import ALGORITHMS
from benchmarks.marl.config import TrainingConfig
from benchmarks.marl.document import document, draw
from benchmarks.marl.environments import ENVIRONMENTS
from benchmarks.marl.runs import Plan, jobs, run_all
from benchmarks.marl.summary import read_summary
from league.display import complain, tell

_SUMMARY, _DOCUMENT, _PICTURE = Path("docs/marl.jsonl"), Path("docs/marl.md"), Path("docs/marl.svg")
_EPILOG = "environments:\n" + "\n".join(f"  {own.name:24} {own.meaning}" for own in ENVIRONMENTS.values())


def main(arguments: Sequence[str] | None = None) -> int:
    """Do as the command line says; return the exit status."""
    given = _parser().parse_args(arguments)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the networks are small, and the verifier wants the other cores
    try:
        if not given.from_summary:
            config = TrainingConfig(batches=given.batches, episodes=given.episodes)
            planned = jobs(given.seeds, given.environments, given.algorithms)
            run_all(Plan(jobs=planned, summary=given.summary, config=config), tell)
        records = read_summary(given.summary)
        if not records:
            complain(f"{given.summary} holds no run yet")
            return 1
        draw(records, given.picture)
        given.document.write_text(document(records, given.picture.name), encoding="utf-8")
    except ValueError as error:
        complain(str(error))
        return 2
    except OSError as error:
        complain(str(error))
        return 1
    except ModuleNotFoundError as error:
        complain(f"the package {error.name} is needed: pip install 'populora-league[marl]'")
        return 1
    except KeyboardInterrupt:
        complain("interrupted; finished runs are in the summary, the same command goes on with the others")
        return 130
    tell(str(given.document))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.marl",
        description="Run classic multi-agent algorithms on the token game and on mpe2 over several seeds, keep a line\n"
        "of each finished run in a summary, and write the document from it. Stop it whenever you like; the same\n"
        "command goes on.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    defaults = TrainingConfig()
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="seeds 1 to N (default: 3)")
    names = ", ".join(ENVIRONMENTS)
    parser.add_argument(
        "--environments", nargs="+", default=list(ENVIRONMENTS), metavar="NAME", help=f"default: {names}"
    )
    parser.add_argument(
        "--algorithms",
        nargs="+",
        default=list(ALGORITHMS),
        metavar="NAME",
        help=f"default: {', '.join(ALGORITHMS)}; the last two only where all agents are a team",
    )
    parser.add_argument(
        "--batches", type=int, default=defaults.batches, metavar="N", help=f"of a run (default: {defaults.batches})"
    )
    parser.add_argument(
        "--episodes",
        type=int,
        default=defaults.episodes,
        metavar="N",
        help=f"of the last evaluation (default: {defaults.episodes})",
    )
    parser.add_argument("--summary", type=Path, default=_SUMMARY, metavar="FILE", help=f"default: {_SUMMARY}")
    parser.add_argument("--document", type=Path, default=_DOCUMENT, metavar="FILE", help=f"default: {_DOCUMENT}")
    parser.add_argument("--picture", type=Path, default=_PICTURE, metavar="FILE", help=f"default: {_PICTURE}")
    parser.add_argument("--from-summary", action="store_true", help="only write the document")
    return parser


if __name__ == "__main__":
    sys.exit(main())
