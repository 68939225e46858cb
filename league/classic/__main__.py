"""The command `python -m league.classic`: the league on a game whose answer is known, beside self-play and PSRO.

Owns the flags and the exit status: 0 done, 2 something the user has to change, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Sequence
from functools import partial

import tyro

from league.classic.options import ClassicOptions, settle
from league.display import complain, mention, tell
from league.machine import prepare_torch
from league.storage import StorageError, refuse_existing

PROGRAM = "python -m league.classic"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return the exit status."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            options = tyro.cli(ClassicOptions, args=given, prog=PROGRAM)
    except SystemExit as stop:
        if not stop.code:
            raise
        text = " ".join(line.strip("│╭╮╰╯─ ") for line in errors.getvalue().splitlines())
        complain(f"{' '.join(text.split())} (--help explains the flags)")
        return 2
    except ValueError as error:
        complain(f"{error} (--help explains the flags)")
        return 2
    try:
        _run(options)
    except KeyboardInterrupt:
        complain("interrupted")
        return 130
    except (ImportError, StorageError) as error:
        complain(str(error))
        return 2
    return 0


def _run(options: ClassicOptions) -> None:
    if options.out is not None:
        refuse_existing(options.out)
    prepare_torch(options.threads)
    from league.classic.report import Leagues, as_text, ratios
    from league.classic.running import play_league

    leagues: Leagues = {
        scheme: [
            play_league(
                options.game,
                settle(options, scheme),
                seed=seed,
                measurements=options.measurements,
                out=None if options.out is None else options.out / f"{scheme}-{seed}",
                say=partial(_mention, f"{scheme}, seed {seed}"),
            )
            for seed in range(options.seed, options.seed + options.seeds)
        ]
        for scheme in options.opponents
    }
    if options.json:
        tell(json.dumps({"game": options.game, "ratios": ratios(leagues), "leagues": leagues}))
        return
    for line in as_text(options.game, leagues):
        tell(line)


def _mention(league: str, how_far: str) -> None:
    mention(f"{league}: {how_far}")


if __name__ == "__main__":
    sys.exit(main())
