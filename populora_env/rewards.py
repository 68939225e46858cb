"""What a round pays: the solver by its verdict, the proposer by how many solvers succeeded (docs/paper.md, Rewards).

Pure. Owns the numbers' meaning; the numbers themselves are settings (`RewardConfig`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from populora_env.config import RepeatForm, RewardConfig
from populora_env.source import template
from populora_env.types import Role, Status, Verdict

AZR_EXTREME = -0.5
"""What `azr` pays a valid proposal that everybody or nobody solves, as that code does."""


def solver_reward(verdict: Verdict, config: RewardConfig) -> float:
    """Return the reward of one attempt: correct, format failure, or anything else (wrong).

    A program that dies, hangs or is killed is a wrong answer; only `format` is a format failure.
    """
    if verdict.ok:
        return config.correct
    return config.malformed if verdict.status is Status.FORMAT else config.wrong


def solve_rate(verdicts: Sequence[Verdict]) -> float:
    """Return rho, the share of attempts that are correct.

    Raises:
        ValueError: There is no attempt.
    """
    if not verdicts:
        raise ValueError("`verdicts` must hold at least one attempt, got none")
    return sum(verdict.ok for verdict in verdicts) / len(verdicts)


def proposer_reward(rho: float | None, config: RewardConfig, *, repeated: bool = False) -> float:
    """Return the reward of one proposal.

    | scheme | rho = 0 | 0 < rho < 1 | rho = 1 |
    |---|---|---|---|
    | `paper` | 0 | 1 - rho | 0 |
    | `linear` | 1 | 1 - rho | 0 |
    | `azr` | -0.5 | 1 - rho | -0.5 |
    | `variance` | 0 | 4 rho (1 - rho) | 0 |

    A valid problem that is a repeat is paid `repeat_penalty` less, but not less than an invalid proposal on account of
    that: max(reward - penalty, min(reward, invalid)). It is one if its program has the form (`repeat_key`) of the
    program of an earlier valid problem by the same proposer, of any task; induction problems are about programs that
    somebody else wrote, and are neither compared nor remembered. Earlier is, in the environment, in the same episode;
    in the league, since the member's birth, and proposals of one step count in the order of their matches, within a
    match in that of their tasks and numbers.

    Args:
        rho: Solve rate of the problem, in [0, 1]; None for an invalid or malformed proposal.
        config: Scheme and penalties.
        repeated: Whether a valid problem is a repeat.

    Raises:
        ValueError: `rho` outside [0, 1], or an unknown scheme.
    """
    if rho is None:
        return config.invalid
    if not 0.0 <= rho <= 1.0:
        raise ValueError(f"`rho` must be in [0, 1], got {rho!r}")
    reward = _difficulty_reward(rho, config)
    return max(reward - config.repeat_penalty, min(reward, config.invalid)) if repeated else reward


def _difficulty_reward(rho: float, config: RewardConfig) -> float:
    extreme = rho in (0.0, 1.0)
    if config.scheme == "paper":
        return 0.0 if extreme else 1.0 - rho
    if config.scheme == "linear":
        return 1.0 - rho
    if config.scheme == "azr":
        return AZR_EXTREME if extreme else 1.0 - rho
    if config.scheme == "variance":
        return 4.0 * rho * (1.0 - rho)
    raise ValueError(f"`scheme` must be paper, linear, azr or variance, got {config.scheme!r}")


def repeat_key(program: str, form: RepeatForm) -> str:
    """Return what a program, in normal form, has in common with its repeats: 32 hexadecimal digits.

    Raises:
        SourceError: A template is asked for of what is no program.
    """
    if form == "template":
        return template(program)
    return hashlib.blake2b(program.encode(), digest_size=16).hexdigest()


def reward_parts(role: Role, verdict: Verdict, reward: float) -> dict[str, float]:
    """Return the reward under the name of what it was paid for, 0 under the others; the parts add up to it.

    What was taken off a repeat is part of `difficulty`.
    """
    if role is Role.PROPOSER:
        paid_for = "difficulty" if verdict.ok else "validity"
    else:
        paid_for = "format" if verdict.status is Status.FORMAT else "correctness"
    return {name: reward if name == paid_for else 0.0 for name in ("validity", "difficulty", "format", "correctness")}
