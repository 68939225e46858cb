"""Downstream evaluation of a run: `python -m league.evaluate RUN --suite humaneval+,gsm8k`.

Owns the command line and the exit status: 0 done, 1 the sandbox or the disk failed, 2 something the user has to change.
Suites, asking, grading and statistics are in `league.evaluation`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from league.display import complain, tell
from league.machine import choose_device, prepare_torch
from league.storage import StorageError, refuse_existing
from league.types import Side
from populora_env.config import VerifierConfig
from populora_env.scoring import ProgramLimits
from populora_env.verifier import SandboxError, Verifier

if TYPE_CHECKING:
    from league.evaluation.players import Player
    from league.evaluation.report import Line
    from league.evaluation.runner import Result
    from league.evaluation.types import Suite
    from populora_agents.bases import Base

_MEMORY_BYTES = 2 << 30
"""Address space of a candidate: some of MBPP+'s inputs take a good part of it."""
ANSWERS_FILE, FIGURES_FILE = "answers.parquet", "figures.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What was found out about all suites."""

    lines: list[Line]
    results: list[Result]


class _Parser(argparse.ArgumentParser):
    """Tells errors as the other commands do: one line."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage."""
        raise ValueError(f"{message} (--help explains the flags)")


def _parser() -> argparse.ArgumentParser:
    from league.evaluation.suites import SUITES

    parser = _Parser(
        prog="python -m league.evaluate",
        description="Score the members of a run, its base and a baseline run on published benchmarks, in one batch.",
        epilog=f"suites: {', '.join(SUITES)}; docs/evaluation.md says where their data come from",
    )
    add = parser.add_argument
    add("run", metavar="RUN", nargs="?", type=Path, help="run folder; without one only --base is scored")
    add("--suite", metavar="NAMES", required=True, help="names with commas between, or all")
    add(
        "--data",
        metavar="DIR",
        type=Path,
        help="folder with the sets as NAME.jsonl (default: fetched by datasets)",
    )
    add("--baseline", metavar="RUN", type=Path, help="run whose members are the baseline, for example a single agent")
    add("--base", metavar="NAME", help="base model (default: the run's)")
    add("--side", choices=[side.value for side in Side], help="members of one side only")
    add("--prompt", choices=["auto", "chat", "base"], default="auto", help="a message to answer, or a text to continue")
    add("--samples", metavar="N", type=int, default=1, help="answers to each question (default: 1)")
    add("--temperature", metavar="T", type=float, help="0 is greedy (default: 0, with more samples 0.8)")
    add("--top-p", metavar="P", type=float, default=1.0, help="(default: 1)")
    add("--k", metavar="K", default="1", help="pass@k, with commas between (default: 1)")
    add("--limit", metavar="N", type=int, help="first N problems of each suite only")
    add("--max-new-tokens", metavar="N", type=int, help="of an answer (default: the suite's)")
    add("--seed", metavar="N", type=int, default=0, help="root of all draws (default: 0)")
    add(
        "--device",
        metavar="NAME",
        default="auto",
        help="cpu, cuda, cuda:N or auto: the first GPU, else the CPU",
    )
    add("--threads", metavar="N", type=int, default=0, help="of torch (default: one a core)")
    add("--out", metavar="DIR", type=Path, help="folder to make (default: a new one in evaluations/)")
    add("--json", action="store_true", help="print one JSON object")
    add("--check-canonical", action="store_true", help="grade the sets' own solutions; no model is loaded")
    return parser


def _suites(given: argparse.Namespace, verifier: Verifier) -> list[Suite]:
    from league.evaluation.suites import SUITES, make_suite

    names = list(SUITES) if given.suite == "all" else [name.strip().lower() for name in given.suite.split(",")]
    return [make_suite(name, given.data, verifier, ProgramLimits(), given.limit) for name in dict.fromkeys(names)]


def _check_canonical(suites: Sequence[Suite], *, as_json: bool) -> int:
    """Grade the canonical solutions; 0 if all are right."""
    found = {}
    for suite in suites:
        if not suite.canonical:
            if not as_json:
                tell(f"{suite.name}: the set has no solutions")
            continue
        grades = suite.grader.grade(suite.canonical)
        wrong = {
            suite.questions[answer.place].question_id: grade.detail
            for answer, grade in zip(suite.canonical, grades, strict=True)
            if not grade.correct
        }
        found[suite.name] = {"right": len(grades) - len(wrong), "of": len(grades), "wrong": wrong}
        if not as_json:
            named = "".join(f"  {name}: {detail}" for name, detail in wrong.items())
            tell(f"{suite.name}: {len(grades) - len(wrong)} of {len(grades)} canonical solutions are right{named}")
    if as_json:
        tell(json.dumps(found))
    return 0


def _asked_ks(given: argparse.Namespace) -> list[int]:
    try:
        ks = [int(part) for part in given.k.split(",")]
    except ValueError as error:
        raise ValueError(f"--k takes whole numbers with commas between, got {given.k!r}") from error
    if not all(1 <= k <= given.samples for k in ks):
        raise ValueError(f"--k must lie between 1 and --samples ({given.samples}), got {given.k!r}")
    return ks


def _evaluate(given: argparse.Namespace, suites: Sequence[Suite]) -> _Outcome:
    from league.evaluation.players import BARE, members_of, seat
    from league.evaluation.report import summarise
    from league.evaluation.runner import Asking, ask
    from populora_agents.prompting import PromptEncoder

    ks = _asked_ks(given)
    prepare_torch(given.threads)
    temperature = (0.0 if given.samples == 1 else 0.8) if given.temperature is None else given.temperature
    base = _load_base(given)
    asking = Asking(
        manner="base" if base.tokenizer.chat_template is None else "chat",
        samples=given.samples,
        temperature=temperature,
        top_p=given.top_p,
        max_new_tokens=given.max_new_tokens,
        seed=given.seed,
    )
    players: list[Player] = [BARE]
    if given.run is not None:
        players += members_of(given.run, "member", Side(given.side) if given.side else None)
    if given.baseline is not None:
        players += members_of(given.baseline, "baseline")
    backend, encoder, context = seat(base, players), PromptEncoder(base.tokenizer), base.context_tokens
    results: list[Result] = []
    lines: list[Line] = []
    with contextlib.closing(backend):
        for suite in suites:
            found = ask(
                suite,
                players,
                backend,
                asking,
                lambda messages: context is None or len(encoder.encode(messages)) < context,
            )
            results += found
            lines += summarise(found, ks, given.seed)
    return _Outcome(lines=lines, results=results)


def _load_base(given: argparse.Namespace) -> Base:
    """Return the base; asked by texts to continue, it has no chat template."""
    from league.evaluation.players import base_of
    from populora_agents.bases import load_base

    if given.run is None and given.base is None:
        raise ValueError("say which RUN to evaluate, or --base NAME for a base alone")
    base = load_base(given.base or base_of(given.run), device=choose_device(given.device))
    if given.baseline is not None and given.base is None and base_of(given.baseline) != base_of(given.run):
        raise ValueError(
            f"{given.baseline} was played on {base_of(given.baseline)!r}, {given.run} on {base_of(given.run)!r}; "
            "say --base NAME if they are the same"
        )
    if given.prompt == "chat" and base.tokenizer.chat_template is None:
        raise ValueError(f"base {base.name!r} has no chat template: say --prompt base")
    if given.prompt == "base":
        base.tokenizer.chat_template = None
    return base


def _keep(out: Path, given: argparse.Namespace, outcome: _Outcome) -> None:
    from league.evaluation.report import as_object, write_answers

    out.mkdir(parents=True, exist_ok=True)
    write_answers(out / ANSWERS_FILE, outcome.results)
    settings = {name: str(value) if isinstance(value, Path) else value for name, value in vars(given).items()}
    figures = {"settings": settings, "figures": as_object(outcome.lines)}
    (out / FIGURES_FILE).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def _main(arguments: Sequence[str] | None) -> int:
    given = _parser().parse_args(arguments)
    from league.evaluation.report import as_object, table

    name = given.run.resolve().name if given.run else Path(given.base or "base").name
    out = given.out or Path("evaluations") / f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    refuse_existing(out)
    with Verifier(VerifierConfig(memory_bytes=_MEMORY_BYTES)) as verifier:
        suites = _suites(given, verifier)
        if given.check_canonical:
            return _check_canonical(suites, as_json=given.json)
        outcome = _evaluate(given, suites)
    _keep(out, given, outcome)
    if given.json:
        tell(json.dumps({"figures": as_object(outcome.lines), "out": str(out)}))
    else:
        for line in table(outcome.lines):
            tell(line)
        tell(str(out))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Do as the command line says; return the exit status."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    try:
        return _main(arguments)
    except ValueError as error:
        complain(str(error))
        return 2
    except StorageError as error:
        complain(str(error))
        return 2
    except SandboxError as error:
        complain(f"the sandbox: {error}")
        return 1
    except OSError as error:
        complain(str(error))
        return 1
    except KeyboardInterrupt:
        complain("interrupted; nothing was written")
        return 130


if __name__ == "__main__":
    sys.exit(main())
