"""The game from one open seat: the other seats are held by policies.

Owns the way from one turn of that seat to the next, in any number of games at once, so that one call to the judge
serves all of them. Rules are in `game`; the gymnasium environments over it are in `solo_envs` (one game) and `vector`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from populora_env import text_agents
from populora_env.config import GameConfig
from populora_env.game import Game, Phase, Round, RoundResult
from populora_env.judging import Judge, judge_attempts, judge_proposals
from populora_env.rendering import picture
from populora_env.seats import GeneratorProposer, GuessingSolver
from populora_env.text_agents import PROPOSER, Outcome, TextObservation
from populora_env.types import Policy, Role

LEARNER = {Role.PROPOSER: PROPOSER, Role.SOLVER: "solver_0"}
"""The agent whose seat is left to the caller; in a game of several solvers the first."""

MOST_GAMES = 64
"""Games in a row without a single valid problem after which a proposer is given up."""


class SoloGame:
    """One game after the other, seen from one seat."""

    def __init__(
        self,
        config: GameConfig,
        role: Role,
        *,
        proposer: Policy | None = None,
        solvers: Policy | Sequence[Policy] | None = None,
        on_settled: Callable[[RoundResult], None] | None = None,
    ) -> None:
        """Keep the players; `begin` opens the first game.

        Args:
            config: Rules of the game.
            role: Of the open seat.
            proposer: Who proposes to an open solver's seat; None is a `GeneratorProposer` made anew for each game.
            solvers: Who holds the other solver seats (all of them under an open proposer's seat): one policy for all,
                one for each, or None for `GuessingSolver`s made anew for each game.
            on_settled: Called with the result of each round as it ends.

        Raises:
            ValueError: The number of `solvers` is not that of their seats.
        """
        self.config = config
        self.agent = LEARNER[role]
        self._proposer = proposer
        self._on_settled = on_settled
        self._n_others = config.solver_seats - (role is Role.SOLVER)
        self._solvers = [solvers] * self._n_others if callable(solvers) else solvers
        if self._solvers is not None and len(self._solvers) != self._n_others:
            raise ValueError(f"`solvers` must hold {self._n_others} policies, got {len(self._solvers)}")

    @property
    def over(self) -> bool:
        """Whether the present game is over."""
        return self.game.over

    @property
    def round(self) -> Round:
        """The present round."""
        return self.game.round

    def begin(self, rng: np.random.Generator) -> None:
        """Open a game; all seeds of it are drawn from `rng`."""
        seeds = [int(seed) for seed in rng.integers(2**63, size=2 + self._n_others)]
        self.game = Game(self.config, seeds[0], on_settled=self._on_settled)
        self.outcome: Outcome | None = None
        self.proposer: Policy = self._proposer or GeneratorProposer(self.config, seeds[1])
        self.others: Sequence[Policy] = (
            [GuessingSolver(self.config, seed) for seed in seeds[2:]] if self._solvers is None else self._solvers
        )

    def advance(self) -> None:
        """Count the settled round; keep what it brought the open seat, if that took part in it."""
        told = text_agents.outcomes(self.game.advance(), number=len(self.game.results) - 1)
        self.outcome = told.get(self.agent, self.outcome)

    def observe(self) -> TextObservation:
        """Return what the open seat sees."""
        return text_agents.observe(self.game, self.agent, acts=True)

    def describe(self) -> dict[str, Any]:
        """Return the open seat's info, with the outcome of its last turn."""
        return text_agents.describe(self.game, self.agent, self.outcome)

    def picture(self) -> str:
        """Return, for people, the round of the seat's last turn and what the game waits for."""
        last = None if self.outcome is None else self.outcome.round
        return picture(self.game, [self.agent], last=last)


def deal(games: Sequence[SoloGame], judge: Judge) -> None:
    """Bring each game to the next turn of its open seat, or to its end: rounds without a valid problem are skipped."""
    waiting = [game for game in games if _lacks_problem(game)]
    while waiting:
        for game in waiting:
            game.round.propose(game.proposer(game.round.proposer_observation()))
        judge_proposals([game.round for game in waiting], judge)
        for game in waiting:
            if game.round.settled:
                game.advance()
        waiting = [game for game in waiting if _lacks_problem(game)]


def take(games: Sequence[SoloGame], actions: Sequence[str], judge: Judge) -> None:
    """Take one action of each open seat, let the others act, and settle the rounds.

    Raises:
        ValueError: An action is no `str`; nothing has been taken then.
    """
    for action in actions:
        if not isinstance(action, str):
            raise ValueError(f"an action must be a str, got {type(action).__name__}")
    proposing = [(game, action) for game, action in zip(games, actions, strict=True) if game.agent == PROPOSER]
    for game, action in proposing:
        game.round.propose(action)
    judge_proposals([game.round for game, _ in proposing], judge)
    for game, action in zip(games, actions, strict=True):
        game.outcome = None
        if game.agent != PROPOSER:
            game.round.attempt(action)
        if game.round.phase is Phase.ATTEMPT:
            for policy in game.others:
                game.round.attempt(policy(game.round.solver_observation()))
    judge_attempts([game.round for game in games], judge)
    for game in games:
        game.advance()


def begin(games: Sequence[SoloGame], rngs: Sequence[np.random.Generator], judge: Judge) -> None:
    """Open a game in which the open seat has a turn, on each of `games`.

    Raises:
        RuntimeError: The proposer's policy makes no valid problem, in many games in a row.
    """
    pending = list(zip(games, rngs, strict=True))
    for _ in range(MOST_GAMES):
        for game, rng in pending:
            game.begin(rng)
        deal([game for game, _ in pending], judge)
        pending = [(game, rng) for game, rng in pending if game.over]
        if not pending:
            return
    raise no_problem()


def no_problem() -> RuntimeError:
    """Return the error that tells of a proposer whose problems are never valid."""
    return RuntimeError(f"expected `proposer` to make a valid problem, got none in {MOST_GAMES} games in a row")


def _lacks_problem(game: SoloGame) -> bool:
    return game.agent != PROPOSER and not game.over and game.round.phase is Phase.PROPOSE
