"""Many games at once behind one verifier: the single-seat views as a gymnasium vector environment.

Owns batching and autoreset. All games stand at a turn of the same seat; a step takes one action of each, and whatever
has to be judged goes to the verifier in one call a phase, which keeps all its processes at work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, Unpack

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.utils import seeding
from gymnasium.vector.utils import batch_space

from populora_env import text_agents
from populora_env.config import GameConfig
from populora_env.judging import HeldJudge, Judge
from populora_env.rules import Rules, make_config
from populora_env.solo import MOST_GAMES, SoloGame, begin, deal, no_problem, take
from populora_env.spaces import UnicodeText
from populora_env.text_agents import TextObservation
from populora_env.types import Policy, Role

try:
    from gymnasium.vector import AutoresetMode
except ImportError:  # gymnasium 1.0 has no name for it
    _METADATA: dict[str, Any] = {}
else:
    _METADATA = {"autoreset_mode": AutoresetMode.SAME_STEP}

View = Literal["solver", "proposer"]

_Infos = dict[str, Any]
_Stepped = tuple[TextObservation, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], _Infos]


def make_vec(
    num_envs: int,
    *,
    view: View = "solver",
    proposer: Policy | None = None,
    solvers: Policy | Sequence[Policy] | None = None,
    config: GameConfig | None = None,
    verifier: Judge | None = None,
    render_mode: str | None = None,
    **rules: Unpack[Rules],
) -> SoloVectorEnv:
    """Return `num_envs` games that are stepped together.

    Args:
        num_envs: Games.
        view: The open seat: `solver` (as `populora/Solver-v0`) or `proposer` (as `populora/Proposer-v0`).
        proposer: Who proposes, see `solo_envs.SolverEnv`; None under the proposer's view.
        solvers: Who holds the other solver seats, see `solo_envs.SolverEnv`. A policy serves all games.
        config: Rules of the game; None means the default rules, with one solver seat under the solver's view.
        verifier: Judge shared with others, which `close` leaves alone; None makes an own one for all games.
        render_mode: `ansi` (`render` returns one text a game) or None.
        **rules: The rules that differ from `config`'s; all names are in `populora_env.rules.Rules`.

    Raises:
        TypeError: There is no such rule.
        ValueError: An argument is out of range.
    """
    if num_envs < 1 or view not in ("solver", "proposer"):
        raise ValueError(f"expected at least one game of view solver or proposer, got {num_envs!r} and {view!r}")
    if proposer is not None and view == "proposer":
        raise ValueError("`proposer` must be None under the proposer's view: that seat is yours")
    if render_mode not in (None, "ansi"):
        raise ValueError(f"`render_mode` must be None or 'ansi', got {render_mode!r}")
    role = Role(view)
    settings = make_config(config, rules, solver_seats=1 if role is Role.SOLVER else None)
    games = [SoloGame(settings, role, proposer=proposer, solvers=solvers) for _ in range(num_envs)]
    return SoloVectorEnv(games, verifier, render_mode)


make_solver_vec = partial(make_vec, view="solver")
"""Under gymnasium's name for the number of games, for its registry."""
make_proposer_vec = partial(make_vec, view="proposer")
"""As `make_solver_vec`."""


class SoloVectorEnv(gymnasium.vector.VectorEnv[TextObservation, Sequence[str], npt.NDArray[Any]]):
    """Games that are stepped together, each from the same seat.

    Observations are a dict of `observation`, float32 [n, VECTOR_SIZE], and `prompt`, a tuple of n texts; actions are n
    texts. A game that ends begins anew at once (same-step autoreset): the observation is already the next episode's
    first, and the last one stands in `infos["final_obs"]`, its info in `infos["final_info"]`. Game i behaves as the
    single environment reset with `seed + i`.
    """

    def __init__(self, games: Sequence[SoloGame], verifier: Judge | None, render_mode: str | None) -> None:
        """Make the environment; see `make_vec`, which checks the arguments."""
        config, agent = games[0].config, games[0].agent
        self.metadata = {"render_modes": ["ansi"]} | _METADATA
        self.config = config
        self.render_mode = render_mode
        self.num_envs = len(games)
        self.single_observation_space = text_agents.observation_space(config)
        self.single_action_space = UnicodeText(config, role=text_agents.role_of(agent))
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._texts = [UnicodeText(config, role=text_agents.role_of(agent), seed=place) for place in range(len(games))]
        self.action_space = gymnasium.spaces.Tuple(self._texts)
        self._games = list(games)
        self._held = HeldJudge(verifier, config)
        self._rngs: list[np.random.Generator] = []

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[TextObservation, _Infos]:
        """Begin an episode of every game. With `seed` (game i gets `seed + i`, or its own), all later ones are fixed.

        Raises:
            RuntimeError: The proposer's policy makes no valid problem, in many games in a row.
            ValueError: The number of seeds is not that of the games.
        """
        del options
        if seed is not None or not self._rngs:
            self._rngs = [seeding.np_random(each)[0] for each in self._seeds(seed)]
        begin(self._games, self._rngs, self._held.judge)
        return self._seen(), _stacked(dict(enumerate(game.describe() for game in self._games)), self.num_envs)

    def step(self, actions: Sequence[str]) -> _Stepped:
        """Take one action of each game.

        `infos["outcome"]` and `infos["reward_parts"]` tell of the action just taken, of games that ended too.

        Raises:
            RuntimeError: The proposer's policy makes no valid problem, in many games in a row.
            ValueError: The number of actions is not that of the games, or one is no `str`.
        """
        if len(actions) != self.num_envs:
            raise ValueError(f"`actions` must be {self.num_envs}, one a game, got {len(actions)}")
        take(self._games, actions, self._held.judge)
        told = [game.outcome for game in self._games]
        ended = self._restart()
        infos = {}
        for place, (game, outcome) in enumerate(zip(self._games, told, strict=True)):
            infos[place] = text_agents.describe(game.game, game.agent, outcome)
        stacked = _stacked(infos, self.num_envs)
        if ended:
            finals = {place: info for place, (_, info) in ended.items()}
            stacked |= _stacked({place: {"final_obs": seen} for place, (seen, _) in ended.items()}, self.num_envs)
            stacked |= {"final_info": _stacked(finals, self.num_envs), "_final_info": stacked["_final_obs"].copy()}
        rewards = np.array([0.0 if outcome is None else outcome.reward for outcome in told])
        terminations = np.array([place in ended for place in range(self.num_envs)])
        return self._seen(), rewards, terminations, np.zeros(self.num_envs, dtype=np.bool_), stacked

    def render(self) -> tuple[str, ...] | None:
        """Return for each game the round of its last turn, as text."""
        return tuple(game.picture() for game in self._games) if self.render_mode == "ansi" else None

    def close_extras(self, **kwargs: Any) -> None:
        """End the verifier's processes, if it is the environment's own."""
        del kwargs
        self._held.close()

    def _restart(self) -> dict[int, tuple[TextObservation, dict[str, Any]]]:
        """Bring every game to its next turn, those that end to that of a new episode; return what ended ones showed."""
        ended: dict[int, tuple[TextObservation, dict[str, Any]]] = {}
        for _ in range(MOST_GAMES):
            for place, game in enumerate(self._games):
                if game.over:
                    ended.setdefault(place, (game.observe(), game.describe()))
                    game.begin(self._rngs[place])
            deal(self._games, self._held.judge)
            if not any(game.over for game in self._games):
                return ended
        raise no_problem()

    def _seeds(self, seed: int | Sequence[int] | None) -> Sequence[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int):
            return [seed + place for place in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError(f"`seed` must be one number or {self.num_envs}, one a game, got {len(seed)}")
        return seed

    def _seen(self) -> TextObservation:
        seen = [game.observe() for game in self._games]
        for space, game in zip(self._texts, self._games, strict=True):
            space.asked = text_agents.seen_by(game.game, game.agent)
        return {
            "observation": np.stack([each["observation"] for each in seen]),
            "prompt": tuple(each["prompt"] for each in seen),
        }


def _stacked(infos: Mapping[int, Mapping[str, Any]], n: int) -> _Infos:
    """Return infos as gymnasium's vector environments do: one array of objects a key, with a mask of who has it."""
    stacked: _Infos = {}
    for place, info in infos.items():
        for key, value in info.items():
            if key not in stacked:
                stacked[key], stacked[f"_{key}"] = np.full(n, None, dtype=object), np.zeros(n, dtype=np.bool_)
            stacked[key][place], stacked[f"_{key}"][place] = value, True
    return stacked
