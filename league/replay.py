"""Ratings worked out again from the matches, to hold the ratings table against.

Pure. Owns the order in which a run's matches rate; how one match changes two ratings is in `ratings`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from league.ratings import RatingRules, expected
from league.types import Rating, Row

RELATIVE_ERROR = 1e-9
"""By which another machine's arithmetic may differ."""


class Replay:
    """Follows a run step by step and tells where its tables differ from what they should say."""

    def __init__(self, rules: RatingRules) -> None:
        """Begin before the founding."""
        self._rules = rules
        self._ratings: dict[str, Rating] = {}
        self._played: set[str] = set()

    def step(self, ratings: Sequence[Row], matches: Sequence[Row]) -> Iterator[str]:
        """Go through one step; yield what is wrong in it, a line each.

        Args:
            ratings: The step's rows of the ratings table, as they stand there.
            matches: The step's rows of the matches table, in any order.
        """
        updates = [row for row in ratings if row["event"] == "update"]
        rated = [row for row in sorted(matches, key=lambda row: row["match_id"]) if row["kind"] == "train"]
        self._ratings |= {name: self._rules.before_step(self._ratings[name]) for name in self._played}
        yield from self._pairings(rated)
        order = [(row["match_id"], row[f"{side}_id"]) for row in rated for side in ("teacher", "student")]
        if order != [(row["match_id"], row["member_id"]) for row in updates]:
            yield "updates of ratings are not those of the rated matches in the order of match_id"
            return
        for number, match in enumerate(rated):
            yield from self._match(match, updates[2 * number : 2 * number + 2])
        yield from self._turnover([row for row in ratings if row["event"] != "update"])

    def _pairings(self, rated: Sequence[Row]) -> Iterator[str]:
        """Check what was expected of each match: that follows from the ratings before the step."""
        for match in rated:
            teacher, student = (self._ratings.get(match[f"{side}_id"]) for side in ("teacher", "student"))
            if teacher is None or student is None:
                yield f"match {match['match_id']} has a member that is not in the league then"
            elif not _close(match["expected"], share := expected(student, teacher, self._rules.constants)):
                yield f"match {match['match_id']}: `expected` should be {share!r}, is {match['expected']!r}"

    def _match(self, match: Row, updates: Sequence[Row]) -> Iterator[str]:
        teacher, student = match["teacher_id"], match["student_id"]
        if teacher not in self._ratings or student not in self._ratings:
            return  # told by `_pairings`
        before = self._ratings[teacher], self._ratings[student]
        try:
            *rated, outcome = self._rules.rate(
                *before, expected=match["expected"], observed=match["observed"], n_problems=match["n_problems"]
            )
        except ValueError as error:
            yield f"match {match['match_id']} cannot be rated: {error}"
            return
        if outcome != match["outcome"]:
            yield f"match {match['match_id']}: `outcome` should be {outcome!r}, is {match['outcome']!r}"
        for row, rating in zip(updates, rated, strict=True):
            yield from _compare(row, rating)
            self._ratings[row["member_id"]] = rating
            self._played.add(row["member_id"])

    def _turnover(self, rows: Sequence[Row]) -> Iterator[str]:
        prior = self._rules.constants.prior
        for row in rows:
            name = row["member_id"]
            self._played.discard(name)
            if row["event"] == "birth":
                self._ratings[name] = prior
                yield from _compare(row, prior)
            elif (last := self._ratings.pop(name, None)) is None:
                yield f"{name} has an event {row['event']!r} but is not in the league then"
            else:
                yield from _compare(row, last)


def _compare(row: Row, rating: Rating) -> Iterator[str]:
    if not (_close(row["mu"], rating.mu) and _close(row["sigma"], rating.sigma)):
        where = f" in match {row['match_id']}" if row["match_id"] is not None else ""
        yield (
            f"{row['event']} of {row['member_id']}{where} should be mu {rating.mu!r}, sigma {rating.sigma!r}, "
            f"is mu {row['mu']!r}, sigma {row['sigma']!r}"
        )


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=RELATIVE_ERROR, abs_tol=RELATIVE_ERROR)
