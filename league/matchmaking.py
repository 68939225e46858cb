"""Who meets whom: prioritised fictitious self-play on the ratings, or a plainer scheme.

Owns one step's pairing. Owns no ratings and no play. The generator is the only source of chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from league.ratings import STANDARD, RatingConstants, expected
from league.types import Match, Member, Rating

Array = NDArray[np.float64]

SchemeName = Literal["pfsp", "uniform", "round_robin", "latest"]
"""How a chooser comes to its opponent (docs/league.md)."""


CROSS_EVAL_IDS = 1 << 40
"""First id of a match in a cross table: a range of its own, so that measuring moves no id, and with it no seed, of the
matches that train."""


def pfsp_weights(probabilities: Array) -> Array:
    """Return p (1 - p): most for an opponent as likely to win as to lose (docs/paper.md, One training step, 1).

    Args:
        probabilities: float64, any shape, in [0, 1].
    """
    return probabilities * (1.0 - probabilities)


def with_floor(weights: Array, exploration: float) -> Array:
    """Return each row as chances, a share of which is spread evenly.

    Formula: (1 - exploration) w / sum(w) + exploration / pool; a row without any weight is even.

    Args:
        weights: float64 [choosers, pool], finite and >= 0.
        exploration: In [0, 1].
    """
    totals = weights.sum(axis=1, keepdims=True)
    even = np.full_like(weights, 1.0 / max(weights.shape[1], 1))
    chances: Array = np.divide(weights, totals, out=even.copy(), where=totals > 0)
    mixed: Array = (1.0 - exploration) * chances + exploration * even
    return mixed


def pair(weights: Array, generator: np.random.Generator) -> list[int]:
    """Give each chooser one of the pool, by weight, without replacement; an empty pool is filled again.

    Args:
        weights: float64 [choosers, pool], finite and >= 0; a row without any weight draws uniformly.
        generator: Decides the order in which choosers draw (else the last would always get the left-overs), and
            the draws.

    Returns:
        Index into the pool for each chooser. With at least as many choosers as there are in the pool, everybody in
        the pool is met, and no two of them differ by more than one in how often.

    Raises:
        ValueError: The pool is empty, or a weight is negative or not finite.
    """
    choosers, size = weights.shape
    if choosers and not size:
        raise ValueError("`weights` must have at least one column, got an empty pool")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError(f"`weights` must be finite and at least 0, got {weights!r}")
    chosen = [0] * choosers
    pool: list[int] = []
    for chooser in generator.permutation(choosers):
        pool = pool or list(range(size))
        chosen[chooser] = pool.pop(_draw(weights[chooser, pool], generator))
    return chosen


def _draw(weights: Array, generator: np.random.Generator) -> int:
    """Return an index by inversion of the cumulative weights."""
    cumulative = np.cumsum(weights / weights.max() if weights.max() > 0 else np.ones_like(weights))
    place = np.searchsorted(cumulative, generator.random() * cumulative[-1], side="right")
    return min(int(place), len(weights) - 1)


def make_matches(
    teachers: Sequence[Member],
    students: Sequence[Member],
    ratings: Mapping[str, Rating],
    *,
    step: int,
    first_match_id: int,
    generator: np.random.Generator,
    constants: RatingConstants = STANDARD,
    scheme: SchemeName = "pfsp",
    exploration: float = 0.0,
) -> tuple[Match, ...]:
    """Return one step's max(N, M) matches, in which every member plays at least once.

    The larger side chooses, one opponent each: with more students than teachers the students do, so that none idles.

    Args:
        teachers: N members, at least one.
        students: M members, at least one.
        ratings: By member id.
        step: Present step.
        first_match_id: Ids count up from here, in the order of the choosers.
        generator: Same generator, same matches.
        constants: Constants of the ratings.
        scheme: `pfsp` prefers even opponents, `uniform` draws them evenly; `round_robin` moves every chooser on by one
            opponent a step, `latest` leaves it with the present member of one slot: neither draws.
        exploration: Share of a `pfsp` draw that is even, whatever the ratings say, in [0, 1].

    Raises:
        ValueError: A side is empty, a member has no rating, or `exploration` is out of range.
    """
    if not teachers or not students:
        raise ValueError(f"each side needs a member, got {len(teachers)} teachers and {len(students)} students")
    unrated = [member.member_id for member in (*teachers, *students) if member.member_id not in ratings]
    if not 0 <= exploration <= 1:
        raise ValueError(f"`exploration` must be in [0, 1], got {exploration!r}")
    if unrated:
        raise ValueError(f"`ratings` lacks {unrated!r}")
    chances = np.array(
        [[expected(ratings[s.member_id], ratings[t.member_id], constants) for s in students] for t in teachers]
    )
    if len(teachers) >= len(students):
        places = list(enumerate(_choose(chances, scheme, exploration, step, generator)))
    else:
        chosen = _choose(chances.T, scheme, exploration, step, generator)
        places = [(teacher, student) for student, teacher in enumerate(chosen)]
    return tuple(
        Match(
            match_id=first_match_id + number,
            step=step,
            teacher=teachers[teacher],
            student=students[student],
            expected=float(chances[teacher, student]),
        )
        for number, (teacher, student) in enumerate(places)
    )


def cross_table(
    teachers: Sequence[Member],
    students: Sequence[Member],
    ratings: Mapping[str, Rating],
    *,
    step: int,
    table: int,
    constants: RatingConstants = STANDARD,
) -> tuple[Match, ...]:
    """Return a match of every teacher with every student, which trains and rates nobody.

    Args:
        teachers: N members.
        students: M members.
        ratings: By member id.
        step: Present step.
        table: Number of the table in the run, 0 up. Ids count up from `CROSS_EVAL_IDS`, through all tables.
        constants: Constants of the ratings.
    """
    pairs = [(teacher, student) for teacher in teachers for student in students]
    return tuple(
        Match(
            match_id=match_id,
            step=step,
            teacher=teacher,
            student=student,
            expected=expected(ratings[student.member_id], ratings[teacher.member_id], constants),
            kind="cross_eval",
        )
        for match_id, (teacher, student) in enumerate(pairs, start=CROSS_EVAL_IDS + table * len(pairs))
    )


def self_play(agent: Member, count: int, rating: Rating, *, step: int, first_match_id: int) -> tuple[Match, ...]:
    """Return `count` matches of a single agent with itself, which rate nobody."""
    return tuple(
        Match(
            match_id=first_match_id + number,
            step=step,
            teacher=agent,
            student=agent,
            expected=expected(rating, rating),
            kind="self_play",
        )
        for number in range(count)
    )


def _choose(
    chances: Array, scheme: SchemeName, exploration: float, step: int, generator: np.random.Generator
) -> list[int]:
    """Return the place in the pool of each chooser's opponent; `chances` is [choosers, pool], never wider than high."""
    choosers, size = chances.shape
    if scheme == "pfsp":
        return pair(with_floor(pfsp_weights(chances), exploration), generator)
    if scheme == "uniform":
        return pair(np.ones_like(chances), generator)
    shift = step if scheme == "round_robin" else 0
    return [(chooser + shift) % size for chooser in range(choosers)]
