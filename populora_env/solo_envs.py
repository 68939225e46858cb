"""Single-seat views for gymnasium: a solver's or a proposer's seat, the other seats held by policies.

| fact | `populora/Solver-v0` | `populora/Proposer-v0` |
|---|---|---|
| observation space | `Dict(observation: Box(0, 1, (11,), float32), prompt: UnicodeText())` | the same |
| action space | `UnicodeText()`: every `str` is legal | the same |
| a step | one answer to one problem | one proposal, attempted by all solvers |
| reward | +1 correct, -0.5 wrong, -1 unreadable | by the solve rate; -1 invalid |
| other seats | `proposer` (default: our generator), `solvers` | `solvers` (default: players that guess) |
| solver seats | 1, unless told otherwise | 4 |
| episode | `rounds` rounds (default 3, one a task), those without a valid problem skipped | `rounds` rounds |

Owns the gymnasium face of one game. How the other seats are played is in `solo`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

import gymnasium

from populora_env import text_agents
from populora_env.config import GameConfig
from populora_env.game import RoundResult
from populora_env.judging import HeldJudge, Judge
from populora_env.rendering import RENDER_MODES, check_render_mode, show
from populora_env.rules import Rules, make_config
from populora_env.solo import SoloGame, begin, deal, take
from populora_env.spaces import UnicodeText
from populora_env.text_agents import TextObservation
from populora_env.types import Policy, Role


class SoloEnv(gymnasium.Env[TextObservation, str]):
    """One seat; every `step` is one turn of it and settles its round.

    The reward is the seat's in that round. An episode is one game: it ends, terminated, when the seat has no turn left.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 1}  # noqa: RUF012

    def __init__(self, game: SoloGame, verifier: Judge | None, render_mode: str | None) -> None:
        """Make the environment; see its subclasses."""
        check_render_mode(render_mode)
        self.config = game.config
        self.render_mode = render_mode
        self.observation_space = text_agents.observation_space(game.config)
        self.action_space = self._texts = UnicodeText(game.config, role=text_agents.role_of(game.agent))
        self._held = HeldJudge(verifier, game.config)
        self._solo = game

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[TextObservation, dict[str, Any]]:
        """Begin an episode. With `seed`, it and all later ones without are fixed; `options` are not used.

        Raises:
            RuntimeError: The proposer's policy makes no valid problem, in many games in a row.
        """
        super().reset(seed=seed)
        del options
        begin([self._solo], [self.np_random], self._held.judge)
        return self._seen()

    def step(self, action: str) -> tuple[TextObservation, float, bool, bool, dict[str, Any]]:
        """Take the seat's turn.

        Raises:
            ValueError: The action is no `str`, or the episode is over.
        """
        if self._solo.over:
            raise ValueError("the episode is over; call reset() first")
        take([self._solo], [action], self._held.judge)
        if self.render_mode == "human":
            self.render()
        deal([self._solo], self._held.judge)
        observation, info = self._seen()
        outcome = self._solo.outcome
        return observation, 0.0 if outcome is None else outcome.reward, self._solo.over, False, info

    def render(self) -> str | None:
        """Return (`ansi`) or write (`human`) the last settled round and what the game waits for."""
        return show(self._solo.picture, self.render_mode)

    def close(self) -> None:
        """End the verifier's processes, if it is the environment's own; a later episode starts new ones."""
        self._held.close()

    def _seen(self) -> tuple[TextObservation, dict[str, Any]]:
        self._texts.asked = text_agents.seen_by(self._solo.game, self._solo.agent)
        return self._solo.observe(), self._solo.describe()


class SolverEnv(SoloEnv):
    """A solver's seat (`solver_0`): the observation is a problem, the action an answer."""

    def __init__(
        self,
        *,
        proposer: Policy | None = None,
        solvers: Policy | Sequence[Policy] | None = None,
        config: GameConfig | None = None,
        verifier: Judge | None = None,
        render_mode: str | None = None,
        on_settled: Callable[[RoundResult], None] | None = None,
        **rules: Unpack[Rules],
    ) -> None:
        """Make the environment.

        Args:
            proposer: Who proposes; None is our generator, made anew with a seed of its own at each reset. What else is
                given keeps its state over resets, and a seed does not reach it.
            solvers: Who holds the other solver seats, where there are any: one policy for all, or one for each; None
                are players that guess.
            config: Rules of the game; None means the default rules with one solver seat.
            verifier: Judge shared with others, which `close` leaves alone; None makes an own one, whose processes
                start when they are first needed.
            render_mode: `ansi` (`render` returns text), `human` (each settled round is written to stdout) or None.
            on_settled: Called with the result of each round as it ends.
            **rules: The rules that differ from `config`'s; all names are in `populora_env.rules.Rules`.

        Raises:
            TypeError: There is no such rule.
            ValueError: A rule, the render mode or the number of `solvers` is out of range.
        """
        settings = make_config(config, rules, solver_seats=1)
        game = SoloGame(settings, Role.SOLVER, proposer=proposer, solvers=solvers, on_settled=on_settled)
        super().__init__(game, verifier, render_mode)


class ProposerEnv(SoloEnv):
    """The proposer's seat: the observation asks for a problem, the action is a proposal."""

    def __init__(
        self,
        *,
        solvers: Policy | Sequence[Policy] | None = None,
        config: GameConfig | None = None,
        verifier: Judge | None = None,
        render_mode: str | None = None,
        on_settled: Callable[[RoundResult], None] | None = None,
        **rules: Unpack[Rules],
    ) -> None:
        """Make the environment; arguments and errors as for `SolverEnv`, with `solvers` for all solver seats."""
        game = SoloGame(make_config(config, rules), Role.PROPOSER, solvers=solvers, on_settled=on_settled)
        super().__init__(game, verifier, render_mode)
