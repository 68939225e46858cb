"""The game in tokens with all agents at every step: the proposer writes, then all solvers at once.

Owns the parallel face: whose tokens are read and what each step returns. The AEC face and the makers of both are in
`token_v0`, what they share in `token_table`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pettingzoo import ParallelEnv

from populora_env.rendering import RENDER_MODES
from populora_env.token_table import TokenObservation, TokenTable, read_token

_Seen = tuple[dict[str, TokenObservation], dict[str, dict[str, Any]]]
_Stepped = tuple[
    dict[str, TokenObservation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
]


class TokenParallelEnv(TokenTable, ParallelEnv[str, TokenObservation, int]):  # type: ignore[misc]  # PettingZoo is untyped
    """All agents at every step: who does not write passes NOOP. The solvers write their answers at the same time."""

    metadata: dict[str, Any] = {  # noqa: RUF012  (PettingZoo's own attribute)
        "name": "populora_token_v0",
        "render_modes": list(RENDER_MODES),
    }
    together = True

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> _Seen:
        """Begin an episode. With `seed`, it and all later ones without are fixed; `options` are not used."""
        del options
        self._deal(seed)
        return self._observations(), dict(self.infos)

    def step(self, actions: Mapping[str, int]) -> _Stepped:
        """Take a token of each agent that writes; the actions of the others are ignored and may be left out.

        Raises:
            ValueError: The episode is over, or an agent that writes has no token for an action.
        """
        if not self.agents:
            raise ValueError("the episode is over; call reset() first")
        writing = [self.possible_agents[place] for place in self.table.writing]
        tokens = [read_token(agent, actions.get(agent)) for agent in writing]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        finished = [self._act(agent, token) for agent, token in zip(writing, tokens, strict=True)]
        result = None
        if any(finished):
            result = self._go_on()
        else:
            self._tell(*writing)
        seen = self._observations()
        told = (self.rewards, self.terminations, self.truncations, dict(self.infos))
        if self.table.game.over:
            self.agents = []
        if result is not None and self.render_mode == "human":
            self.render()
        return (seen, *told)

    def _observations(self) -> dict[str, TokenObservation]:
        return {agent: self.observe(agent) for agent in self.agents}
