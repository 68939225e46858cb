"""Where games are dealt: many at once between the members of a cast, from the tree or state by state.

Owns play and what it yields for learning. Owns no matches and no learning.

Symbols: G games, T slots of first players, S slots of second players.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from league.classic.cast import Cast
from league.classic.games import TABULAR, ClassicGame
from league.classic.learner import Choices
from league.classic.tree import Floats, Ints, Tree, draw

STRAY_ON = 0.75
"""Chance that a random move of a player who began with one is followed by another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deal:
    """Who plays each game."""

    first: Ints
    """Slots of the first players, [G]."""
    second: Ints
    """Slots of the second players, [G]."""
    learns: NDArray[np.bool_]
    """Whether the first, and the second player's choices are kept, [2, G]."""
    strays: NDArray[np.bool_] | None = None
    """Whether the first, and the second player begins with random moves, [2, G]; None where nobody does."""


class Table(Protocol):
    """A place to play one game at."""

    @property
    def payoff_games(self) -> int | None:
        """Games that a payoff is the mean of; None where it is exact."""
        ...

    def deal(self, deal: Deal, generator: np.random.Generator) -> tuple[Floats, Choices]:
        """Play; return what the second player gained in each game, [G], and the choices of those who learn."""
        ...

    def payoffs(self, first: Ints, second: Ints, generator: np.random.Generator) -> Floats:
        """Return the mean gain of each second player against each first one, [S, T]; exact where the tree is known."""
        ...


class TreeTable:
    """A table for games whose tree is known: policies are worked out once for all information states."""

    payoff_games: Final = None

    def __init__(self, game: ClassicGame, cast: Cast) -> None:
        """Walk the tree."""
        self.tree = Tree(game)
        self._game, self._cast = game, cast
        self._kept: dict[int, Floats] = {}

    def policies(self, slots: Ints, player: int) -> Floats:
        """Return the policies [P, I, A] of members as that player, which past ones always are."""
        present = self._cast.present.slots
        new = np.array([slot for slot in slots.tolist() if slot not in self._kept], dtype=np.int64)
        seen, legal = self.tree.seen[player], self.tree.legal[player]
        flat = self._cast.chances(
            np.repeat(new, len(seen)), np.tile(seen, (len(new), 1)), np.tile(legal, (len(new), 1))
        )
        worked_out = dict(zip(new.tolist(), flat.reshape(len(new), *legal.shape), strict=True))
        self._kept |= {slot: policy for slot, policy in worked_out.items() if slot >= present}
        return np.stack([worked_out[slot] if slot in worked_out else self._kept[slot] for slot in slots.tolist()])

    def deal(self, deal: Deal, generator: np.random.Generator) -> tuple[Floats, Choices]:
        """See `Table`."""
        slots, who = zip(*(np.unique(one, return_inverse=True) for one in (deal.first, deal.second)), strict=True)
        policies = self.policies(slots[0], 0), self.policies(slots[1], 1)
        gains, steps = self.tree.sample(policies, (who[0], who[1]), generator)
        parts: list[Choices] = []
        for player, owners in enumerate((deal.first, deal.second)):
            kept = (steps.player == player) & deal.learns[player][steps.game]
            games, infos, actions = steps.game[kept], steps.info[kept], steps.action[kept]
            odds = policies[player][who[player][games], infos, actions]
            parts.append(
                Choices(
                    slots=owners[games],
                    seen=self.tree.seen[player][infos],
                    legal=self.tree.legal[player][infos],
                    actions=actions,
                    logprobs=np.log(odds).astype(np.float32),
                    gains=(gains[games] * (1 if player else -1) / self._game.stake).astype(np.float32),
                )
            )
        return gains, _joined(parts)

    def payoffs(self, first: Ints, second: Ints, generator: np.random.Generator) -> Floats:
        """See `Table`."""
        del generator
        return self.tree.payoffs(self.policies(first, 0), self.policies(second, 1))


class _Part(NamedTuple):
    """What one move of all running games adds, a row a game."""

    games: Ints
    players: Ints
    kept: NDArray[np.bool_]
    made: Choices


class BoardTable:
    """A table for games without chance that are played state by state, all games side by side."""

    def __init__(self, game: ClassicGame, cast: Cast, *, payoff_games: int) -> None:
        """Prepare; `payoff_games` as in `Table`."""
        self._game, self._cast = game, cast
        self.payoff_games = payoff_games

    def deal(self, deal: Deal, generator: np.random.Generator) -> tuple[Floats, Choices]:
        """See `Table`; random moves are nobody's choices, and are not kept."""
        states = [self._game.spiel.new_initial_state() for _ in deal.first]
        owners = np.stack([deal.first, deal.second])
        astray = np.zeros_like(deal.learns) if deal.strays is None else deal.strays.copy()
        running = np.arange(len(states))
        parts: list[_Part] = []
        while len(running):
            now = [states[game] for game in running]
            players = np.array([state.current_player() for state in now])
            at_random = astray[players, running]
            choices = self._choose(now, players, owners[players, running], at_random, generator)
            for state, action in zip(now, choices.actions.tolist(), strict=True):
                state.apply_action(action)
            parts.append(_Part(running, players, deal.learns[players, running] & ~at_random, choices))
            astray[players, running] &= generator.random(len(running)) < STRAY_ON
            running = running[[not state.is_terminal() for state in now]]
        gains = np.array([state.player_return(1) for state in states])
        return gains, _joined([self._kept(part, gains) for part in parts])

    def payoffs(self, first: Ints, second: Ints, generator: np.random.Generator) -> Floats:
        """See `Table`."""
        columns, rows = np.meshgrid(first, second)
        each = self.payoff_games
        deal = Deal(
            first=np.repeat(columns.ravel(), each),
            second=np.repeat(rows.ravel(), each),
            learns=np.zeros((2, columns.size * each), dtype=np.bool_),
        )
        gains, _ = self.deal(deal, generator)
        means: Floats = gains.reshape(len(second), len(first), each).mean(axis=2)
        return means

    def _choose(
        self,
        states: list[object],
        players: Ints,
        slots: Ints,
        at_random: NDArray[np.bool_],
        generator: np.random.Generator,
    ) -> Choices:
        seen, legal = look(self._game, states, players)
        odds = np.where(at_random[:, None], legal, self._cast.chances(slots, seen, legal))
        actions = draw(odds, generator)
        return Choices(
            slots=slots,
            seen=seen,
            legal=legal,
            actions=actions,
            logprobs=np.log(odds[np.arange(len(actions)), actions]).astype(np.float32),
            gains=np.zeros(len(actions), dtype=np.float32),
        )

    def _kept(self, part: _Part, gains: Floats) -> Choices:
        """Keep the choices of those who learn, now that it is known how the games ended."""
        kept, made = part.kept, part.made
        signs = np.where(part.players == 1, 1.0, -1.0)
        return Choices(
            slots=made.slots[kept],
            seen=made.seen[kept],
            legal=made.legal[kept],
            actions=made.actions[kept],
            logprobs=made.logprobs[kept],
            gains=(gains[part.games] * signs / self._game.stake)[kept].astype(np.float32),
        )


def look(game: ClassicGame, states: list[object], players: Ints) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return what is seen, float32 [G, width], and what is legal, bool [G, A], by those whose turn it is."""
    seen = np.array([game.seen(one, player) for one, player in zip(states, players.tolist(), strict=True)])
    legal = np.array([one.legal_actions_mask() for one in states], dtype=np.bool_)  # type: ignore[attr-defined]
    return seen.astype(np.float32), legal


def make_table(game: ClassicGame, cast: Cast, *, payoff_games: int) -> TreeTable | BoardTable:
    """Return the table for a game; `payoff_games` as for `BoardTable`."""
    return TreeTable(game, cast) if game.name in TABULAR else BoardTable(game, cast, payoff_games=payoff_games)


def _joined(parts: list[Choices]) -> Choices:
    return Choices(
        slots=np.concatenate([part.slots for part in parts]),
        seen=np.concatenate([part.seen for part in parts]),
        legal=np.concatenate([part.legal for part in parts]),
        actions=np.concatenate([part.actions for part in parts]),
        logprobs=np.concatenate([part.logprobs for part in parts]),
        gains=np.concatenate([part.gains for part in parts]),
    )
