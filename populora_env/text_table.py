"""What the two text faces share: spaces, the game under way, the state, rendering.

Whose turn it is and who is paid when is in `text_v0` (one agent after the other) and `text_parallel` (phase by phase).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from populora_env import text_agents
from populora_env.config import GameConfig
from populora_env.game import Game, RoundResult
from populora_env.judging import Judge
from populora_env.rendering import picture
from populora_env.spaces import UnicodeText
from populora_env.table import Table


class TextTable(Table[UnicodeText]):
    """A table at which agents speak by text."""

    def __init__(
        self,
        *,
        config: GameConfig,
        verifier: Judge | None = None,
        render_mode: str | None = None,
        on_settled: Callable[[RoundResult], None] | None = None,
    ) -> None:
        """Make the table; arguments and errors as for `Table`."""
        super().__init__(config=config, verifier=verifier, render_mode=render_mode, on_settled=on_settled)
        self.observation_spaces = {agent: text_agents.observation_space(config) for agent in self.possible_agents}
        self.action_spaces = {
            agent: UnicodeText(config, role=text_agents.role_of(agent)) for agent in self.possible_agents
        }
        self.state_space = text_agents.state_space(config)

    @property
    def acting(self) -> list[str]:
        """The agents whose actions the next `step` reads; none when the episode is over."""
        raise NotImplementedError

    def state(self) -> npt.NDArray[np.float32]:
        """Return the observation vectors of all agents, float32 [agents * VECTOR_SIZE]."""
        return text_agents.state(self.game, self.acting)

    def _deal(self, seed: int | None) -> None:
        """Begin an episode."""
        self.game = Game(self.config, self._next_seed(seed), on_settled=self._on_settled)
        self.agents = list(self.possible_agents)

    def _ask(self) -> None:
        """Let the samples of each space fit what its agent is asked."""
        for agent in self.acting:
            self.action_spaces[agent].asked = text_agents.seen_by(self.game, agent)

    def _picture(self) -> str:
        return picture(self.game, self.acting)
