"""The text game phase by phase: all agents of a phase act at once, the others pass.

Owns the parallel face: which phase is on, whose actions are read, who is paid at which step. The AEC face and the
makers of both are in `text_v0`, what agents see in `text_agents`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import logger, spaces
from pettingzoo import ParallelEnv

from populora_env import text_agents
from populora_env.config import GameConfig
from populora_env.game import Game, Phase, RoundResult
from populora_env.judging import HeldJudge, Judge, judge_attempts, judge_proposals
from populora_env.spaces import UnicodeText
from populora_env.text_agents import PROPOSER, Outcome, TextObservation

_Seen = tuple[dict[str, TextObservation], dict[str, dict[str, Any]]]
_Stepped = tuple[
    dict[str, TextObservation], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]
]


class TextParallelEnv(ParallelEnv[str, TextObservation, str]):  # type: ignore[misc]  # PettingZoo is untyped
    """One proposer and G solvers who speak by text, in two phases a round: propose, then solve.

    The proposer's action is read in the first phase, the solvers' in the second; what the others say is ignored, they
    pass `""` or are left out. After an invalid proposal the next step proposes again. Both roles are paid at the step
    that settles the round. An episode ends after `config.rounds` rounds, between `rounds` and 2 `rounds` steps.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (PettingZoo's own attribute)
        "name": "populora_text_v0",
        "render_modes": list(text_agents.RENDER_MODES),
    }

    def __init__(
        self,
        *,
        config: GameConfig,
        verifier: Judge | None = None,
        render_mode: str | None = None,
        on_settled: Callable[[RoundResult], None] | None = None,
    ) -> None:
        """Make the environment; arguments and errors as for `text_v0.TextEnv`."""
        text_agents.check_render_mode(render_mode)
        self.config = config
        self.render_mode = render_mode
        self.possible_agents = text_agents.agent_names(config)
        self.agents: list[str] = []
        self.observation_spaces = {agent: text_agents.observation_space(config) for agent in self.possible_agents}
        self.action_spaces = {
            agent: UnicodeText(config, role=text_agents.role_of(agent)) for agent in self.possible_agents
        }
        self.state_space = text_agents.state_space(config)
        self._held = HeldJudge(verifier, config)
        self._on_settled = on_settled
        self._seeds: np.random.Generator | None = None

    @property
    def acting(self) -> list[str]:
        """The agents whose actions the next `step` reads; the others pass."""
        if self.game.over:
            return []
        return self.possible_agents[:1] if self.game.round.phase is Phase.PROPOSE else self.possible_agents[1:]

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the agent's observation space, the same object at every call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> UnicodeText:
        """Return the agent's action space, the same object at every call."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> _Seen:
        """Begin an episode. With `seed`, it and all later ones without are fixed; `options` are not used."""
        del options
        if seed is not None or self._seeds is None:
            self._seeds = np.random.default_rng(seed)
        self.game = Game(self.config, int(self._seeds.integers(2**63)), on_settled=self._on_settled)
        self.agents = list(self.possible_agents)
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

    def state(self) -> npt.NDArray[np.float32]:
        """Return the observation vectors of all agents, float32 [agents * VECTOR_SIZE]."""
        return text_agents.state(self.game, self.acting)

    def render(self) -> str | None:
        """Return (`ansi`) or write (`human`) the last settled round and what the game waits for."""
        if self.render_mode is None:
            logger.warn("render() needs a `render_mode`, e.g. parallel_env(render_mode='ansi')")
            return None
        text = text_agents.picture(self.game, " and ".join(self.acting))
        if self.render_mode == "ansi":
            return text
        sys.stdout.write(text + "\n")
        return None

    def close(self) -> None:
        """End the verifier's processes, if it is the environment's own; a later episode starts new ones."""
        self._held.close()

    def _ask(self) -> None:
        """Let the samples of each space fit what its agent is asked."""
        for agent in self.acting:
            self.action_spaces[agent].asked = text_agents.seen_by(self.game, agent)

    def _seen(self, told: Mapping[str, Outcome]) -> _Seen:
        acting = self.acting
        observations = {agent: text_agents.observe(self.game, agent, acts=agent in acting) for agent in self.agents}
        infos = {agent: text_agents.describe(self.game, agent, told.get(agent)) for agent in self.agents}
        return observations, infos
