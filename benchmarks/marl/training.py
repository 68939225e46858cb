"""One run: an algorithm learns in an environment, and is measured on episodes that are the same for all.

Owns the loop and the measurement. Everything random in learning follows from the run's seed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from tensordict import TensorDict
from torch import Tensor

from benchmarks.marl.algorithms import FIRST, RANDOM
from benchmarks.marl.config import TrainingConfig
from benchmarks.marl.environments import ENVIRONMENTS, Environment
from benchmarks.marl.games import Games
from benchmarks.marl.learners import Learner, Shape
from benchmarks.marl.policy_gradient import PolicyGradient
from benchmarks.marl.q_learning import QLearning
from benchmarks.marl.summary import Job
from populora_env import Verifier

EVALUATION = 10**6
"""Seed of the games that are measured; no run learns from them."""
Choose = Callable[[TensorDict], Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a run."""

    curve: list[tuple[int, float]]
    """Steps of all games so far, and the mean score."""
    score: float
    """Mean over the last evaluation."""
    seconds: float
    cpu_seconds: float
    """Of this process; the verifier's processes are not in it."""


def play_and_learn(job: Job, config: TrainingConfig, verifier: Verifier | None) -> Outcome:
    """Return what an algorithm, or a reference, comes to.

    Args:
        job: Which run.
        config: Settings.
        verifier: For environments that need one.
    """
    environment = ENVIRONMENTS[job.environment]
    began, cpu_began = time.monotonic(), time.process_time()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(job.seed)  # the draws of TorchRL's distributions can be given no generator
        if job.algorithm in _REFERENCES:
            choose = _REFERENCES[job.algorithm]
            curve = [(0, evaluate(environment, choose, config.games, config.episodes, verifier))]
        else:
            curve = _learn(environment, job, config, verifier)
    return Outcome(
        curve=curve,
        score=curve[-1][1],
        seconds=time.monotonic() - began,
        cpu_seconds=time.process_time() - cpu_began,
    )


def _learn(
    environment: Environment, job: Job, config: TrainingConfig, verifier: Verifier | None
) -> list[tuple[int, float]]:
    games = Games(environment, games=config.games, seed=job.seed, verifier=verifier)
    shape = Shape(kinds=environment.kinds, width=games.width, choices=games.choices, gamma=environment.gamma)
    learner = make_learner(job.algorithm, shape, config)
    marks = {round(point * config.batches / config.points) for point in range(config.points + 1)}
    curve = []
    for done in range(config.batches + 1):
        if done in marks:
            episodes = config.episodes if done == config.batches else config.curve_episodes
            score = evaluate(environment, learner.best, config.games, episodes, verifier)
            curve.append((done * config.games * config.steps, score))
        if done < config.batches:
            learner.learn(_play(games, learner, config.steps), done / config.batches)
    games.close()
    return curve


def make_learner(algorithm: str, shape: Shape, config: TrainingConfig) -> Learner:
    """Return an untrained algorithm.

    Raises:
        ValueError: There is none of that name.
    """
    if algorithm in ("ippo", "mappo"):
        return PolicyGradient(shape, config.policy_gradient, central=algorithm == "mappo")
    if algorithm == "iql":
        return QLearning(shape, config.q_learning, mixture="none")
    if algorithm in ("vdn", "qmix"):
        return QLearning(shape, config.q_learning, mixture="sum" if algorithm == "vdn" else "monotonic")
    raise ValueError(f"`algorithm` must be ippo, mappo, iql, vdn or qmix, got {algorithm!r}")


def _play(games: Games, learner: Learner, steps: int) -> TensorDict:
    """Return a batch of play, [N, T]."""
    rows = []
    for _ in range(steps):
        seen = games.look()
        chosen = learner.act(seen)
        seen["next"] = games.step(chosen).after
        rows.append(seen)
    return torch.stack(rows, dim=1)


def evaluate(environment: Environment, choose: Choose, count: int, episodes: int, verifier: Verifier | None) -> float:
    """Return the mean score of episodes that begin alike in every call.

    Of each game as many episodes are taken: else short ones would count for more. What the environment has random play
    do is drawn a game on its own, so that all meet the same proposals, whatever the solvers do.

    Args:
        environment: What is played.
        choose: Who plays, but for the environment's fixed places.
        count: Games side by side.
        episodes: At least so many are played.
        verifier: For environments that need one.
    """
    games = Games(environment, games=count, seed=EVALUATION, verifier=verifier)
    others = [np.random.default_rng([EVALUATION, game]) for game in range(count)]
    scores: list[list[float]] = [[] for _ in range(count)]
    running, wanted = [0.0] * count, -(-episodes // count)
    while min(map(len, scores)) < wanted:
        seen = games.look()
        chosen = choose(seen)
        for place in environment.fixed:
            chosen[:, place] = torch.from_numpy(_drawn(seen["agents", "action_mask"][:, place].numpy(), others))
        step = games.step(chosen)
        for game, (gain, over) in enumerate(zip(step.gains, step.over, strict=True)):
            running[game] += gain
            if over:
                scores[game].append(running[game])
                running[game] = 0.0
    games.close()
    return float(np.mean([score for own in scores for score in own[:wanted]]))


def _drawn(masks: Any, generators: list[np.random.Generator]) -> Any:
    """Return a legal action a game; nothing is drawn where there is no choice."""
    legal = [np.flatnonzero(mask) for mask in masks]
    pairs = zip(legal, generators, strict=True)
    return np.array([own[generator.integers(len(own))] if len(own) > 1 else own[0] for own, generator in pairs])


def _random(seen: TensorDict) -> Tensor:
    mask = seen["agents", "action_mask"]
    return torch.multinomial(mask.flatten(0, -2).float(), 1).view(mask.shape[:-1])


def _first(seen: TensorDict) -> Tensor:
    first: Tensor = seen["agents", "action_mask"].int().argmax(-1)
    return first


_REFERENCES: Final[Mapping[str, Choose]] = {RANDOM: _random, FIRST: _first}
