"""The hall of fame: saved past versions of members, whom the living meet now and then (`--past-opponents`).

Pure. Owns who enters, who stays when it is full, how many matches a step has against it, and who is drawn. Owns no
weights: an entry names an adapter that the run has saved, and `retention` keeps that as long as the entry is there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np

from league import seeds
from league.matchmaking import pair, pfsp_weights, with_floor
from league.ratings import STANDARD, RatingConstants, expected
from league.types import Match, MatchResult, Member, Rating, Row, Side

PastDraw = Literal["pfsp", "uniform"]
"""How a living member comes to its past opponent: by p(1 - p) of the rating at freezing, or evenly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastMember:
    """A version of a member that plays and learns no more."""

    member: Member
    """As it was; `frozen`."""
    rating: Rating
    """When it was frozen; it never moves again."""

    @property
    def name(self) -> str:
        """Its adapter, `MEMBER/VERSION`."""
        return f"{self.member.member_id}/{self.member.version}"

    def row(self) -> Row:
        """Return it as JSON has it."""
        return {"member": asdict(self.member), "rating": asdict(self.rating)}

    @classmethod
    def of_row(cls, row: Row) -> PastMember:
        """Return what `row` gave; numbers survive JSON bit for bit.

        Raises:
            KeyError, TypeError, ValueError: It is another thing's.
        """
        member = Member(**{**row["member"], "side": Side(row["member"]["side"])})
        return cls(member=member, rating=Rating(**row["rating"]))


def admit(
    hall: Sequence[PastMember],
    saved: Iterable[Member],
    ratings: Mapping[str, Rating],
    *,
    size: int,
    seed: int,
) -> list[PastMember]:
    """Return the hall after members were saved: a uniform sample of all that ever entered, `size` of each side.

    Version 0 does not enter: founders are all the bare base, and a child is its parents with a little noise.
    Each version has a fixed priority by the root seed, and the first `size` stay: whoever left would never come back,
    so the sample needs no memory of how many there were.

    Args:
        hall: Before.
        saved: Whose present weights were saved.
        ratings: By member id, as they are at saving.
        size: Entries of each side that stay, >= 1.
        seed: Root seed of the run.
    """
    present = {one.name: one for one in hall}
    for member in saved:
        if member.version:
            frozen = PastMember(member=replace(member, frozen=True), rating=ratings[member.member_id])
            present.setdefault(frozen.name, frozen)
    order = sorted(present.values(), key=lambda one: (seeds.seed(seed, 0, "hall of fame", one.name), one.name))
    stay = {one.name for side in Side for one in [each for each in order if each.member.side is side][:size]}
    return [one for one in present.values() if one.name in stay]


def most_past_matches(matches: int, share: float) -> int:
    """Return the most matches against the past that come on top of `matches` in one step, `share` as in `due`."""
    return math.ceil(_a_step(matches, share))


def due(step: int, matches: int, share: float) -> int:
    """Return how many matches against the past a step has; fractions are made up for in later steps.

    Args:
        step: Present step, >= 1.
        matches: Of the step among the living, which they do not replace.
        share: Of all matches, in [0, 1).
    """
    rate = _a_step(matches, share)
    return math.floor(step * rate) - math.floor((step - 1) * rate)


def _a_step(matches: int, share: float) -> float:
    """Return the mean number a step; rounded, so that 1 / 5 of 4 + 1 matches is one."""
    if not 0 <= share < 1:
        raise ValueError(f"`share` must be in [0, 1), got {share!r}")
    return round(matches * share / (1 - share), 9)


def past_matches(
    living: Sequence[Member],
    hall: Sequence[PastMember],
    ratings: Mapping[str, Rating],
    *,
    count: int,
    step: int,
    first_match_id: int,
    generator: np.random.Generator,
    constants: RatingConstants = STANDARD,
    draw: PastDraw = "pfsp",
    exploration: float = 0.0,
) -> tuple[Match, ...]:
    """Return one step's matches against the past, kind `frozen`.

    Who plays one is drawn evenly among the living of both sides, nobody twice before everybody has. Opponents are of
    the other side, without replacement while there are enough; where the hall has none yet, there is no match. Past
    members get slots of their own, 0 up, in the order of the matches.

    Args:
        living: Members of both sides.
        hall: Whom they may meet.
        ratings: Of the living, by member id.
        count: Matches wanted, >= 0.
        step: Present step.
        first_match_id: Ids count up from here.
        generator: Same generator, same matches.
        constants: Constants of the ratings.
        draw: How opponents are drawn.
        exploration: Share of a `pfsp` draw that is even, in [0, 1].
    """
    order: list[Member] = []
    while len(order) < count:
        order += [living[place] for place in generator.permutation(len(living))]
    met: list[tuple[Member, PastMember]] = []
    for side in Side:
        choosers = [member for member in order[:count] if member.side is side]
        pool = [one for one in hall if one.member.side is not side]
        if choosers and pool:
            chances = np.array(
                [[_wins(ratings[m.member_id], m.side, one, constants) for one in pool] for m in choosers]
            )
            weights = with_floor(pfsp_weights(chances), exploration) if draw == "pfsp" else np.ones_like(chances)
            chosen = pair(weights, generator)
            met += [(one, pool[place]) for one, place in zip(choosers, chosen, strict=True)]
    slots = {name: slot for slot, name in enumerate(dict.fromkeys(past.name for _, past in met))}
    return tuple(
        _match(member, past, slots[past.name], ratings[member.member_id], constants, step=step, match_id=match_id)
        for match_id, (member, past) in enumerate(met, start=first_match_id)
    )


def past_members(matches: Iterable[Match]) -> list[Member]:
    """Return the frozen members of a step's matches, by slot."""
    frozen = {one for match in matches for one in (match.teacher, match.student) if one.frozen}
    return sorted(frozen, key=lambda member: member.slot)


def past_metrics(results: Iterable[MatchResult]) -> dict[str, float]:
    """Return `SIDE/past_solve_rate`, what was solved in matches of living members of a side against past ones."""
    rates: dict[Side, list[float]] = {}
    for result in results:
        if result.match.kind == "frozen" and result.observed is not None:
            living = Side.STUDENT if result.match.teacher.frozen else Side.TEACHER
            rates.setdefault(living, []).append(result.observed)
    return {f"{side.value}/past_solve_rate": sum(rates[side]) / len(rates[side]) for side in Side if side in rates}


def _wins(rating: Rating, side: Side, past: PastMember, constants: RatingConstants) -> float:
    """Return p(student wins) between a living member of a side and a past one of the other."""
    student, teacher = (past.rating, rating) if side is Side.TEACHER else (rating, past.rating)
    return expected(student, teacher, constants)


def _match(
    member: Member, past: PastMember, slot: int, rating: Rating, constants: RatingConstants, *, step: int, match_id: int
) -> Match:
    frozen = replace(past.member, slot=slot)
    teacher, student = (member, frozen) if member.side is Side.TEACHER else (frozen, member)
    chance = _wins(rating, member.side, past, constants)
    return Match(match_id=match_id, step=step, teacher=teacher, student=student, expected=chance, kind="frozen")
