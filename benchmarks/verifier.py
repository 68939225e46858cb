"""What the sandbox costs: our verifier beside a fresh `python -I` for each program, in turn, in one run.

    python benchmarks/verifier.py [--json] [--rounds N]

Each round judges the same abduction answers both ways, with as many callers as zygotes; medians over the rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from populora_env.config import VerifierConfig
from populora_env.generator import generate_problem
from populora_env.types import Answer, Problem, Task
from populora_env.verifier import Verifier

_SCRIPT = "{program}\nprint(repr(f(*{given})))"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default: 5)")
    arguments = parser.parse_args()
    callers = max(2, len(os.sched_getaffinity(0)))
    rng = np.random.default_rng(0)
    problems = [generate_problem(rng, task=Task.ABDUCTION) for _ in range(40 * callers)]
    with Verifier(VerifierConfig(workers=callers, cache_size=0)) as verifier:
        ours, fresh = [], []
        for _ in range(arguments.rounds):
            ours.append(_rate(problems, lambda some: _sandboxed(verifier, some)))
            fresh.append(_rate(problems, lambda some: _unsandboxed(some, callers)))
    figures = {
        "ratios": {"vs_fresh_python": statistics.median(a / b for a, b in zip(ours, fresh, strict=True))},
        "answers_per_s": {"verifier": statistics.median(ours), "fresh_python": statistics.median(fresh)},
        "callers": callers,
        "rounds": arguments.rounds,
    }
    if arguments.json:
        print(json.dumps(figures))
        return
    print(f"answers a second, median of {arguments.rounds} rounds, {callers} callers")
    print(f"  verifier       {figures['answers_per_s']['verifier']:8.0f}")
    print(f"  fresh python   {figures['answers_per_s']['fresh_python']:8.0f}   (no sandbox)")
    print(f"  ratio          {figures['ratios']['vs_fresh_python']:8.1f}")


def _rate(problems: list[Problem], judge: Callable[[list[Problem]], int]) -> float:
    """Return answers a second; every one of them must be found right."""
    began = time.perf_counter()
    right = judge(problems)
    seconds = time.perf_counter() - began
    if right != len(problems):
        raise RuntimeError(f"expected {len(problems)} right answers, got {right}")
    return len(problems) / seconds


def _sandboxed(verifier: Verifier, problems: list[Problem]) -> int:
    answers = [(problem, Answer(task=problem.task, text=problem.inputs[0])) for problem in problems]
    return sum(verdict.ok for verdict in verifier.check_answers(answers))


def _unsandboxed(problems: list[Problem], callers: int) -> int:
    with ThreadPoolExecutor(callers) as pool:
        return sum(pool.map(_runs_right, problems))


def _runs_right(problem: Problem) -> bool:
    script = _SCRIPT.format(program=problem.program, given=problem.inputs[0])
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.strip() == problem.outputs[0]


if __name__ == "__main__":
    main()
