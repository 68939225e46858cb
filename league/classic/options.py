"""The settings of `python -m league.classic`, and what goes with each game.

Owns values and their ranges. Imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from league.options import at_least

GameChoice = Literal["rps", "kuhn", "leduc", "tictactoe", "connect_four"]
"""Games by the names of the command line."""

BOARDS: tuple[GameChoice, ...] = ("tictactoe", "connect_four")
"""Games that are played state by state, whose tree is not kept."""

OpponentScheme = Literal["pfsp", "uniform", "latest", "psro"]
"""Whom members learn against; see docs/classic.md."""

SCHEMES: tuple[OpponentScheme, ...] = ("pfsp", "uniform", "latest", "psro")

_HINT = "(default: the game's)"
GameInt = Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint=_HINT)]
GameFloat = Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint=_HINT)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicOptions:
    """Play the league on a classic game whose answer is known, and compare it with self-play and PSRO."""

    game: GameChoice
    """Which game; teachers take the first seat, students the second."""
    opponents: tuple[OpponentScheme, ...] = SCHEMES
    """Whom members learn against, one league each: even opponents with past members (pfsp, the league's own), anybody
    with past members (uniform), the present member of the same slot (latest self-play), or past members by the
    equilibrium of their payoff matrix (psro); the last two without evolution."""
    seed: int = 0
    """Root of all randomness, >= 0."""
    seeds: int = 1
    """Leagues of each kind, with seeds from `seed` on, >= 1."""
    steps: GameInt = None
    """Steps of a league, >= 1."""
    teachers: int = 4
    """Members that play first, >= 1."""
    students: int = 4
    """Members that play second, >= 1."""
    games: GameInt = None
    """Games of a match among the present, >= 1; see docs/classic.md for those with past members."""
    past: int = 4
    """Matches of a present member with past ones a step, >= 0."""
    freeze_every: GameInt = None
    """Steps between two freezings of all members as past ones, >= 1."""
    evolve_every: GameInt = None
    """Steps between two evolutions, >= 0; 0 never evolves."""
    measurements: int = 10
    """How often NashConv is measured, evenly over the steps, >= 1."""
    learning_rate: GameFloat = None
    """Of all members, > 0."""
    cooling: GameFloat = None
    """Learning rate at the last step, of that in the first half of the steps; it falls in a line. > 0, <= 1."""
    entropy: GameFloat = None
    """What a nat of entropy is worth to a learner, in standard deviations of its gains, >= 0."""
    stray: GameFloat = None
    """Share of a match's games that one of the two, drawn evenly, begins with random moves, which nobody learns from;
    for positions that good play never meets. >= 0, < 1; on boards only."""
    passes: GameInt = None
    """Updates from the same games, >= 1."""
    hidden: GameInt = None
    """Units of each of the base's two hidden layers, >= 1."""
    lora_rank: GameInt = None
    """Of every member, >= 1."""
    threads: int = 1
    """Of torch, >= 0; 0 takes all cores."""
    json: bool = False
    """Print one JSON object instead of tables."""
    out: Path | None = None
    """Keep run folders with tables and adapters here, SCHEME-SEED each; must not exist or be empty."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        at_least(self, seed=0, seeds=1, steps=1, teachers=1, students=1, games=1, past=0, freeze_every=1)
        at_least(self, evolve_every=0, measurements=1, entropy=0, passes=1, hidden=1, lora_rank=1, threads=0)
        if self.learning_rate is not None and not 0 < self.learning_rate < float("inf"):
            raise ValueError(f"`learning_rate` must be finite and above 0, got {self.learning_rate!r}")
        if self.cooling is not None and not 0 < self.cooling <= 1:
            raise ValueError(f"`cooling` must be above 0 and at most 1, got {self.cooling!r}")
        if self.stray is not None and not 0 <= self.stray < 1:
            raise ValueError(f"`stray` must be at least 0 and below 1, got {self.stray!r}")
        if self.stray and self.game not in BOARDS:
            raise ValueError(f"`stray` is for the boards {', '.join(BOARDS)}; leave it out with {self.game}")
        if not self.past and "psro" in self.opponents:
            raise ValueError("`past` must be at least 1 with psro, which learns from past members alone, got 0")
        if not self.opponents or len(set(self.opponents)) < len(self.opponents):
            raise ValueError(f"`opponents` must name each scheme once at most and one at least, got {self.opponents!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one league, all known."""

    opponents: OpponentScheme
    """Whom members learn against."""
    teachers: int
    students: int
    steps: int
    games: int
    """Games by which a member learns from others of the present in a step, and as many from past ones."""
    past: int
    """Matches of a present member with past ones a step, where the scheme has them."""
    freeze_every: int
    evolve_every: int
    learning_rate: float
    cooling: float
    """Learning rate at the last step, of that in the first half of the steps."""
    entropy: float
    stray: float
    """Share of games that one of the two begins with random moves; they do not count for ratings."""
    passes: int
    hidden: int
    lora_rank: int
    exploration: float = 0.1
    """Share of a draw by pfsp that is even."""
    payoff_games: int = 16
    """Games by which a payoff is estimated where it is not exact."""

    def learning_rate_at(self, step: int) -> float:
        """Return the learning rate of a step, from 1 on."""
        fallen = max(0.0, 2 * step / self.steps - 1)
        return self.learning_rate * (1 - (1 - self.cooling) * min(1.0, fallen))

    @property
    def past_matches(self) -> int:
        """Matches of a present member with past ones a step."""
        return 0 if self.opponents == "latest" else self.past

    def games_of(self, kind: str) -> int:
        """Return the games of a match; with every scheme a member learns from twice `games` a step."""
        if kind == "frozen":
            total = self.games if self.games_learnt("train") else 2 * self.games
            return max(1, total // self.past)
        return 2 * self.games if not self.past_matches else self.games

    def games_learnt(self, kind: str) -> bool:
        """Return whether matches of that kind teach; psro learns from past members alone."""
        return kind == "frozen" or self.opponents != "psro" or not self.past_matches


_GAME_FIELDS = (
    *("steps", "games", "freeze_every", "evolve_every", "passes", "hidden", "lora_rank"),
    *("learning_rate", "cooling", "entropy", "stray"),
)
_GAME_SETTINGS: Mapping[GameChoice, tuple[int, int, int, int, int, int, int, float, float, float, float]] = {
    "rps": (300, 64, 10, 50, 2, 32, 8, 3e-3, 1.0, 0.05, 0.0),
    "kuhn": (300, 128, 10, 50, 2, 64, 8, 3e-3, 1.0, 0.2, 0.0),
    "leduc": (600, 256, 20, 100, 2, 64, 8, 3e-3, 1.0, 0.1, 0.0),
    "tictactoe": (800, 192, 20, 300, 4, 128, 16, 3e-3, 0.1, 0.1, 0.75),
    "connect_four": (200, 64, 20, 75, 4, 128, 16, 3e-3, 0.1, 0.1, 0.5),
}
"""In the order of `_GAME_FIELDS`."""


def settle(options: ClassicOptions, opponents: OpponentScheme) -> Settings:
    """Return the settings of one league: what was given, and the game's own values for the rest.

    Latest self-play and PSRO are without evolution: they are what the league is compared with.
    """
    values = dict(zip(_GAME_FIELDS, _GAME_SETTINGS[options.game], strict=True))
    values |= {name: given for name in _GAME_FIELDS if (given := getattr(options, name)) is not None}
    return Settings(
        opponents=opponents,
        teachers=options.teachers,
        students=options.students,
        steps=int(values["steps"]),
        games=int(values["games"]),
        past=options.past,
        freeze_every=int(values["freeze_every"]),
        evolve_every=0 if opponents in ("latest", "psro") else int(values["evolve_every"]),
        learning_rate=values["learning_rate"],
        cooling=values["cooling"],
        entropy=values["entropy"],
        stray=values["stray"],
        passes=int(values["passes"]),
        hidden=int(values["hidden"]),
        lora_rank=int(values["lora_rank"]),
    )
