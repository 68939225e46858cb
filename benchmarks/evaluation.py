"""What judging HumanEval+ takes, and whether what is caught is what EvalPlus catches.

    python benchmarks/evaluation.py --data FOLDER               # 164 problems x 8 samples
    python benchmarks/evaluation.py --data FOLDER --evalplus    # one changed operator a solution, beside EvalPlus

FOLDER holds humanevalplus.jsonl (docs/evaluation.md). The samples of a problem are its canonical solution, as often as
not with one operator changed, each with a comment of its own, so that none is judged by another's grade. `--evalplus`
needs the package `evalplus` (`pip install --no-deps evalplus`, and psutil), whose check of one program is called
directly on the same inputs and results; nothing is downloaded.
"""

from __future__ import annotations

import argparse
import ast
import json
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from league.evaluation.data import read_rows
from league.evaluation.humaneval import HUMANEVAL_PLUS, humaneval_plus
from league.evaluation.types import Answer, Suite
from populora_env.config import VerifierConfig
from populora_env.scoring import ProgramLimits
from populora_env.verifier import Verifier

_SWAPS: dict[type, type] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_MEMORY = 2 << 30
_TIME_LIMIT_S = 4.0


def mutant(source: str, rng: np.random.Generator) -> str | None:
    """Return a program with one operator changed, None if it has none that can be."""
    tree = ast.parse(source)
    places: list[tuple[Any, str, int | None]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in _SWAPS:
            places.append((node, "op", None))
        if isinstance(node, ast.Compare):
            places += [(node, "ops", number) for number, op in enumerate(node.ops) if type(op) in _SWAPS]
    if not places:
        return None
    node, field, number = places[int(rng.integers(len(places)))]
    if number is None:
        setattr(node, field, _SWAPS[type(node.op)]())
    else:
        node.ops[number] = _SWAPS[type(node.ops[number])]()
    return ast.unparse(tree)


def measure(suite: Suite, sources: Sequence[str], samples: int) -> dict[str, Any]:
    """Return seconds for all samples of all problems, and the share that passed."""
    rng = np.random.default_rng(0)
    answers = []
    for place, source in enumerate(sources):
        for number in range(samples):
            text = (mutant(source, rng) or source) if number % 2 else source
            answers.append(Answer(place=place, text=f"```python\n{text}\n# {number}\n```", manner="chat"))
    started = time.perf_counter()
    grades = suite.grader.grade(answers)
    seconds = time.perf_counter() - started
    return {"answers": len(answers), "seconds": seconds, "passed": sum(grade.correct for grade in grades) / len(grades)}


def compare(suite: Suite, rows: Sequence[Any], sources: Sequence[str]) -> dict[str, Any]:
    """Return how many mutants each of the two catches."""
    from evalplus.eval import untrusted_check

    rng = np.random.default_rng(1)
    mutants = {place: text for place, source in enumerate(sources) if (text := mutant(source, rng)) is not None}
    grades = suite.grader.grade(
        [Answer(place=place, text=f"```python\n{text}\n```", manner="chat") for place, text in mutants.items()]
    )
    ours = {place: not grade.correct for place, grade in zip(mutants, grades, strict=True)}
    theirs = {}
    for place, text in mutants.items():
        row = rows[place]
        inputs = [*row["base_input"], *row["plus_input"]]
        expected, seconds = _run_canonical(sources[place], row["entry_point"], inputs)
        status, _ = untrusted_check(
            "humaneval", text, inputs, row["entry_point"], expected, row["atol"], seconds, True, _TIME_LIMIT_S
        )
        theirs[place] = status != "pass"
    return {
        "mutants": len(mutants),
        "caught": sum(ours.values()),
        "caught_by_evalplus": sum(theirs.values()),
        "differ": [
            f"{rows[place]['task_id']}: ours {ours[place]}" for place in mutants if ours[place] != theirs[place]
        ],
    }


def _run_canonical(source: str, entry: str, inputs: Sequence[Any]) -> tuple[list[Any], list[float]]:
    """Run a canonical solution, which is trusted, in this process."""
    names: dict[str, Any] = {}
    exec(source, names)
    expected, seconds = [], []
    for arguments in inputs:
        given = json.loads(json.dumps(arguments))
        started = time.perf_counter()
        expected.append(names[entry](*given))
        seconds.append(time.perf_counter() - started)
    return expected, seconds


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with humanevalplus.jsonl")
    parser.add_argument("--samples", type=int, default=8, help="of each problem (default: 8)")
    parser.add_argument("--limit", type=int, help="first problems only")
    parser.add_argument("--evalplus", action="store_true", help="compare what is caught with EvalPlus instead")
    given = parser.parse_args(arguments)
    rows = read_rows("humaneval+", HUMANEVAL_PLUS, given.data)[: given.limit]
    sources = [row["prompt"] + row["canonical_solution"] for row in rows]
    with Verifier(VerifierConfig(memory_bytes=_MEMORY)) as verifier:
        suite = humaneval_plus(given.data, verifier, ProgramLimits(), given.limit)
        figures = compare(suite, rows, sources) if given.evalplus else measure(suite, sources, given.samples)
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    figures["cpu_seconds"] = sum(usage.ru_utime + usage.ru_stime for usage in spent)
    sys.stdout.write(json.dumps(figures) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
