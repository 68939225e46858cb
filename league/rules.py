"""The rules of one league, as the engine follows them: sizes, constants, and who is bred how.

Owns values and their ranges. Knows no configuration and no operators' code: `run` makes the rules of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from league.hall_of_fame import PastDraw
from league.matchmaking import SchemeName
from league.ratings import RatingRules
from league.selection import ParentScheme


@dataclass(frozen=True, slots=True, kw_only=True)
class Breeding:
    """What the engine has to know of one operator."""

    arity: int
    """Number of parents, 1 or 2."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """Handed to the arena and kept in the lineage."""
    weight: float = 1.0
    """How often it is drawn among operators of its arity, relative to the others, > 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one league."""

    teachers: int
    """Members of that side, >= 1."""
    students: int
    """Members of that side, >= 1."""
    steps: int
    """Steps after the founding, >= 0."""
    self_play: int = 0
    """Matches a step of a single agent with itself, in place of two sides, >= 0; 0 has the two sides."""
    seed: int = 0
    """Root of all randomness, >= 0."""
    rating: RatingRules = field(default_factory=RatingRules)
    """How matches make ratings."""
    matchmaking: SchemeName = "pfsp"
    """How opponents are chosen."""
    exploration: float = 0.0
    """Share of a `pfsp` draw that is even, in [0, 1]."""
    evolve_every: int | None = None
    """Steps between two evolutions, >= 1; None never evolves."""
    evolve_last: bool = True
    """Whether the last step may evolve, too: a run that may be made longer needs it, one that ends there does not."""
    operators: Mapping[str, Breeding] = field(default_factory=dict)
    """Operators by name; at least one where there is evolution."""
    fraction: float = 0.25
    """Share of each side that is replaced, in [0, 1]."""
    caution: float = 1.0
    """Members are compared by mu - caution x sigma, >= 0."""
    min_age: int = 0
    """Steps that a member lives at least, >= 0."""
    elites: int = 0
    """Best members of each side that never go, >= 0."""
    parents: ParentScheme = "uniform"
    """How parents are drawn among survivors."""
    crossover_probability: float = 0.5
    """Share of children with two parents, in [0, 1]."""
    explore: bool = False
    """Whether children scale learning rate and temperature of their better parent up or down."""
    past_opponents: float = 0.0
    """Share of all matches that are played against past members, on top of those among the living, in [0, 1)."""
    past_draw: PastDraw = "pfsp"
    """How past opponents are drawn."""
    hall_size: int = 64
    """Past members of each side that may be met, >= 1."""
    cross_eval_every: int = 0
    """Steps between two cross tables, >= 0, of every teacher with every student; 0 never plays one."""
    payoff_every: int = 10
    """Steps between two reports of the payoff matrix, >= 0, of each pair's latest match; 0 reports none."""
    save_every: int = 5
    """Steps between two savings of weights and state, >= 1; the last step always saves."""

    def __post_init__(self) -> None:
        """Check the ranges that selection does not check."""
        floors = {"teachers": 1, "students": 1, "hall_size": 1, "save_every": 1}
        floors |= dict.fromkeys(("self_play", "steps", "seed", "cross_eval_every", "payoff_every"), 0)
        for name, floor in floors.items():
            if getattr(self, name) < floor:
                raise ValueError(f"`{name}` must be at least {floor}, got {getattr(self, name)!r}")
        if not 0 <= self.past_opponents < 1:
            raise ValueError(f"`past_opponents` must be in [0, 1), got {self.past_opponents!r}")
        if self.evolve_every is not None and (self.evolve_every < 1 or not self.operators):
            raise ValueError("evolution needs `evolve_every` of at least 1 and at least one of `operators`")
        if self.evolve_every is not None and self.self_play:
            raise ValueError("a single agent does not evolve: `evolve_every` must be None where there is `self_play`")

    def evolves_at(self, step: int) -> bool:
        """Return whether the weakest are replaced after that step."""
        if self.evolve_every is None or step % self.evolve_every:
            return False
        return self.evolve_last or step < self.steps
