"""The classic games: which there are, how OpenSpiel calls them, and what a network sees of them.

Owns the error where OpenSpiel is missing. Owns no play. The first seat is a teacher's, the second a
student's; all games are zero-sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

try:
    import pyspiel
except ImportError as error:
    raise ImportError("league.classic needs OpenSpiel: pip install 'populora-league[classic]'") from error

GameName = Literal["rps", "kuhn", "leduc", "tictactoe", "connect_four"]
"""Games by the names of the command line."""

SPIEL_NAMES: Mapping[GameName, str] = {
    "rps": "matrix_rps",
    "kuhn": "kuhn_poker",
    "leduc": "leduc_poker",
    "tictactoe": "tic_tac_toe",
    "connect_four": "connect_four",
}
"""What OpenSpiel calls them."""

TABULAR: frozenset[GameName] = frozenset({"rps", "kuhn", "leduc"})
"""Games whose whole tree fits in memory: payoffs and NashConv are exact there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicGame:
    """One game."""

    name: GameName
    spiel: Any
    """The pyspiel game; turns are taken one after the other."""
    width: int
    """Numbers that a network sees."""
    actions: int
    """Actions there are, legal or not."""
    stake: float
    """Largest gain of a player."""

    def seen(self, state: Any, player: int) -> list[float]:
        """Return what the player sees: the information state where something is hidden, else the board."""
        if self.name in TABULAR:
            return list(state.information_state_tensor(player))
        return list(state.observation_tensor(player))

    def score(self, gains: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the score in [0, 1] of a player who gains so much: 1 the largest win, 0.5 a draw."""
        return 0.5 * (1.0 + gains / self.stake)


def load_game(name: GameName) -> ClassicGame:
    """Return the game of that name.

    Raises:
        ValueError: There is none.
    """
    if name not in SPIEL_NAMES:
        raise ValueError(f"`name` must be one of {sorted(SPIEL_NAMES)}, got {name!r}")
    spiel = pyspiel.load_game(SPIEL_NAMES[name])
    if spiel.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
        spiel = pyspiel.convert_to_turn_based(spiel)
    shape = spiel.information_state_tensor_shape() if name in TABULAR else spiel.observation_tensor_shape()
    return ClassicGame(
        name=name,
        spiel=spiel,
        width=int(np.prod(shape)),
        actions=spiel.num_distinct_actions(),
        stake=max(abs(spiel.min_utility()), abs(spiel.max_utility())),
    )
