"""The rules of a game as plain keyword arguments, as the makers of environments take them.

Owns the names that people change most and their way into a `GameConfig`, which has all the settings and checks them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypedDict, get_args

from populora_env.config import GameConfig, RewardConfig, RewardScheme, StyleName
from populora_env.types import Task


class Rules(TypedDict, total=False):
    """Keyword arguments of `env`, `raw_env`, `parallel_env`, the solo environments and `make_vec`."""

    rounds: int
    """Rounds an episode."""
    max_cycles: int
    """The same under PettingZoo's name."""
    solver_seats: int
    """Attempts at a problem (G)."""
    tasks: Sequence[str]
    """Task types, by name, in the order in which rounds go through them."""
    references: int
    """Earlier problems shown to the proposer (K)."""
    induction_inputs: int
    """Inputs of an induction proposal."""
    reward: RewardScheme | RewardConfig
    """How the proposer is paid, by the name of the scheme, or all that is paid."""
    style: StyleName
    """How prompts are written."""


def make_config(config: GameConfig | None, rules: Rules, *, solver_seats: int | None = None) -> GameConfig:
    """Return the rules of a game.

    Args:
        config: What `rules` does not name; None means the default rules.
        rules: Keyword arguments; they win over `config`.
        solver_seats: Seats where neither is given; None means those of the default rules.

    Raises:
        TypeError: There is no such rule.
        ValueError: A value out of range.
    """
    if unknown := sorted(rules.keys() - Rules.__annotations__.keys()):
        raise TypeError(f"expected rules among {', '.join(Rules.__annotations__)}, got {', '.join(unknown)}")
    values: dict[str, Any] = {name: value for name, value in rules.items() if value is not None}
    base = config or (GameConfig() if solver_seats is None else GameConfig(solver_seats=solver_seats))
    rounds = {name: values.pop(name) for name in ("rounds", "max_cycles") if name in values}
    if len(set(rounds.values())) > 1:
        raise ValueError(f"`rounds` and `max_cycles` are one setting, expected the same number, got {rounds!r}")
    for count in rounds.values():
        values["rounds"] = count
    if "tasks" in values:
        values["tasks"] = _tasks(values["tasks"])
    if "reward" in values:
        values["rewards"] = _rewards(values.pop("reward"), base.rewards)
    if "style" in values:
        _check("style", values["style"], get_args(StyleName))
    return replace(base, **values)


def _tasks(tasks: str | Sequence[str]) -> tuple[Task, ...]:
    names = (tasks,) if isinstance(tasks, str) else tuple(tasks)
    for name in names:
        _check("tasks", name, tuple(map(str, Task)))
    return tuple(map(Task, names))


def _rewards(reward: RewardScheme | RewardConfig, base: RewardConfig) -> RewardConfig:
    if isinstance(reward, RewardConfig):
        return reward
    _check("reward", reward, get_args(RewardScheme))
    return replace(base, scheme=reward)


def _check(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"`{name}` must be among {', '.join(known)}, got {value!r}")
