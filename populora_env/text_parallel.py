"""The text game phase by phase: all agents of a phase act at once, the others pass.

Owns the parallel face: which phase is on, whose actions are read, who is paid at which step. The AEC face and the
makers of both are in `text_v0`, what they share in `text_table`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pettingzoo import ParallelEnv

from populora_env import text_agents
from populora_env.game import Phase
from populora_env.judging import judge_attempts, judge_proposals
from populora_env.rendering import RENDER_MODES
from populora_env.text_agents import PROPOSER, Outcome, TextObservation
from populora_env.text_table import TextTable

_Seen = tuple[dict[str, TextObservation], dict[str, dict[str, Any]]]
_Stepped = tuple[
    dict[str, TextObservation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
]


class TextParallelEnv(TextTable, ParallelEnv[str, TextObservation, str]):  # type: ignore[misc]  # PettingZoo is untyped
    """One proposer and G solvers who speak by text, in two phases a round: propose, then solve.

    The proposer's action is read in the first phase, the solvers' in the second; what the others say is ignored, they
    pass `""` or are left out. After an invalid proposal the next step proposes again. Both roles are paid at the step
    that settles the round. An episode ends after `config.rounds` rounds, between `rounds` and 2 `rounds` steps.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (PettingZoo's own attribute)
        "name": "populora_text_v0",
        "render_modes": list(RENDER_MODES),
    }

    @property
    def acting(self) -> list[str]:
        """The agents whose actions the next `step` reads; the others pass."""
        if self.game.over:
            return []
        return self.possible_agents[:1] if self.game.round.phase is Phase.PROPOSE else self.possible_agents[1:]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> _Seen:
        """Begin an episode. With `seed`, it and all later ones without are fixed; `options` are not used."""
        del options
        self._deal(seed)
        self._ask()
        return self._seen({})

    def step(self, actions: Mapping[str, str]) -> _Stepped:
        """Take the actions of the agents in `acting`; those of the others are not read.

        Raises:
            ValueError: The episode is over, or an agent in `acting` has no `str` for an action.
        """
        acting = self.acting
        if not acting:
            raise ValueError("the episode is over; call reset() first")
        for agent in acting:
            if not isinstance(actions.get(agent), str):
                raise ValueError(f"an action of {agent} must be a str, got {type(actions.get(agent)).__name__}")
        current = self.game.round
        if current.phase is Phase.PROPOSE:
            current.propose(actions[PROPOSER])
            judge_proposals([current], self._held.judge)
        else:
            for agent in acting:
                current.attempt(actions[agent])
            judge_attempts([current], self._held.judge)
        told: dict[str, Outcome] = {}
        if current.settled:
            told = text_agents.outcomes(self.game.advance(), number=len(self.game.results) - 1)
        self._ask()
        observations, infos = self._seen(told)
        rewards = {agent: told[agent].reward if agent in told else 0.0 for agent in self.agents}
        terminations = dict.fromkeys(self.agents, self.game.over)
        truncations = dict.fromkeys(self.agents, False)
        if self.game.over:
            self.agents = []
        if current.settled and self.render_mode == "human":
            self.render()
        return observations, rewards, terminations, truncations, infos

    def _seen(self, told: Mapping[str, Outcome]) -> _Seen:
        acting = self.acting
        observations = {agent: text_agents.observe(self.game, agent, acts=agent in acting) for agent in self.agents}
        infos = {agent: text_agents.describe(self.game, agent, told.get(agent)) for agent in self.agents}
        return observations, infos
