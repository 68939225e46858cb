"""What is played: the token game in its three reward modes, and two of mpe2 as a check of the harness.

Owns rules, who shares a network, and what an episode scores. Owns no learning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pettingzoo import ParallelEnv

from populora_env import Verifier, token_v0
from populora_env.token_rewards import RewardMode
from populora_env.token_table import RIGHT

SOLVERS: Final = 2
_TOKEN_RULES: Final[Mapping[str, Any]] = {
    "max_tokens": 8,
    "tasks": ["deduction"],
    "solver_seats": SOLVERS,
    "references": 1,
    "rounds": 1,
}
"""A small game: a problem of one type an episode, programs of one or two operations."""
_MPE_RULES: Final[Mapping[str, Any]] = {"max_cycles": 25}

Gain = Callable[[Mapping[str, float], Mapping[str, Mapping[str, Any]]], float]
"""From the rewards and infos of a step to what it adds to the episode's score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A game, its teams, and its score."""

    name: str
    meaning: str
    score: str
    """What an episode's score is, in words."""
    make: Callable[[Verifier | None], ParallelEnv[str, Any, int]]
    gain: Gain
    team: bool
    """Whether all agents are given one reward, the mean of their own: only then VDN and QMIX have a meaning."""
    kinds: tuple[tuple[int, ...], ...]
    """Places of the agents that share a network; together all places, in order."""
    fixed: tuple[int, ...] = ()
    """Places that random play takes in evaluations."""
    judged: bool = False
    """Whether it needs a verifier."""
    gamma: float = 1.0
    """Discount of a step."""
    rules: Mapping[str, Any]
    """What it is made with, beside a verifier."""


def _token(mode: RewardMode, meaning: str) -> Environment:
    def make(verifier: Verifier | None) -> ParallelEnv[str, Any, int]:
        return token_v0.parallel_env(verifier=verifier, reward_mode=mode, **_TOKEN_RULES)

    return Environment(
        name=f"token-{mode}",
        meaning=meaning,
        score="share of right answers",
        make=make,
        gain=_right,
        team=mode == "team",
        kinds=((0,), tuple(range(1, SOLVERS + 1))),
        fixed=() if mode == "team" else (0,),
        judged=True,
        rules=_TOKEN_RULES,
    )


def _right(_: Mapping[str, float], infos: Mapping[str, Mapping[str, Any]]) -> float:
    """Return the share of the solvers whose answer was judged right in this step."""
    right = [info["verdict"] == RIGHT for agent, info in infos.items() if agent != token_v0.PROPOSER]
    return float(sum(right) / len(right))


def _paid(rewards: Mapping[str, float], _: Mapping[str, Mapping[str, Any]]) -> float:
    return float(sum(rewards.values()) / len(rewards))


def _spread(_: Verifier | None) -> ParallelEnv[str, Any, int]:
    from mpe2 import simple_spread_v3  # an extra: the token game needs it not

    return simple_spread_v3.parallel_env(**_MPE_RULES)


def _speaker_listener(_: Verifier | None) -> ParallelEnv[str, Any, int]:
    from mpe2 import simple_speaker_listener_v4

    return simple_speaker_listener_v4.parallel_env(**_MPE_RULES)


_ALL: Final = (
    _token("individual", "each side its own reward, solvers for right answers, the proposer for difficulty"),
    _token("team", "one reward for all"),
    _token("zero_sum", "the proposer loses what the solvers win"),
    Environment(
        name="simple_spread",
        meaning="mpe2: three agents cover three landmarks",
        score="return, mean of the agents",
        make=_spread,
        gain=_paid,
        team=True,
        kinds=((0, 1, 2),),
        gamma=0.95,
        rules=_MPE_RULES,
    ),
    Environment(
        name="simple_speaker_listener",
        meaning="mpe2: one names a landmark, the other goes there",
        score="return, mean of the agents",
        make=_speaker_listener,
        gain=_paid,
        team=True,
        kinds=((0,), (1,)),
        gamma=0.95,
        rules=_MPE_RULES,
    ),
)
ENVIRONMENTS: Final[Mapping[str, Environment]] = {environment.name: environment for environment in _ALL}
