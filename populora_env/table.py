"""What every PettingZoo face has, whatever is spoken: rules, agents, spaces, a judge, seeds, and a way to be shown.

Owns no game: what is dealt, who acts and what is seen is in `text_table` and `token_table`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import numpy as np
from gymnasium import spaces

from populora_env.config import GameConfig
from populora_env.game import RoundResult
from populora_env.judging import HeldJudge, Judge
from populora_env.rendering import check_render_mode, show
from populora_env.text_agents import agent_names

_Actions = TypeVar("_Actions", bound="spaces.Space[object]")


class Table(Generic[_Actions]):
    """Where the agents of one environment sit."""

    observation_spaces: dict[str, spaces.Dict]
    action_spaces: dict[str, _Actions]

    def __init__(
        self,
        *,
        config: GameConfig,
        verifier: Judge | None = None,
        render_mode: str | None = None,
        on_settled: Callable[[RoundResult], None] | None = None,
    ) -> None:
        """Make the table; the spaces are for a subclass to fill in.

        Args:
            config: Rules of the game.
            verifier: Judge shared with others, which `close` leaves alone; None makes an own one, whose processes
                start when they are first needed.
            render_mode: `ansi` (`render` returns text), `human` (each settled round is written to stdout) or None.
            on_settled: Called with the result of each round as it ends.

        Raises:
            ValueError: Unknown render mode.
        """
        check_render_mode(render_mode)
        self.config = config
        self.render_mode = render_mode
        self.possible_agents = agent_names(config)
        self.agents: list[str] = []
        self._held = HeldJudge(verifier, config)
        self._on_settled = on_settled
        self._seeds: np.random.Generator | None = None

    def observation_space(self, agent: str) -> spaces.Dict:
        """Return the agent's observation space, the same object at every call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> _Actions:
        """Return the agent's action space, the same object at every call."""
        return self.action_spaces[agent]

    def render(self) -> str | None:
        """Return (`ansi`) or write (`human`) the last settled round and what the game waits for."""
        return show(self._picture, self.render_mode)

    def close(self) -> None:
        """End the verifier's processes, if it is the environment's own; a later episode starts new ones."""
        self._held.close()

    def _next_seed(self, seed: int | None) -> int:
        """Return the seed of the next episode; with `seed`, it and all later ones without are fixed."""
        if seed is not None or self._seeds is None:
            self._seeds = np.random.default_rng(seed)
        return int(self._seeds.integers(2**63))

    def _picture(self) -> str:
        """Return the state of the game for people."""
        raise NotImplementedError
