"""`python -m populora_agents.nano.evaluate`: what a base, or one adapter on it, can do on fresh problems.

Owns the measurement: proposals at temperature 1 from references of the seed buffer, answers greedily on problems of our
generator, all judged by the verifier. Problems are fresh: their seed is never that of training.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from populora_agents.backends.torch import TorchBackend
from populora_agents.bases import Base, load_base
from populora_agents.lora import load_adapter
from populora_agents.stack import AdapterStack
from populora_agents.types import AdapterVersion, Request
from populora_env.config import GameConfig
from populora_env.game import Round, seeded_buffer
from populora_env.generator import MAX_DEPTH, generate_problem
from populora_env.judging import judge_proposals
from populora_env.parsing import parse_answer
from populora_env.prompts import get_style
from populora_env.types import Answer, Observation, Problem, Role, Task
from populora_env.verifier import Verifier

_DESCRIPTION = """Measure a base, or one adapter on it: proposals at temperature 1, greedy answers on fresh problems of
our generator, all judged by the verifier. Prints shares."""

_PURPOSE = 0x6E616E6F
"""Keeps the seeds of evaluation apart from those of training, which are (seed, chunk)."""

Speak = Callable[[Sequence[Observation], float, int], list[str]]
"""Observations, temperature and token budget to texts."""

Figures = dict[str, float]


def evaluate(base: Base, speak: Speak, verifier: Verifier, *, seed: int, count: int) -> Figures:
    """Return the shares `valid`, `distinct` (of the valid), and for each task solved overall and by depth.

    Args:
        base: Names style and token budgets.
        speak: Who is measured.
        verifier: Judge.
        seed: Root of all draws.
        count: Proposals of each task, and problems of each task and depth.
    """
    rng = np.random.default_rng([_PURPOSE, seed])
    config = GameConfig(style=base.preset.style, induction_inputs=base.preset.induction_inputs)
    figures = proposing(base, speak, verifier, config, rng, count)
    for task in Task:
        by_depth = {
            depth: solving(base, speak, verifier, config, [_fresh(rng, task, config, depth) for _ in range(count)])
            for depth in range(1, MAX_DEPTH + 1)
        }
        figures[str(task)] = float(np.mean(list(by_depth.values())))
        figures |= {f"{task}_depth_{depth}": share for depth, share in by_depth.items()}
    return figures


def proposing(
    base: Base, speak: Speak, verifier: Verifier, config: GameConfig, rng: np.random.Generator, count: int
) -> Figures:
    """Return the share of valid proposals at temperature 1, overall and by task, and of distinct ones among them."""
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
    figures = {"valid": len(valid) / len(rounds)}
    figures["distinct"] = len({problem.problem_id for problem in valid}) / max(1, len(valid))
    return figures | {f"valid_{task}": sum(p.task is task for p in valid) / count for task in Task}


def solving(base: Base, speak: Speak, verifier: Verifier, config: GameConfig, problems: Sequence[Problem]) -> float:
    """Return the share of problems that are solved greedily."""
    style = get_style(config.style)
    prompts = [style.solver_prompt(problem) for problem in problems]
    seen = [
        Observation(role=Role.SOLVER, task=problem.task, prompt=prompt, messages=style.messages(prompt))
        for problem, prompt in zip(problems, prompts, strict=True)
    ]
    texts = speak(seen, 0.0, base.preset.max_new_tokens_answer)
    answers = [parse_answer(t, task=p.task, config=config) for p, t in zip(problems, texts, strict=True)]
    judged = [(p, a) for p, a in zip(problems, answers, strict=True) if isinstance(a, Answer)]
    return sum(verdict.ok for verdict in verifier.check_answers(judged)) / len(problems)


def speaker(base: Base, adapter: Path | None, *, seed: int) -> Speak:
    """Return the bare base's voice, or that of the adapter in a folder.

    Raises:
        ValueError: The adapter does not fit the base.
    """
    member = AdapterVersion(member_id="evaluated", version=0) if adapter else None
    stack = None
    if adapter:
        factors, config = load_adapter(adapter)
        stack = AdapterStack(base.model, config, slots=1)
        stack.load(0, factors)
    backend = TorchBackend(base, stack, {"evaluated": (0, 0)})

    def speak(observations: Sequence[Observation], temperature: float, max_new_tokens: int) -> list[str]:
        requests = [
            Request(
                adapter=member,
                messages=observation.messages,
                max_new_tokens=max_new_tokens,
                temperature=temperature,
                seed=seed * len(observations) + place,
            )
            for place, observation in enumerate(observations)
        ]
        return [completion.text for completion in backend.generate(requests)]

    return speak


def _fresh(rng: np.random.Generator, task: Task, config: GameConfig, depth: int) -> Problem:
    return generate_problem(rng, task=task, n_inputs=config.induction_inputs, depth=depth)


def main(argv: list[str] | None = None) -> int:
    """Parse the flags, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m populora_agents.nano.evaluate", description=_DESCRIPTION)
    parser.add_argument("--base", default="nano", help="base model (default: nano)")
    parser.add_argument("--adapter", type=Path, help="folder of a LoRA adapter in PEFT's format")
    parser.add_argument("--seed", type=int, default=0, help="root of all draws (default: 0)")
    parser.add_argument(
        "--count", type=int, default=100, help="proposals a task, problems a task and depth (default: 100)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args(argv)
    if arguments.count < 1 or arguments.seed < 0:
        parser.error("--count must be at least 1 and --seed at least 0")
    try:
        base = load_base(arguments.base)
        speak = speaker(base, arguments.adapter, seed=arguments.seed)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    with Verifier() as verifier:
        figures = evaluate(base, speak, verifier, seed=arguments.seed, count=arguments.count)
    lines = [json.dumps(figures)] if arguments.json else [f"{name:20s} {100 * v:5.1f} %" for name, v in figures.items()]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
