"""The text game as a PettingZoo AEC environment.

Owns the face: agents, spaces, observations, infos, and when which reward is seen. Rules are in `game`, judgement in
`verifier`. Reading rewards: the proposer's arrives after the solvers acted, at its next `last()` or at its dead step.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import logger, spaces
from pettingzoo import AECEnv
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from populora_env import features
from populora_env.config import GameConfig, VerifierConfig
from populora_env.game import Game, Phase, Round, RoundResult
from populora_env.play import Judge, judge_attempts, judge_proposals
from populora_env.rendering import render_round
from populora_env.rewards import reward_parts
from populora_env.spaces import UnicodeText
from populora_env.types import Message, Observation, Role, Task
from populora_env.verifier import Verifier

PROPOSER = "proposer_0"
"""The proposer's agent name; solvers are `solver_0`, `solver_1`, ..."""

RENDER_MODES = ("ansi", "human")

_ROLES, _TASKS = tuple(Role), tuple(Task)
VECTOR_SIZE = len(_ROLES) + len(_TASKS) + 2 + features.SIZE
"""Numbers in an observation: role and task one-hot, whether it is the agent's turn, the share of rounds played, and the
mean features of the programs that the agent is shown."""

TextObservation = dict[str, Any]
"""`observation`: float32 [VECTOR_SIZE] in [0, 1]; `prompt`: the text to act on, empty while there is nothing to do."""


def env(
    *,
    config: GameConfig | None = None,
    verifier: Judge | None = None,
    max_cycles: int | None = None,
    render_mode: str | None = None,
) -> OrderEnforcingWrapper[str, TextObservation, str]:
    """Return the text game with PettingZoo's check of the calling order; arguments as for `TextEnv`."""
    return OrderEnforcingWrapper(
        raw_env(config=config, verifier=verifier, max_cycles=max_cycles, render_mode=render_mode)
    )


def raw_env(
    *,
    config: GameConfig | None = None,
    verifier: Judge | None = None,
    max_cycles: int | None = None,
    render_mode: str | None = None,
) -> TextEnv:
    """Return the bare text game; arguments as for `TextEnv`."""
    rules = GameConfig() if config is None else config
    if max_cycles is not None:
        rules = replace(rules, rounds=max_cycles)
    return TextEnv(config=rules, verifier=verifier, render_mode=render_mode)


def as_observation(seen: TextObservation, info: dict[str, Any]) -> Observation:
    """Return what `last()` gave as a `Policy` takes it, so that any policy can take any seat."""
    return Observation(
        role=Role(info["role"]),
        task=Task(info["task"]),
        prompt=seen["prompt"],
        messages=tuple(Message(**message) for message in info["messages"]),
    )


class TextEnv(AECEnv[str, TextObservation, str]):  # type: ignore[misc]  # PettingZoo is untyped
    """One proposer and G solvers who speak by text. Any `str` is a legal action and costs at most the format reward.

    A round: the proposer acts; if its problem is valid each solver acts in turn, and the answers are judged together at
    the last one's step; if not, the next round begins. An episode ends after `config.rounds` rounds.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (PettingZoo's own attribute)
        "name": "populora_text_v0",
        "render_modes": list(RENDER_MODES),
        "is_parallelizable": False,
    }

    def __init__(
        self,
        *,
        config: GameConfig,
        verifier: Judge | None = None,
        render_mode: str | None = None,
        on_settled: Callable[[RoundResult], None] | None = None,
    ) -> None:
        """Make the environment.

        Args:
            config: Rules of the game.
            verifier: Judge shared with others, which `close` leaves alone; None makes an own one, whose processes
                start when they are first needed.
            render_mode: `ansi` (`render` returns text), `human` (each settled round is written to stdout) or None.
            on_settled: Called with the result of each round as it ends.

        Raises:
            ValueError: Unknown render mode.
        """
        super().__init__()
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ValueError(f"`render_mode` must be None or one of {RENDER_MODES}, got {render_mode!r}")
        self.config = config
        self.render_mode = render_mode
        self.solvers = tuple(f"solver_{seat}" for seat in range(config.solver_seats))
        self.possible_agents = [PROPOSER, *self.solvers]
        self.observation_spaces = {agent: _observation_space(config) for agent in self.possible_agents}
        self.action_spaces = {agent: UnicodeText(config, role=_role(agent)) for agent in self.possible_agents}
        self._own_verifier: Verifier | None = None
        if verifier is None:
            verifier = self._own_verifier = Verifier(VerifierConfig(max_answer_chars=config.max_answer_chars))
        self._judge = verifier
        self._on_settled = on_settled
        self._seeds: np.random.Generator | None = None

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the agent's observation space, the same object at every call."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> UnicodeText:
        """Return the agent's action space, the same object at every call."""
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode. With `seed`, it and all later ones without are fixed; `options` are not used."""
        del options
        if seed is not None or self._seeds is None:
            self._seeds = np.random.default_rng(seed)
        self.game = Game(self.config, int(self._seeds.integers(2**63)), on_settled=self._on_settled)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._outcomes: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self._parts: dict[str, dict[str, float]] = {agent: {} for agent in self.agents}
        self._skip_agent_selection = None
        self._refresh()

    def step(self, action: str | None) -> None:
        """Take the action of the agent whose turn it is; None for one whose episode is over.

        Raises:
            ValueError: The action is no `str`, or an agent that is done was given one.
        """
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        if not isinstance(action, str):
            raise ValueError(f"an action of {agent} must be a str, got {type(action).__name__}")
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards[agent] = 0.0
        self._outcomes[agent], self._parts[agent] = {}, {}
        current = self.game.round
        self._act(current, agent, action)
        if current.settled:
            self._settle(self.game.advance())
        self._accumulate_rewards()
        self._refresh()
        if current.settled and self.render_mode == "human":
            self.render()

    def observe(self, agent: str) -> TextObservation:
        """Return what `agent` may know now. Pure; never shows a solver what is asked for."""
        seen = self._seen(agent)
        return {"observation": self._vector(agent, seen), "prompt": "" if seen is None else seen.prompt}

    def render(self) -> str | None:
        """Return (`ansi`) or write (`human`) the last settled round and what the game waits for."""
        if self.render_mode is None:
            logger.warn("render() needs a `render_mode`, e.g. env(render_mode='ansi')")
            return None
        text = self._picture()
        if self.render_mode == "ansi":
            return text
        sys.stdout.write(text + "\n")
        return None

    def close(self) -> None:
        """End the verifier's processes, if it is the environment's own; a later episode starts new ones."""
        if self._own_verifier is not None:
            self._own_verifier.close()

    def _act(self, current: Round, agent: str, action: str) -> None:
        if agent == PROPOSER:
            current.propose(action)
            judge_proposals([current], self._judge)
        else:
            current.attempt(action)
            judge_attempts([current], self._judge)

    def _settle(self, result: RoundResult) -> None:
        common = {"round": len(self.game.results) - 1, "task": str(result.task), "solve_rate": result.solve_rate}
        settled = [(PROPOSER, result.proposal_verdict, result.proposer_reward)]
        settled += zip(self.solvers, result.attempt_verdicts, result.solver_rewards, strict=False)
        for agent, verdict, reward in settled:
            self.rewards[agent] = reward
            self._outcomes[agent] = common | {"verdict": str(verdict), "reward": reward}
            self._parts[agent] = reward_parts(_role(agent), verdict, reward)
        if self.game.over:
            self.terminations = dict.fromkeys(self.agents, True)

    def _refresh(self) -> None:
        """Point to the agent whose turn it is, and bring the infos up to date."""
        current = self.game.round
        proposing = self.game.over or current.phase is Phase.PROPOSE
        self.agent_selection = PROPOSER if proposing else self.solvers[current.seat]
        self.action_spaces[self.agent_selection].asked = self._seen(self.agent_selection)
        self.infos = {agent: self._info(agent) for agent in self.agents}

    def _info(self, agent: str) -> dict[str, Any]:
        seen = self._seen(agent)
        messages = () if seen is None else seen.messages
        return {
            "role": str(_role(agent)),
            "task": str(self.game.round.task),
            "round": self.game.round_index,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "outcome": dict(self._outcomes[agent]),
            "reward_parts": dict(self._parts[agent]),
        }

    def _seen(self, agent: str) -> Observation | None:
        """Return what the agent has to act on in this round, or will once it is its turn; None if nothing."""
        current = self.game.round
        if self.game.over:
            return None
        if agent == PROPOSER:
            return current.proposer_observation() if current.phase is Phase.PROPOSE else None
        if current.phase is Phase.ATTEMPT and self.solvers.index(agent) >= current.seat:
            return current.solver_observation()
        return None

    def _vector(self, agent: str, seen: Observation | None) -> npt.NDArray[np.float32]:
        role, current = _role(agent), self.game.round
        acts = seen is not None and agent == self.agent_selection
        progress = len(self.game.results) / self.config.rounds
        flags = [role is each for each in _ROLES] + [current.task is each for each in _TASKS] + [acts, progress]
        shown = () if seen is None else current.shown_programs(role)
        return np.concatenate([np.array(flags, dtype=np.float32), features.mean_scaled(shown)])

    def _picture(self) -> str:
        lines = []
        if self.game.results:
            lines.append(render_round(self.game.results[-1], number=len(self.game.results)))
        if self.game.over:
            lines.append(f"game over after {self.config.rounds} rounds")
        else:
            place = f"round {self.game.round_index + 1} of {self.config.rounds}"
            lines.append(f"{place}: {self.game.round.task}, waiting for {self.agent_selection}")
        return "\n".join(lines)


def _role(agent: str) -> Role:
    return Role.PROPOSER if agent == PROPOSER else Role.SOLVER


def _observation_space(config: GameConfig) -> spaces.Dict:
    vector = spaces.Box(low=0.0, high=1.0, shape=(VECTOR_SIZE,), dtype=np.float32)
    return spaces.Dict({"observation": vector, "prompt": UnicodeText(config)})
