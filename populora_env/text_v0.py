"""The text game for PettingZoo: one agent after the other (`env`) or phase by phase (`parallel_env`).

| fact | text_v0 |
|---|---|
| import | `from populora_env import text_v0` |
| agents | `proposer_0`, and `solver_0` to `solver_{G-1}` (`solver_seats`, default 4) |
| action space | `UnicodeText()`: every `str` is legal; what cannot be read costs the format reward |
| observation space | `Dict(observation: Box(0, 1, (11,), float32), prompt: UnicodeText())`, alike for all agents |
| state | `Box(0, 1, (11 * (G + 1),), float32)`: the observation vectors of all agents |
| rewards | solver: +1 correct, -0.5 wrong, -1 unreadable; proposer: 1 - rho at a solve rate 0 < rho < 1, else 0; \
-1 invalid |
| turns (AEC) | proposer, then each solver in turn; after an invalid proposal the proposer again |
| steps (parallel) | propose, then solve; after an invalid proposal propose again; who waits passes `""` |
| episode | `rounds` (or `max_cycles`, default 3) rounds; all agents live to the end, then terminate together |
| keyword arguments | `rounds`, `solver_seats`, `tasks`, `references`, `induction_inputs`, `reward`, `style`, \
`config`, `verifier`, `render_mode` |
| render modes | `ansi`, `human` |
| seeding | `reset(seed=...)`; the same seed and actions give the same episode on every machine |

Owns the AEC face: whose turn it is and when which reward is seen. Rules are in `game`, judgement in `verifier`, what
agents see in `text_agents`, what both faces share in `text_table`. Reading rewards: the proposer's arrives after the
solvers acted, at its next `last()` or at its dead step.
"""

from __future__ import annotations

from typing import Any, Unpack

from pettingzoo import AECEnv
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from populora_env import text_agents
from populora_env.config import GameConfig
from populora_env.game import Phase, Round, RoundResult
from populora_env.judging import Judge, judge_attempts, judge_proposals
from populora_env.rendering import RENDER_MODES
from populora_env.rules import Rules, make_config
from populora_env.text_agents import PROPOSER, VECTOR_SIZE, Outcome, TextObservation, as_observation
from populora_env.text_parallel import TextParallelEnv
from populora_env.text_table import TextTable

__all__ = [
    "PROPOSER",
    "VECTOR_SIZE",
    "TextEnv",
    "TextObservation",
    "TextParallelEnv",
    "as_observation",
    "env",
    "parallel_env",
    "raw_env",
]


def env(
    *,
    config: GameConfig | None = None,
    verifier: Judge | None = None,
    render_mode: str | None = None,
    **rules: Unpack[Rules],
) -> OrderEnforcingWrapper[str, TextObservation, str]:
    """Return the text game with PettingZoo's check of the calling order.

    Args:
        config: Rules of the game; None means the default rules.
        verifier: See `Table`.
        render_mode: See `Table`.
        **rules: The rules that differ from `config`'s, e.g. `rounds=5, solver_seats=2, tasks=("deduction",)`; all
            names are in `populora_env.rules.Rules`.

    Raises:
        TypeError: There is no such rule.
        ValueError: A rule or the render mode is out of range.
    """
    return OrderEnforcingWrapper(raw_env(config=config, verifier=verifier, render_mode=render_mode, **rules))


def raw_env(
    *,
    config: GameConfig | None = None,
    verifier: Judge | None = None,
    render_mode: str | None = None,
    **rules: Unpack[Rules],
) -> TextEnv:
    """Return the bare text game; arguments as for `env`."""
    return TextEnv(config=make_config(config, rules), verifier=verifier, render_mode=render_mode)


def parallel_env(
    *,
    config: GameConfig | None = None,
    verifier: Judge | None = None,
    render_mode: str | None = None,
    **rules: Unpack[Rules],
) -> TextParallelEnv:
    """Return the text game in which the agents of one phase act at once; arguments as for `env`."""
    return TextParallelEnv(config=make_config(config, rules), verifier=verifier, render_mode=render_mode)


class TextEnv(TextTable, AECEnv[str, TextObservation, str]):  # type: ignore[misc]  # PettingZoo is untyped
    """One proposer and G solvers who speak by text. Any `str` is a legal action and costs at most the format reward.

    A round: the proposer acts; if its problem is valid each solver acts in turn, and the answers are judged together at
    the last one's step; if not, the next round begins. An episode ends after `config.rounds` rounds.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (PettingZoo's own attribute)
        "name": "populora_text_v0",
        "render_modes": list(RENDER_MODES),
        "is_parallelizable": False,
    }

    @property
    def acting(self) -> list[str]:
        """The agent whose action the next `step` reads; none when the episode is over."""
        return [] if self.game.over else [self.agent_selection]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode. With `seed`, it and all later ones without are fixed; `options` are not used."""
        del options
        self._deal(seed)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._outcomes: dict[str, Outcome] = {}
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
        self._outcomes.pop(agent, None)
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
        return text_agents.observe(self.game, agent, acts=agent == self.agent_selection)

    def _act(self, current: Round, agent: str, action: str) -> None:
        if agent == PROPOSER:
            current.propose(action)
            judge_proposals([current], self._held.judge)
        else:
            current.attempt(action)
            judge_attempts([current], self._held.judge)

    def _settle(self, result: RoundResult) -> None:
        told = text_agents.outcomes(result, number=len(self.game.results) - 1)
        self._outcomes |= told
        self.rewards |= {agent: outcome.reward for agent, outcome in told.items()}
        if self.game.over:
            self.terminations = dict.fromkeys(self.agents, True)

    def _refresh(self) -> None:
        """Point to the agent whose turn it is, and bring the infos up to date."""
        current = self.game.round
        proposing = self.game.over or current.phase is Phase.PROPOSE
        self.agent_selection = self.possible_agents[0 if proposing else 1 + current.seat]
        self._ask()
        self.infos = {agent: text_agents.describe(self.game, agent, self._outcomes.get(agent)) for agent in self.agents}
