"""What is told of a population on a classic game: NashConv over time, payoffs, circles, equilibrium, alpha-rank.

Owns numbers for people and files. Owns no play; payoffs come from the arena.

Symbols: S students, T teachers, past and present.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from league.classic.arena import ClassicArena
from league.classic.tables import TreeTable
from league.classic.tree import Floats, Ints
from league.payoff import Equilibrium, alpha_rank, cyclic_share, solve_zero_sum
from league.types import Member, Side

SEATS = (Side.TEACHER, Side.STUDENT)
"""The sides by seat."""
SHOWN = 24
"""Past members of each side in the printed payoff matrix; evenly spaced over time."""
NEAREST = 0.1
"""Policies that differ by no more, see `distinct`, are copies."""
_NOMINAL_GAMES = 1000
"""Games that an exact payoff counts as where counts are asked for."""
_SUPPORT = 1e-6


def mixtures(arena: ClassicArena, table: TreeTable) -> dict[str, tuple[Floats, Floats]]:
    """Return three mixtures of the teachers and of the students, each as one policy [I, A].

    - `latest`: the present members, each as often;
    - `average`: past and present members, each as often;
    - `mixture`: past and present members by the equilibrium of their payoffs.
    """
    (past_first, first), (past_second, second) = arena.slots(Side.TEACHER), arena.slots(Side.STUDENT)
    firsts, seconds = np.concatenate([past_first, first]), np.concatenate([past_second, second])
    policies = table.policies(firsts, 0), table.policies(seconds, 1)
    mixed = solve_zero_sum(table.tree.payoffs(*policies) / arena.game.stake)
    weights = {
        "latest": (_last(len(firsts), len(first)), _last(len(seconds), len(second))),
        "average": (np.full(len(firsts), 1 / len(firsts)), np.full(len(seconds), 1 / len(seconds))),
        "mixture": (mixed.column, mixed.row),
    }
    return {
        name: (table.tree.mixture(policies[0], ours, 0), table.tree.mixture(policies[1], theirs, 1))
        for name, (ours, theirs) in weights.items()
    }


def nash_convs(arena: ClassicArena) -> dict[str, float]:
    """Return NashConv of the three mixtures of `mixtures`; empty where the tree is too large for it."""
    table = arena.table
    if not isinstance(table, TreeTable):
        return {}
    return {name: table.tree.nash_conv(*pair) for name, pair in mixtures(arena, table).items()}


def payoff_report(arena: ClassicArena, members: Sequence[Member], *, step: int) -> dict[str, Any]:
    """Return the payoffs of past and present members, and what they say.

    Scores are of students against teachers, in [0, 1]. The cyclic share is that of `league.payoff`; of past members at
    most `SHOWN` of each side are looked at. Where payoffs are exact, `cyclic_share_distinct` is told too: that of all
    past and present members with near copies counted once, so that no pace weighs in it. Where they are means of games,
    `cyclic_noise` is told instead: the share that chance alone would make.
    """
    names: dict[Side, list[str]] = {}
    slots: dict[Side, Ints] = {}
    for side in SEATS:
        past = [one for one in arena.past if one.member.side is side]
        chosen = [past[place] for place in _spread(len(past), SHOWN)]
        present = [member for member in members if member.side is side]
        names[side] = [one.member.adapter.member_id for one in chosen] + [member.member_id for member in present]
        slots[side] = np.array([arena.slot_of(member) for member in [*(one.member for one in chosen), *present]])
    scores = 0.5 * (1 + arena.payoffs(slots[Side.TEACHER], slots[Side.STUDENT], "report", step=step))
    mixed = solve_zero_sum(scores)
    profiles = alpha_rank(scores, 1 - scores)
    games = arena.table.payoff_games
    share, noise = _circles(scores, games or _NOMINAL_GAMES) or (None, None)
    return {
        "teachers": names[Side.TEACHER],
        "students": names[Side.STUDENT],
        "scores": [[round(float(one), 4) for one in row] for row in scores],
        "cyclic_share": share,
        "cyclic_noise": None if games is None else noise,
        "cyclic_share_distinct": _circles_of_distinct(arena),
        "nash_value": mixed.value,
        "nash": {
            "teacher": _shares(names[Side.TEACHER], mixed.column),
            "student": _shares(names[Side.STUDENT], mixed.row),
        },
        "nash_support": _support(mixed),
        "alpha_rank": {
            "teacher": _shares(names[Side.TEACHER], profiles.sum(axis=0)),
            "student": _shares(names[Side.STUDENT], profiles.sum(axis=1)),
        },
    }


def _circles(scores: Floats, games: int) -> tuple[float, float] | None:
    return cyclic_share(scores * games, np.full_like(scores, games))


def _circles_of_distinct(arena: ClassicArena) -> float | None:
    """Return the cyclic share of those who differ; None on boards, where nobody's policy is known everywhere.

    Who stays long in one place leaves many copies of itself among past members, and who beats these seems skilful.
    """
    table = arena.table
    if not isinstance(table, TreeTable):
        return None
    first, second = (table.policies(np.concatenate(arena.slots(side)), seat) for seat, side in enumerate(SEATS))
    gains = table.tree.payoffs(first[distinct(first)], second[distinct(second)])
    found = _circles(arena.game.score(gains), _NOMINAL_GAMES)
    return None if found is None else found[0]


def distinct(policies: Floats, nearest: float = NEAREST) -> list[int]:
    """Return the places of policies [P, I, A] that differ from all chosen before them.

    Two differ by the largest distance between their chances in one information state, half the sum of what their
    actions' chances differ by; `nearest` or less counts as none.
    """
    chosen: list[int] = []
    for place, policy in enumerate(policies):
        far = 0.5 * np.abs(policies[chosen] - policy).sum(axis=2).max(axis=1, initial=0.0) > nearest
        if far.all():
            chosen.append(place)
    return chosen


def _support(mixed: Equilibrium) -> dict[str, int]:
    return {"teacher": int(np.sum(mixed.column > _SUPPORT)), "student": int(np.sum(mixed.row > _SUPPORT))}


def _shares(names: Sequence[str], shares: Floats) -> dict[str, float]:
    """Return those that have a share, the largest first."""
    pairs = sorted(zip(names, shares.tolist(), strict=True), key=lambda pair: -pair[1])
    return {name: round(share, 4) for name, share in pairs if share > 1e-4}


def _last(size: int, present: int) -> Floats:
    weights = np.zeros(size)
    weights[size - present :] = 1 / present
    return weights


def _spread(size: int, most: int) -> list[int]:
    """Return at most that many places of `size`, evenly spaced, the last one among them."""
    return sorted({round(place) for place in np.linspace(size - 1, 0, min(size, most))}) if size else []
