"""How the token face shares out what a round paid: each its own, one reward for all, or one side against the other.

Pure. What the game itself pays is in `rewards`.
"""

from __future__ import annotations

from typing import Final, Literal

from populora_env.game import RoundResult

RewardMode = Literal["individual", "team", "zero_sum"]
REWARD_MODES: Final = ("individual", "team", "zero_sum")

_GRAIN = 2.0**-20
"""Shares of `zero_sum` are multiples of it, so that their sum is exactly 0 in any order of adding."""


def shared_rewards(result: RoundResult, mode: RewardMode, solver_seats: int) -> tuple[float, ...]:
    """Return what each agent is given for a round, the proposer first.

    | mode | valid proposal | invalid or malformed proposal |
    |---|---|---|
    | `individual` | as the game pays | as the game pays: solvers 0 |
    | `team` | all: the mean over all agents of what the game pays | all: that mean |
    | `zero_sum` | each solver: its game reward / G | each solver: minus the proposer's game reward / G |

    G solver seats. In `zero_sum` the solvers' shares are rounded to multiples of 2^-20, and the proposer is given minus
    their sum: all numbers add up to exactly 0. What the game pays for difficulty has no part in it.

    Raises:
        ValueError: Unknown mode.
    """
    solvers = result.solver_rewards or (0.0,) * solver_seats
    if mode == "individual":
        return (result.proposer_reward, *solvers)
    if mode == "team":
        return ((result.proposer_reward + sum(solvers)) / (1 + solver_seats),) * (1 + solver_seats)
    if mode == "zero_sum":
        paid = result.solver_rewards or (-result.proposer_reward,) * solver_seats
        shares = tuple(round(reward / solver_seats / _GRAIN) * _GRAIN for reward in paid)
        return (-sum(shares), *shares)
    raise ValueError(f"`reward_mode` must be one of {REWARD_MODES}, got {mode!r}")
