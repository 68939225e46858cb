"""What the two token faces share: spaces, the game under way, infos, rewards, rendering.

Owns the one gymnasium type that the token faces add, and what an agent is told beside its observation. Who writes when
and what is seen is in `token_game`, how rewards are shared out in `token_rewards`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from populora_env.config import GameConfig
from populora_env.game import Game, RoundResult
from populora_env.judging import Judge, judge_attempts, judge_proposals
from populora_env.rendering import picture
from populora_env.table import Table
from populora_env.token_game import TokenGame, TokenRules
from populora_env.token_grammar import N_TOKENS, Token
from populora_env.token_rewards import REWARD_MODES, RewardMode, shared_rewards
from populora_env.types import Status, Task, Verdict

MAX_TOKENS: Final = 24
"""Default budget of one derivation."""
NOOP: Final = int(Token.NOOP)

UNJUDGED, RIGHT, WRONG, MALFORMED = range(4)
"""Values of `verdict` in the infos: nothing judged since the agent last acted; valid or correct; neither; no text."""

TokenObservation = dict[str, npt.NDArray[Any]]
"""`observation`: float32 [D] in [0, 1] (`token_observation.Layout`); `action_mask`: int8 [57]."""

_TASKS = tuple(Task)


class TokenSpace(spaces.Discrete):
    """The tokens. Samples without a mask are legal for the space's agent, so that random play reaches all phases."""

    def __init__(self) -> None:
        """Make the space."""
        super().__init__(N_TOKENS)
        self.legal: npt.NDArray[np.int8] | None = None
        """What the agent may choose now, kept up to date by an environment."""

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        """Draw a token by `mask` or `probability`; with neither, one that is legal now.

        Raises:
            ValueError: The mask is not of shape [57], or both were given.
        """
        if probability is not None:
            if mask is not None:
                raise ValueError("`mask` and `probability` can't both be given")
            return self.dtype.type(self.np_random.choice(N_TOKENS, p=probability))
        if mask is None:
            mask = self.legal
        if mask is None:
            return super().sample()
        if np.shape(mask) != (N_TOKENS,):
            raise ValueError(f"`mask` must have the shape ({N_TOKENS},), got {np.shape(mask)}")
        (legal,) = np.asarray(mask).nonzero()
        return legal[self.np_random.integers(len(legal))] if len(legal) else self.start


class TokenTable(Table[TokenSpace]):
    """A table at which agents speak by tokens.

    Infos hold numbers alone, under the same keys at all times: `action_mask`, `round` (0-based), `task` (0 deduction, 1
    abduction, 2 induction), and of the agent's last round until it acts again `verdict` (`UNJUDGED`, `RIGHT`, `WRONG`,
    `MALFORMED`), `solve_rate` and `game_reward` (what the game itself paid, whatever the reward mode).
    """

    together: ClassVar[bool]
    """Whether the solvers write at the same time, or one after the other."""

    def __init__(
        self,
        *,
        config: GameConfig,
        verifier: Judge | None = None,
        reward_mode: RewardMode = "individual",
        max_tokens: int = MAX_TOKENS,
        render_mode: str | None = None,
        on_settled: Callable[[RoundResult], None] | None = None,
    ) -> None:
        """Make the table.

        Args:
            config: Rules of the game.
            verifier: See `Table`.
            reward_mode: How what a round paid is shared out (`token_rewards.shared_rewards`).
            max_tokens: Most tokens of one derivation; what the rules need at least is said in the error.
            render_mode: See `Table`.
            on_settled: See `Table`.

        Raises:
            ValueError: Unknown mode, or too small a budget.
        """
        super().__init__(config=config, verifier=verifier, render_mode=render_mode, on_settled=on_settled)
        if reward_mode not in REWARD_MODES:
            raise ValueError(f"`reward_mode` must be one of {REWARD_MODES}, got {reward_mode!r}")
        self.reward_mode: RewardMode = reward_mode
        self.rules = TokenRules(config=config, max_tokens=max_tokens, together=self.together)
        self.observation_spaces = {agent: _observation_space(self.rules.layout.size) for agent in self.possible_agents}
        self.action_spaces = {agent: TokenSpace() for agent in self.possible_agents}
        state = (len(self.possible_agents) * self.rules.layout.size,)
        self.state_space = spaces.Box(low=0.0, high=1.0, shape=state, dtype=np.float32)
        self._place = {agent: place for place, agent in enumerate(self.possible_agents)}

    @property
    def game(self) -> Game:
        """The game under way, with the results of its rounds."""
        return self.table.game

    def observe(self, agent: str) -> TokenObservation:
        """Return what `agent` may know now. Pure; never shows a solver what is asked for."""
        seat = self.table.seats[self._place[agent]]
        return {"observation": seat.vector.copy(), "action_mask": seat.mask.copy()}

    def state(self) -> npt.NDArray[np.float32]:
        """Return the observations of all agents as one vector: what they know together, nothing more."""
        return np.concatenate([seat.vector for seat in self.table.seats])

    def _deal(self, seed: int | None) -> None:
        """Begin an episode."""
        self.table = TokenGame(self.rules, self._next_seed(seed), on_settled=self._on_settled)
        self.agents = list(self.possible_agents)
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._outcomes: dict[str, dict[str, float]] = {agent: _NO_OUTCOME for agent in self.agents}
        self.infos: dict[str, dict[str, Any]] = {}
        self._tell(*self.agents)

    def _act(self, agent: str, token: int) -> bool:
        """Take an agent's token; return whether it finished what it wrote."""
        self._outcomes[agent] = _NO_OUTCOME
        return self.table.choose(self._place[agent], token)

    def _go_on(self) -> RoundResult | None:
        """Have the round judged if it waits for that, and go on; return how it ended if it did."""
        current = self.table.game.round
        judge_proposals([current], self._held.judge)
        judge_attempts([current], self._held.judge)
        result = self.table.proceed()
        if result is not None:
            self._settle(result)
        self._tell(*self.agents)
        return result

    def _settle(self, result: RoundResult) -> None:
        shares = shared_rewards(result, self.reward_mode, self.config.solver_seats)
        self.rewards = dict(zip(self.possible_agents, shares, strict=True))
        rho = 0.0 if result.solve_rate is None else result.solve_rate
        judged = [(result.proposal_verdict, result.proposer_reward)]
        judged += zip(result.attempt_verdicts, result.solver_rewards, strict=True)
        for agent, (verdict, reward) in zip(self.possible_agents, judged, strict=False):
            self._outcomes[agent] = {"verdict": _code(verdict), "solve_rate": rho, "game_reward": reward}
        if self.table.game.over:
            self.terminations = dict.fromkeys(self.agents, True)

    def _tell(self, *agents: str) -> None:
        """Bring the agents' infos and the samples of their action spaces up to date."""
        number, task = self.table.game.round_index, _TASKS.index(self.table.game.round.task)
        for agent in agents:
            mask = self.table.seats[self._place[agent]].mask
            self.action_spaces[agent].legal = mask
            outcome = self._outcomes[agent]
            self.infos[agent] = {"action_mask": mask.copy(), "round": number, "task": task, **outcome}

    def _picture(self) -> str:
        writing = {self.possible_agents[place]: self.table.seats[place].derivation for place in self.table.writing}
        lines = [picture(self.table.game, list(writing))]
        for agent, derivation in writing.items():
            chosen = () if derivation is None else (*derivation.done, derivation.part)
            words = " ".join(Token(token).name.lower() for part in chosen for token in part)
            lines += [f"  {agent} writes: {words}"] if words else []
        return "\n".join(lines)


_NO_OUTCOME: Final[dict[str, float]] = {"verdict": UNJUDGED, "solve_rate": 0.0, "game_reward": 0.0}


def _code(verdict: Verdict) -> int:
    if verdict.ok:
        return RIGHT
    return MALFORMED if verdict.status is Status.FORMAT else WRONG


def read_token(agent: str, action: Any) -> int:
    """Return an action as a token.

    Raises:
        ValueError: It is none.
    """
    try:
        token = operator.index(action)
    except TypeError:
        raise ValueError(f"an action of {agent} must be a token, an int, got {type(action).__name__}") from None
    if not 0 <= token < N_TOKENS:
        raise ValueError(f"an action of {agent} must be in 0..{N_TOKENS - 1}, got {token!r}")
    return token


def _observation_space(size: int) -> spaces.Dict:
    vector = spaces.Box(low=0.0, high=1.0, shape=(size,), dtype=np.float32)
    mask = spaces.Box(low=0, high=1, shape=(N_TOKENS,), dtype=np.int8)
    return spaces.Dict({"observation": vector, "action_mask": mask})
