"""Whether reinforcement alone moves nano: students on fresh problems, or teachers against the frozen base.

    python benchmarks/nano_reinforcement.py {student,teacher} [--seeds N] [--updates N] [--learning-rate R] [--base B]

The seeds are members of one stack: they play and learn in one batch, each on problems of its own, and never touch each
other. A student attempts problems that our generator proposes (deduction, depth 3 and 4, none twice) and is measured
greedily on held-out ones of that kind. A teacher proposes all three tasks from references, and the bare base attempts
them at temperature 1; its reward is the game's. Every update prints a line; the last lines say what changed, with the
mean over the seeds.
"""

from __future__ import annotations

import argparse
import ast
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from populora_agents.backends.torch import TorchBackend
from populora_agents.bases import Base, load_base
from populora_agents.lora import fresh_adapter
from populora_agents.stack import AdapterStack
from populora_agents.suites import Item, Suite
from populora_agents.trainer import Trainer
from populora_agents.types import AdapterVersion, Completion, Request, Rollout
from populora_env.config import GameConfig
from populora_env.game import Round, seeded_buffer
from populora_env.generator import Split, generate
from populora_env.judging import judge_attempts, judge_proposals
from populora_env.parsing import is_worked
from populora_env.prompts import get_style
from populora_env.types import Observation, Problem, Proposal, Task
from populora_env.verifier import Verifier

DEPTHS = (3, 4)
N_HELD_OUT = 400
STUDENT_PROBLEMS, STUDENT_ATTEMPTS = 32, 8
TEACHER_GROUPS, TEACHER_PROPOSALS, TEACHER_ATTEMPTS = 4, 8, 8
_STUDENT, _TEACHER, _HELD_OUT, _SAMPLING, _FRESH = range(5)
"""Purposes of the draws."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """One member a seed, on one stack."""

    base: Base
    stack: AdapterStack
    backend: TorchBackend
    trainer: Trainer
    members: tuple[str, ...]
    versions: dict[str, int]

    @classmethod
    def fresh(cls, base: Base, seeds: int) -> Population:
        """Return members that are the base still."""
        members = tuple(f"seed_{seed}" for seed in range(seeds))
        stack = AdapterStack(base.model, base.preset.lora, slots=seeds)
        for slot in range(seeds):
            generator = torch.Generator().manual_seed(int(np.random.SeedSequence([slot, _FRESH]).generate_state(1)[0]))
            stack.load(slot, fresh_adapter(base.model, base.preset.lora, generator))
        versions = dict.fromkeys(members, 0)
        slots = {member: slot for slot, member in enumerate(members)}
        backend = TorchBackend(base, stack, lambda member: (slots[member], versions[member]))
        return cls(base=base, stack=stack, backend=backend, trainer=Trainer(stack), members=members, versions=versions)

    def say(
        self, asked: Sequence[tuple[str | None, Observation]], limit: int, temperature: float, update: int
    ) -> list[Completion]:
        """Have members (None: the bare base) complete what they see, all in one batch."""
        drawn = np.random.SeedSequence([_SAMPLING, update, limit]).generate_state(max(1, len(asked)), np.uint64)
        requests = [
            Request(
                adapter=None if member is None else AdapterVersion(member_id=member, version=self.versions[member]),
                messages=observation.messages,
                max_new_tokens=limit,
                temperature=temperature,
                seed=int(seed >> 1),
            )
            for (member, observation), seed in zip(asked, drawn, strict=True)
        ]
        return self.backend.generate(requests)

    def learn(self, rollouts: Sequence[Rollout], learning_rate: float) -> None:
        """Update every member."""
        slots = {member: slot for slot, member in enumerate(self.members)}
        advantages = self.trainer.advantages(rollouts)
        self.trainer.update(rollouts, advantages, slots, dict.fromkeys(self.members, learning_rate))
        for member in self.members:
            self.versions[member] += 1


def students(
    population: Population, verifier: Verifier, updates: int, learning_rate: float | None
) -> dict[str, dict[str, float]]:
    """Train students on fresh problems; return the greedy accuracy and the worked share before and after, by member."""
    preset = population.base.preset
    config = GameConfig(style=preset.style, solver_seats=STUDENT_ATTEMPTS)
    held_out = Suite(
        name="nano-medium",
        items=tuple(
            Item(problem=problem, labels={})
            for problem in fresh_problems(np.random.default_rng([_HELD_OUT]), N_HELD_OUT, "held_out")
        ),
    )
    rngs = {member: np.random.default_rng([_STUDENT, seed]) for seed, member in enumerate(population.members)}
    figures = greedy(population, held_out, config, verifier, "before")
    for update in range(updates):
        rounds = [
            (member, posed(problem, config))
            for member, rng in rngs.items()
            for problem in fresh_problems(rng, STUDENT_PROBLEMS, "train")
        ]
        judge_proposals([one for _, one in rounds], verifier)
        rounds = [(member, one) for member, one in rounds if not one.settled]
        seats = [(member, one) for member, one in rounds for _ in range(STUDENT_ATTEMPTS)]
        asked = [(member, one.solver_observation()) for member, one in seats]
        said = population.say(asked, preset.max_new_tokens_answer, 1.0, update)
        for (_, one), completion in zip(seats, said, strict=True):
            one.attempt(completion.text)
        judge_attempts([one for _, one in rounds], verifier)
        rewards = [reward for _, one in rounds for reward in one.result().solver_rewards]
        groups = [f"{place // STUDENT_ATTEMPTS}" for place in range(len(seats))]
        members = [member for member, _ in seats]
        report(
            update,
            members,
            {
                "right": [float(reward == config.rewards.correct) for reward in rewards],
                "worked": [float(is_worked(completion.text)) for completion in said],
                "tokens": [float(len(completion.token_ids)) for completion in said],
            },
        )
        population.learn(
            rollouts_of(members, groups, ["solver/deduction"] * len(seats), said, rewards),
            learning_rate or preset.student_learning_rate,
        )
    after = greedy(population, held_out, config, verifier, "after")
    return {member: figures[member] | after[member] for member in population.members}


def fresh_problems(rng: np.random.Generator, count: int, split: Split) -> list[Problem]:
    """Return different deduction problems of medium depth."""
    problems: dict[str, Problem] = {}
    while len(problems) < count:
        depth = DEPTHS[int(rng.integers(len(DEPTHS)))]
        problem = generate(rng, task=Task.DEDUCTION, depth=depth, split=split).problem
        problems[problem.problem_id] = problem
    return list(problems.values())


def posed(problem: Problem, config: GameConfig) -> Round:
    """Return a round in which the generator has proposed a problem."""
    opened = Round(task=problem.task, references=(), config=config)
    proposal = Proposal(task=problem.task, program=problem.program, inputs=problem.inputs)
    opened.propose(get_style(config.style).write_proposal(proposal))
    return opened


def greedy(
    population: Population, suite: Suite, config: GameConfig, verifier: Verifier, when: str
) -> dict[str, dict[str, float]]:
    """Return each member's share solved of a suite, and its share of worked answers, both greedily."""
    observations = suite.observations(config)
    asked = [(member, observation) for member in population.members for observation in observations]
    said = population.say(asked, population.base.preset.max_new_tokens_answer, 0.0, 0)
    figures = {}
    for place, member in enumerate(population.members):
        texts = [completion.text for completion in said[place * len(observations) : (place + 1) * len(observations)]]
        figures[member] = {
            f"greedy_{when}": float(np.mean(suite.judge(texts, verifier, config))),
            f"worked_{when}": float(np.mean([is_worked(text) for text in texts])),
        }
    return figures


def teachers(
    population: Population, verifier: Verifier, updates: int, learning_rate: float | None
) -> dict[str, dict[str, float]]:
    """Train teachers against the bare base; return means over the first and the last five updates, by member."""
    preset = population.base.preset
    config = GameConfig(style=preset.style, solver_seats=TEACHER_ATTEMPTS, induction_inputs=preset.induction_inputs)
    buffer = seeded_buffer(config)
    rngs = {member: np.random.default_rng([_TEACHER, seed]) for seed, member in enumerate(population.members)}
    history: list[dict[str, dict[str, float]]] = []
    for update in range(updates):
        rounds = [
            (member, f"{member}/{task}/{group}", one)
            for member, rng in rngs.items()
            for task in Task
            for group in range(TEACHER_GROUPS)
            for references in (buffer.draw(task, preset.references, rng),)
            for one in (Round(task=task, references=references, config=config) for _ in range(TEACHER_PROPOSALS))
        ]
        asked = [(member, one.proposer_observation()) for member, _, one in rounds]
        said = population.say(asked, preset.max_new_tokens_proposal, 1.0, update)
        for (_, _, one), completion in zip(rounds, said, strict=True):
            one.propose(completion.text)
        judge_proposals([one for _, _, one in rounds], verifier)
        valid = [one for _, _, one in rounds if not one.settled]
        seats = [one for one in valid for _ in range(TEACHER_ATTEMPTS)]
        answers = population.say(
            [(None, one.solver_observation()) for one in seats], preset.max_new_tokens_answer, 1.0, update
        )
        for one, completion in zip(seats, answers, strict=True):
            one.attempt(completion.text)
        judge_attempts(valid, verifier)
        history.append(teacher_figures(rounds))
        print(json.dumps({"update": update, **history[-1]}), flush=True)
        members, groups, ones = zip(*rounds, strict=True)
        batches = [f"proposer/{one.task}" for one in ones]
        rewards = [one.result().proposer_reward for one in ones]
        population.learn(
            rollouts_of(members, groups, batches, said, rewards), learning_rate or preset.teacher_learning_rate
        )
    some = min(5, updates)
    return {
        member: {
            f"{name}_{when}": float(np.mean([figures[member][name] for figures in part]))
            for when, part in (("before", history[:some]), ("after", history[-some:]))
            for name in history[0][member]
        }
        for member in population.members
    }


def teacher_figures(rounds: Sequence[tuple[str, str, Round]]) -> dict[str, dict[str, float]]:
    """Return validity, solve rate of the valid problems, reward and distinct templates of each member's proposals."""
    figures = {}
    for member in dict.fromkeys(member for member, _, _ in rounds):
        results = [one.result() for name, _, one in rounds if name == member]
        rates = [result.solve_rate for result in results if result.solve_rate is not None]
        templates = [template(result.problem.program) for result in results if result.problem is not None]
        figures[member] = {
            "valid": len(rates) / len(results),
            "solve_rate": float(np.mean(rates)) if rates else 0.0,
            "reward": float(np.mean([result.proposer_reward for result in results])),
            "templates": len(set(templates)) / max(1, len(templates)),
        }
    return figures


def template(program: str) -> str:
    """Return a valid program with its constants masked, which tells how varied proposals are in kind."""
    tree = ast.parse(program)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            node.value = type(node.value).__name__
    return ast.dump(tree)


def rollouts_of(
    members: Sequence[str],
    groups: Sequence[str],
    batches: Sequence[str],
    said: Sequence[Completion],
    rewards: Sequence[float],
) -> list[Rollout]:
    """Return what the trainer learns from."""
    return [
        Rollout(
            member_id=member,
            batch=batch,
            group_id=group,
            prompt_ids=completion.prompt_ids,
            token_ids=completion.token_ids,
            logprobs=completion.logprobs,
            reward=reward,
        )
        for member, group, batch, completion, reward in zip(members, groups, batches, said, rewards, strict=True)
    ]


def report(update: int, members: Sequence[str], series: dict[str, list[float]]) -> None:
    """Print one line of means by member."""
    means = {
        member: {
            name: float(np.mean([value for value, whose in zip(values, members, strict=True) if whose == member]))
            for name, values in series.items()
        }
        for member in dict.fromkeys(members)
    }
    print(json.dumps({"update": update, **means}), flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Train and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("side", choices=("student", "teacher"), help="who learns")
    parser.add_argument("--seeds", type=int, default=3, help="members, each with a seed of its own (default: 3)")
    parser.add_argument("--updates", type=int, default=60, help="updates (default: 60)")
    parser.add_argument("--learning-rate", type=float, help="default: the base's preset's for that side")
    parser.add_argument("--base", default="nano", help="base model in the compact style (default: nano)")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch (default: 1)")
    given = parser.parse_args(arguments)
    if min(given.seeds, given.updates, given.threads) < 1:
        parser.error("--seeds, --updates and --threads must be at least 1")
    torch.set_num_threads(given.threads)
    population = Population.fresh(load_base(given.base), given.seeds)
    with Verifier() as verifier:
        learn = students if given.side == "student" else teachers
        figures = learn(population, verifier, given.updates, given.learning_rate)
    names = next(iter(figures.values()))
    mean = {name: float(np.mean([of[name] for of in figures.values()])) for name in names}
    print(json.dumps({"base": population.base.name, "updates": given.updates, "mean": mean, **figures}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
