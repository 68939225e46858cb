"""The closing table of a run: who stands where, worked out from the tables alone.

Pure. Every number follows from the rows of `ratings`, `matches` and `lineage`; nothing comes from a run's memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from league.lineage import side_of
from league.types import Rating, Row, Side

_TRAINING = ("train", "self_play")
"""Kinds of match in which the present members learn from each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One member that is in the league at the end."""

    member_id: str
    side: Side
    rating: Rating
    """Its last in the ratings table."""
    bound: float
    """mu - caution x sigma."""
    won: int
    """Rated matches whose outcome was for its side."""
    drawn: int
    """Rated matches that were drawn."""
    lost: int
    """Rated matches whose outcome was for the other side."""
    solve_rate: float | None
    """Mean of `observed` over the matches it learnt from that had a valid problem; low is good for a teacher."""
    born: int
    """Step of birth."""
    operator: str
    """What made it; `founder` for the first ones."""
    parents: tuple[str, ...]
    """Ids of its parents."""


def standings(
    ratings: Sequence[Row], matches: Sequence[Row], lineage: Sequence[Row], *, caution: float
) -> list[Standing]:
    """Return the members that were not retired: teachers, then students, each side's best (by bound) first.

    Args:
        ratings: Rows of the ratings table, in order.
        matches: Rows of the matches table.
        lineage: Rows of the lineage table.
        caution: Standard deviations below the mean at which members are compared.
    """
    last = {row["member_id"]: row for row in ratings}
    standing = [
        _standing(row, Rating(mu=final["mu"], sigma=final["sigma"]), matches, caution)
        for row in lineage
        if (final := last[row["child_id"]])["event"] != "retire"
    ]
    return sorted(standing, key=lambda one: (list(Side).index(one.side), -one.bound, one.born, one.member_id))


def _standing(birth: Row, rating: Rating, matches: Sequence[Row], caution: float) -> Standing:
    member_id = birth["child_id"]
    side = side_of(member_id)
    own = [row for row in matches if row["kind"] in _TRAINING and row[side.match_column] == member_id]
    observed = [row["observed"] for row in own if row["observed"] is not None]
    outcomes = [row["outcome"] for row in own if row["kind"] == "train"]
    won, drawn = outcomes.count(side.value), outcomes.count("draw")
    return Standing(
        member_id=member_id,
        side=side,
        rating=rating,
        bound=rating.lower_bound(caution),
        won=won,
        drawn=drawn,
        lost=len(outcomes) - won - drawn,
        solve_rate=sum(observed) / len(observed) if observed else None,
        born=birth["step"],
        operator=birth["operator"],
        parents=tuple(birth["parents"]),
    )
