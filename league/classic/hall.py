"""Past members as opponents: who was frozen when, and which of them the present members meet.

Owns the choice of past opponents. Owns no weights and no play; those are the arena's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from league import seeds
from league.classic.arena import ClassicArena
from league.classic.options import Settings
from league.classic.tree import Floats
from league.hall_of_fame import past_matches
from league.payoff import Equilibrium, solve_zero_sum
from league.ratings import expected
from league.types import Match, Member, Rating, Side


class PastMembers:
    """Implements `league.types.Opponents`: freezes everybody now and then, and draws opponents by the scheme."""

    def __init__(self, arena: ClassicArena, settings: Settings, *, seed: int) -> None:
        """Nobody is past yet; `seed` is the root of the league's randomness."""
        self._arena, self._settings, self._seed = arena, settings, seed
        self._gains: Floats = np.zeros((0, 0))
        self._equilibrium: Equilibrium | None = None

    def matches(
        self, members: Sequence[Member], ratings: Mapping[str, Rating], *, step: int, first_match_id: int
    ) -> tuple[Match, ...]:
        """Freeze if it is time, then let every present member meet past ones of the other side."""
        if (step - 1) % self._settings.freeze_every == 0:
            for member in members:
                self._arena.freeze(member, ratings[member.member_id])
            self._equilibrium = None
        count = self._settings.past_matches * len(members)
        generator = seeds.generator(self._seed, step, "past opponents")
        if self._settings.opponents == "psro":
            return self._by_equilibrium(members, ratings, generator, step=step, first_match_id=first_match_id)
        return past_matches(
            members,
            self._arena.past,
            ratings,
            count=count,
            step=step,
            first_match_id=first_match_id,
            generator=generator,
            draw="uniform" if self._settings.opponents == "uniform" else "pfsp",
            exploration=self._settings.exploration,
        )

    def _by_equilibrium(
        self,
        members: Sequence[Member],
        ratings: Mapping[str, Rating],
        generator: np.random.Generator,
        *,
        step: int,
        first_match_id: int,
    ) -> tuple[Match, ...]:
        """Draw each present member's opponents by the share that the equilibrium gives them."""
        mixed = self._solved(step)
        matches: list[Match] = []
        for member in members:
            teaches = member.side is Side.TEACHER
            pool = [one for one in self._arena.past if one.member.side is not member.side]
            shares = mixed.row if teaches else mixed.column
            for place in generator.choice(len(pool), size=self._settings.past_matches, p=shares):
                past, rating = pool[place], ratings[member.member_id]
                matches.append(
                    Match(
                        match_id=first_match_id + len(matches),
                        step=step,
                        teacher=member if teaches else past.member,
                        student=past.member if teaches else member,
                        expected=expected(past.rating, rating) if teaches else expected(rating, past.rating),
                        kind="frozen",
                    )
                )
        return tuple(matches)

    def _solved(self, step: int) -> Equilibrium:
        """Return the equilibrium of all past members' payoffs; those of pairs that were there before are kept."""
        if self._equilibrium is None:
            first, _ = self._arena.slots(Side.TEACHER)
            second, _ = self._arena.slots(Side.STUDENT)
            rows, columns = self._gains.shape
            gains = np.zeros((len(second), len(first)))
            gains[:rows, :columns] = self._gains
            gains[rows:] = self._arena.payoffs(first, second[rows:], "new students", step=step)
            if rows:
                gains[:rows, columns:] = self._arena.payoffs(first[columns:], second[:rows], "new teachers", step=step)
            self._gains, self._equilibrium = gains, solve_zero_sum(gains)
        return self._equilibrium
