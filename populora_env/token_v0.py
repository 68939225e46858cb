"""The game in tokens, for classic multi-agent algorithms: PettingZoo AEC (`env`) and parallel (`parallel_env`).

| fact | token_v0 |
|---|---|
| import | `from populora_env import token_v0` |
| agents | `proposer_0`, and `solver_0` to `solver_{G-1}` (`solver_seats`, default 4) |
| action space | `Discrete(57)`, alike for all: 0 is NOOP, the others the tokens of a typed grammar (`token_grammar`) |
| observation space | `Dict(observation: Box(0, 1, (D,), float32), action_mask: Box(0, 1, (57,), int8))`, alike for \
all agents; D = 1222 under the default rules (`token_observation.Layout`) |
| state | `Box(0, 1, (D * (G + 1),), float32)`: the observation vectors of all agents |
| rewards | when a round ends, by `reward_mode`: `individual` (as in text_v0), `team`, `zero_sum` (`token_rewards`) |
| turns (AEC) | proposer, then each solver in turn, token by token; after an invalid proposal the proposer again |
| steps (parallel) | the proposer writes a token a step, then all solvers at once; who waits passes NOOP |
| episode | `rounds` (or `max_cycles`, default 3) rounds; all agents live to the end, then terminate together |
| keyword arguments | those of text_v0, and `reward_mode`, `max_tokens` (default 24) |
| render modes | `ansi`, `human` |
| seeding | `reset(seed=...)`; the same seed and actions give the same episode on every machine |

A turn is a derivation of at most `max_tokens` tokens. The mask holds the tokens that keep it typed and finishable; for
who waits it holds NOOP alone, and whatever they choose is ignored. A token that is not legal ends the derivation as
malformed: it costs the format reward. Finished derivations are printed as Python and judged like any text.

Owns the AEC face: whose turn it is and when which reward is seen. Infos and spaces are in `token_table`, who writes
when and what is seen in `token_game`. Reading rewards: the proposer's arrives after the solvers acted, at its next
`last()` or at its dead step.
"""

from __future__ import annotations

from typing import Any, Unpack

from pettingzoo import AECEnv
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from populora_env.config import GameConfig
from populora_env.judging import Judge
from populora_env.rendering import RENDER_MODES
from populora_env.rules import Rules, make_config
from populora_env.text_agents import PROPOSER
from populora_env.token_parallel import TokenParallelEnv
from populora_env.token_rewards import RewardMode
from populora_env.token_table import MAX_TOKENS, NOOP, TokenObservation, TokenSpace, TokenTable, read_token

__all__ = [
    "MAX_TOKENS",
    "NOOP",
    "PROPOSER",
    "TokenEnv",
    "TokenObservation",
    "TokenParallelEnv",
    "TokenSpace",
    "env",
    "parallel_env",
    "raw_env",
]


def env(
    *,
    config: GameConfig | None = None,
    verifier: Judge | None = None,
    reward_mode: RewardMode = "individual",
    max_tokens: int = MAX_TOKENS,
    render_mode: str | None = None,
    **rules: Unpack[Rules],
) -> OrderEnforcingWrapper[str, TokenObservation, int]:
    """Return the game one agent after the other, with PettingZoo's check of the calling order.

    Args:
        config: Rules of the game; None means the default rules.
        verifier: See `TokenTable`.
        reward_mode: See `TokenTable`.
        max_tokens: See `TokenTable`.
        render_mode: See `TokenTable`.
        **rules: The rules that differ from `config`'s, e.g. `rounds=5, solver_seats=2, tasks=("deduction",)`; all
            names are in `populora_env.rules.Rules`.

    Raises:
        TypeError: There is no such rule.
        ValueError: A rule or a mode is out of range, or `max_tokens` too small.
    """
    return OrderEnforcingWrapper(
        raw_env(
            config=config,
            verifier=verifier,
            reward_mode=reward_mode,
            max_tokens=max_tokens,
            render_mode=render_mode,
            **rules,
        )
    )


def raw_env(
    *,
    config: GameConfig | None = None,
    verifier: Judge | None = None,
    reward_mode: RewardMode = "individual",
    max_tokens: int = MAX_TOKENS,
    render_mode: str | None = None,
    **rules: Unpack[Rules],
) -> TokenEnv:
    """Return the bare game one agent after the other; arguments as for `env`."""
    return TokenEnv(
        config=make_config(config, rules),
        verifier=verifier,
        reward_mode=reward_mode,
        max_tokens=max_tokens,
        render_mode=render_mode,
    )


def parallel_env(
    *,
    config: GameConfig | None = None,
    verifier: Judge | None = None,
    reward_mode: RewardMode = "individual",
    max_tokens: int = MAX_TOKENS,
    render_mode: str | None = None,
    **rules: Unpack[Rules],
) -> TokenParallelEnv:
    """Return the game in which all who write choose a token at once; arguments as for `env`."""
    return TokenParallelEnv(
        config=make_config(config, rules),
        verifier=verifier,
        reward_mode=reward_mode,
        max_tokens=max_tokens,
        render_mode=render_mode,
    )


class TokenEnv(TokenTable, AECEnv[str, TokenObservation, int]):  # type: ignore[misc]  # PettingZoo is untyped
    """One agent at a time: the proposer writes its proposal, then each solver its answer, token by token.

    The answers are judged together at the last solver's last token. An episode ends after `config.rounds` rounds.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012  (PettingZoo's own attribute)
        "name": "populora_token_v0",
        "render_modes": list(RENDER_MODES),
        "is_parallelizable": False,
    }
    together = False

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Begin an episode. With `seed`, it and all later ones without are fixed; `options` are not used."""
        del options
        self._deal(seed)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self._skip_agent_selection = None
        self._paid = False
        self.agent_selection = PROPOSER

    def step(self, action: int | None) -> None:
        """Take the token of the agent whose turn it is; None for one whose episode is over.

        Raises:
            ValueError: The action is no token, or an agent that is done was given one.
        """
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        token = read_token(agent, action)
        if self._paid:
            self.rewards, self._paid = dict.fromkeys(self.agents, 0.0), False
        self._cumulative_rewards[agent] = 0.0
        finished = self._act(agent, token)
        if not finished:
            self._tell(agent)
            return
        result = self._go_on()
        writing = self.table.writing
        self.agent_selection = self.possible_agents[writing[0]] if writing else PROPOSER
        if result is None:
            return
        self._paid = True
        self._accumulate_rewards()
        if self.render_mode == "human":
            self.render()
