"""`python -m populora_agents.nano.evaluate`: what a base, or one adapter on it, can do on problems it has not seen.

Owns the measurement: proposals at temperature 1 from references of the seed buffer, answers greedily on `nano-heldout`,
all judged by the verifier, and what working an answer out is worth: direct and worked ones, each forced by how the
answer begins.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Final

import numpy as np

from populora_agents.bases import Base, load_base
from populora_agents.nano.heldout import COUNT, nano_heldout
from populora_agents.nano.speaker import Speaker
from populora_agents.suites import Figures, Speak, Suite
from populora_env.config import GameConfig
from populora_env.game import Round, seeded_buffer
from populora_env.generator_drafts import VARIABLES
from populora_env.generator_families import Family, family_of
from populora_env.judging import judge_proposals
from populora_env.parsing import is_worked
from populora_env.prompts import ANSWER
from populora_env.types import Problem, Task
from populora_env.verifier import Verifier

_DESCRIPTION = """Measure a base, or one adapter on it: proposals at temperature 1, greedy answers on held-out problems
of our generator, all judged by the verifier. Prints shares."""

_PURPOSE: Final = 0x6E616E6F
"""Keeps the draws of evaluation apart from those of training, which are (seed, chunk)."""

DIRECT, WORKED = f"{ANSWER}\n", f"{VARIABLES[0]} = "
"""How an answer in the compact style begins: at once, or with the value of the first argument."""


def evaluate(base: Base, speak: Speak, verifier: Verifier, *, seed: int, count: int) -> Figures:
    """Return all figures: `proposing`, the shares of the suite solved greedily, and `working`.

    Args:
        base: Names style and token budgets.
        speak: Who is measured.
        verifier: Judge.
        seed: Root of all draws; the suite has no part in it.
        count: Proposals of each task, and problems of each task.
    """
    rng = np.random.default_rng([_PURPOSE, seed])
    config = GameConfig(style=base.preset.style, induction_inputs=base.preset.induction_inputs)
    suite = nano_heldout(count)
    texts = speak(suite.observations(config), 0.0, base.preset.max_new_tokens_answer)
    return (
        proposing(base, speak, verifier, config, rng, count)
        | suite.shares(suite.judge(texts, verifier, config))
        | working(base, speak, verifier, config, suite.of_task(Task.DEDUCTION))
    )


def proposing(
    base: Base, speak: Speak, verifier: Verifier, config: GameConfig, rng: np.random.Generator, count: int
) -> Figures:
    """Return the shares of valid proposals at temperature 1: `valid` overall, and by task.

    Of the valid ones, `distinct` is the share of different problems, `family_text` and so on that of each family.
    """
    buffer = seeded_buffer(config)
    rounds = [
        Round(task=task, references=buffer.draw(task, max(1, base.preset.references), rng), config=config)
        for task in Task
        for _ in range(count)
    ]
    texts = speak([r.proposer_observation() for r in rounds], 1.0, base.preset.max_new_tokens_proposal)
    for r, text in zip(rounds, texts, strict=True):
        r.propose(text)
    judge_proposals(rounds, verifier)
    valid = [r.problem for r in rounds if r.problem is not None]
    made = [_family(problem) for problem in valid]
    figures = {"valid": len(valid) / len(rounds)}
    figures["distinct"] = len({problem.problem_id for problem in valid}) / max(1, len(valid))
    figures |= {f"valid_{task}": sum(p.task is task for p in valid) / count for task in Task}
    return figures | {f"family_{family}": made.count(family) / max(1, len(made)) for family in Family}


def working(base: Base, speak: Speak, verifier: Verifier, config: GameConfig, suite: Suite) -> Figures:
    """Return how often answers are worked out, and what that is worth.

    `worked_share` and `worked_share_greedy` are the shares of worked answers at temperature 1 and greedily; `direct`,
    `direct_depth_4`, `worked` and so on the shares solved greedily by answers that are forced to be direct or worked.
    """
    observations, budget = suite.observations(config), base.preset.max_new_tokens_answer
    figures = {}
    for name, temperature in (("worked_share", 1.0), ("worked_share_greedy", 0.0)):
        texts = speak(observations, temperature, budget)
        figures[name] = sum(is_worked(text) for text in texts) / len(texts)
    for name, begin in (("direct", DIRECT), ("worked", WORKED)):
        solved = suite.judge(speak(observations, 0.0, budget, begin), verifier, config)
        shares = suite.shares(solved).items()
        figures |= {key.replace("deduction", name, 1): share for key, share in shares if "family" not in key}
    return figures


def _family(problem: Problem) -> Family | None:
    """Return the family of a valid problem, None where an input is no literal of plain types."""
    try:
        return family_of(problem.program, problem.inputs[0])
    except (SyntaxError, ValueError):
        return None


def main(argv: list[str] | None = None) -> int:
    """Parse the flags, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m populora_agents.nano.evaluate", description=_DESCRIPTION)
    parser.add_argument("--base", default="nano", help="base model (default: nano)")
    parser.add_argument("--adapter", type=Path, help="folder of a LoRA adapter in PEFT's format")
    parser.add_argument("--seed", type=int, default=0, help="root of all draws (default: 0)")
    parser.add_argument(
        "--count", type=int, default=COUNT, help=f"proposals a task, problems a task (default: {COUNT}, nano-heldout)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args(argv)
    if arguments.count < 1 or arguments.seed < 0:
        parser.error("--count must be at least 1 and --seed at least 0")
    try:
        base = load_base(arguments.base)
        speak = Speaker(base, arguments.adapter, seed=arguments.seed)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    with Verifier() as verifier:
        figures = evaluate(base, speak, verifier, seed=arguments.seed, count=arguments.count)
    lines = [json.dumps(figures)] if arguments.json else [f"{name:32s} {100 * v:5.1f} %" for name, v in figures.items()]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
