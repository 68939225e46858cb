"""Who is replaced, by which operator, from which parents.

Owns the plan of one evolution. Owns no weights (`operators`), no ids of children (`lineage`), no ratings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from league.types import Member, Rating, Side

ParentScheme = Literal["uniform", "rank"]
"""How parents are drawn among survivors: evenly, or the n-th worst with weight n."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """One member that goes, and how its successor is made."""

    victim: Member
    operator: str
    parents: tuple[Member, ...]
    """Better one first, distinct; survivors, except that the only member of a side is the parent of its own child."""


def worst_first(members: Sequence[Member], ratings: Mapping[str, Rating], c: float) -> list[Member]:
    """Return the members, worst first, by lower confidence bound mu - c sigma.

    Among equals the older goes first, then the one in the lower slot.

    Raises:
        ValueError: A member has no rating, or one that is not finite.
    """

    def key(member: Member) -> tuple[float, int, int, str]:
        rating = ratings.get(member.member_id)
        if rating is None:
            raise ValueError(f"`ratings` lacks {member.member_id!r}")
        bound = rating.lower_bound(c)
        if not math.isfinite(bound):
            raise ValueError(f"{member.member_id!r} must have a finite lower bound, got {rating!r}")
        return bound, member.born, member.slot, member.member_id

    return sorted(members, key=key)


def count_victims(size: int, fraction: float) -> int:
    """Return how many of a side of `size` are replaced: floor(fraction x size), at least one, at most all but one.

    A side of one replaces its member (by that member's own mutant child). At fraction 0 nobody is replaced.
    """
    if fraction == 0 or size == 0:
        return 0
    # The addend keeps products such as 0.29 x 100 = 28.999... from losing one.
    return max(1, min(math.floor(fraction * size + 1e-9), size - 1))


def select(
    members: Sequence[Member],
    ratings: Mapping[str, Rating],
    arities: Mapping[str, int],
    *,
    generator: np.random.Generator,
    step: int,
    weights: Mapping[str, float] | None = None,
    min_age: int = 0,
    fraction: float = 0.25,
    c: float = 1.0,
    crossover_probability: float = 0.5,
    elites: int = 0,
    parents: ParentScheme = "uniform",
) -> list[Replacement]:
    """Plan one evolution: replace the bottom fraction of each side by children of its survivors.

    Per victim: crossover with `crossover_probability` (never when only one survivor is there to breed; always or
    never when the operators are of one kind only), the operator among those of that arity by weight, parents among
    the survivors and distinct, evenly or by rank.

    Args:
        members: Both sides, in any order.
        ratings: By member id.
        arities: Operators that may be used, by name: 1 mutation, 2 crossover. At least one.
        generator: Same generator and same members (as a set), same plan.
        step: Present step, by which ages are told.
        weights: How often an operator is drawn beside others of its arity, > 0, by name; None draws them evenly.
        min_age: Steps that a member lives at least, >= 0. A child begins with the prior's sigma, so its lower bound is
            the lowest for some steps whatever it can do; without a minimum age the newest child is always the next
            to go. Where too few are old enough, fewer are replaced.
        fraction: Share of each side to replace, gamma in [0, 1]; above 0 at least one goes.
        c: Standard deviations below the mean at which members are compared, >= 0.
        crossover_probability: In [0, 1].
        elites: Best members of each side that never go, >= 0; on a side no larger than this nobody goes.
        parents: `uniform`, or `rank`: the n-th worst survivor is drawn with weight n.

    Returns:
        Replacements, teachers first, each side's worst first.

    Raises:
        ValueError: A value is out of range, a rating is missing or not finite, or a side that has one parent only
            has no mutation to use.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"`fraction` must be in [0, 1], got {fraction!r}")
    if not 0 <= crossover_probability <= 1:
        raise ValueError(f"`crossover_probability` must be in [0, 1], got {crossover_probability!r}")
    if elites < 0:
        raise ValueError(f"`elites` must be at least 0, got {elites!r}")
    if min_age < 0:
        raise ValueError(f"`min_age` must be at least 0, got {min_age!r}")
    if not (math.isfinite(c) and c >= 0):
        raise ValueError(f"`c` must be finite and at least 0, got {c!r}")
    if not arities or not set(arities.values()) <= {1, 2}:
        raise ValueError(f"`arities` must name operators of arity 1 or 2, got {dict(arities)!r}")
    odds = dict.fromkeys(arities, 1.0) if weights is None else dict(weights)
    if odds.keys() != arities.keys() or not all(0 < weight < math.inf for weight in odds.values()):
        raise ValueError(f"`weights` must be finite and above 0 for each of {sorted(arities)}, got {odds!r}")
    plan: list[Replacement] = []
    for side in Side:
        order = worst_first([member for member in members if member.side is side], ratings, c)
        old_enough = [member for member in order[: max(len(order) - elites, 0)] if step - member.born >= min_age]
        victims = old_enough[: count_victims(len(order), fraction)]
        survivors = [member for member in order if member not in victims] or order
        for victim in victims:
            plan.append(_replace(victim, survivors, arities, odds, crossover_probability, parents, generator))
    return plan


def _replace(
    victim: Member,
    survivors: Sequence[Member],
    arities: Mapping[str, int],
    odds: Mapping[str, float],
    crossover_probability: float,
    scheme: ParentScheme,
    generator: np.random.Generator,
) -> Replacement:
    """Draw operator and parents; `survivors` are ordered worst first."""
    names = {arity: sorted(name for name in arities if arities[name] == arity) for arity in (1, 2)}
    if len(survivors) == 1 and not names[1]:
        raise ValueError(f"{victim.side.value} side has one parent only, which needs a mutation, got {names[2]!r}")
    wants_crossover = bool(generator.random() < crossover_probability)
    can_cross = bool(names[2]) and len(survivors) > 1
    arity = 2 if can_cross and (wants_crossover or not names[1]) else 1
    shares = np.array([odds[name] for name in names[arity]])
    operator = names[arity][int(generator.choice(len(shares), p=shares / shares.sum()))]
    chances = None
    if scheme == "rank":
        chances = np.arange(1, len(survivors) + 1) / (len(survivors) * (len(survivors) + 1) / 2)
    places = generator.choice(len(survivors), size=arity, replace=False, p=chances)
    parents = tuple(survivors[place] for place in sorted(map(int, places), reverse=True))
    return Replacement(victim=victim, operator=operator, parents=parents)
