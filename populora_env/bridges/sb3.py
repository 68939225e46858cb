"""Stable-Baselines3: token games as one `VecEnv` that sb3-contrib's MaskablePPO trains on.

Every seat of every game is a row, and one policy plays them all; the observation says which role a seat has. The rows
of a game are the proposer's, then the solvers'. A seat that waits has NOOP as its only legal action, so that its rows
teach the policy nothing.

Owns the `VecEnv`. Takes parallel environments with `Discrete` actions and a numeric observation beside a mask, in which
all agents live to the end: the token faces. A `Text` leaf anywhere fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from pettingzoo import ParallelEnv

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise ImportError("populora_env.bridges.sb3 needs sb3-contrib: pip install 'populora-league[bridges]'") from error

_Rows = dict[str, Any]


class TokenVecEnv(VecEnv):  # imported only where it is installed
    """`n_envs` games with `agents` seats each; a game begins anew when it is over."""

    def __init__(self, make: Callable[[], ParallelEnv[str, Any, int]], n_envs: int = 1) -> None:
        """Make the games.

        Args:
            make: Makes one game, e.g. `lambda: token_v0.parallel_env(verifier=shared)`; one shared verifier serves all.
            n_envs: Games, >= 1.

        Raises:
            ValueError: No game, or one whose agents differ in their spaces or have no numbers to show.
        """
        if n_envs < 1:
            raise ValueError(f"`n_envs` must be at least 1, got {n_envs!r}")
        self.games = [make() for _ in range(n_envs)]
        self.agents: list[str] = self.games[0].possible_agents
        first, *others = ((self.games[0].observation_space(a), self.games[0].action_space(a)) for a in self.agents)
        if "action_mask" not in first[0].spaces:
            raise ValueError(f"expected a game with `action_mask`, as from token_v0.parallel_env, got {first[0]}")
        if any(spaces != first for spaces in others):
            raise ValueError("expected the same spaces for all agents of a game")
        self._masks = np.ones((n_envs * len(self.agents), int(first[1].n)), dtype=bool)
        self._actions: npt.NDArray[np.int64] = np.zeros(len(self._masks), dtype=np.int64)
        super().__init__(len(self._masks), first[0].spaces["observation"], first[1])

    def reset(self) -> npt.NDArray[np.float32]:
        """Begin all games; those after a `seed` are fixed by it."""
        seeds = [self._seeds[row] for row in range(0, self.num_envs, len(self.agents))]
        starts = [game.reset(seed=seed) for game, seed in zip(self.games, seeds, strict=True)]
        self.reset_infos = [infos[agent] for _, infos in starts for agent in self.agents]
        self._reset_seeds()
        return self._seen([observations for observations, _ in starts])

    def step_async(self, actions: npt.NDArray[np.int64]) -> None:
        """Keep the actions, one a row."""
        self._actions = actions

    def step_wait(
        self,
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]]:
        """Take the actions; a finished game gives its last observation as `terminal_observation` and begins anew."""
        seen, paid, done, told = [], [], [], []
        for game, row in zip(self.games, range(0, self.num_envs, len(self.agents)), strict=True):
            chosen = dict(zip(self.agents, self._actions[row : row + len(self.agents)].tolist(), strict=True))
            observations, rewards, terminations, truncations, infos = game.step(chosen)
            over = not game.agents
            for agent in self.agents:
                last = {"terminal_observation": observations[agent]["observation"]} if over else {}
                only_cut = {"TimeLimit.truncated": truncations[agent] and not terminations[agent]}
                told.append({**infos[agent], **only_cut, **last})
            paid += [rewards[agent] for agent in self.agents]
            done += [over] * len(self.agents)
            seen.append(game.reset()[0] if over else observations)
        return self._seen(seen), np.array(paid, dtype=np.float32), np.array(done), told

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions are legal now, bool [rows, actions]."""
        return self._masks.copy()

    def close(self) -> None:
        """Close all games."""
        for game in self.games:
            game.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return, a row, its game's attribute of that name; `action_masks` is there for MaskablePPO's sake.

        Raises:
            AttributeError: There is none.
        """
        if attr_name == "action_masks":
            return [self.action_masks for _ in self._rows(indices)]
        return [getattr(self._game(row), attr_name) for row in self._rows(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of the rows' games."""
        for row in self._rows(indices):
            setattr(self._game(row), attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Call a method of the rows' games; `action_masks` gives the rows' masks."""
        if method_name == "action_masks":
            return [self._masks[row].copy() for row in self._rows(indices)]
        return [getattr(self._game(row), method_name)(*method_args, **method_kwargs) for row in self._rows(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Return False for each row: no wrapper of gymnasium is round a game."""
        del wrapper_class
        return [False for _ in self._rows(indices)]

    def _seen(self, observations: Iterable[_Rows]) -> npt.NDArray[np.float32]:
        rows = [seen[agent] for seen in observations for agent in self.agents]
        self._masks = np.array([row["action_mask"] for row in rows], dtype=bool)
        return np.stack([row["observation"] for row in rows])

    def _rows(self, indices: Any) -> Iterable[int]:
        return list(self._get_indices(indices))

    def _game(self, row: int) -> Any:
        return self.games[row // len(self.agents)]
