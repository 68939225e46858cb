"""TorchRL: the token game as an `EnvBase`, with the agents in the groups `proposers` and `solvers`.

Owns which switches of TorchRL's own PettingZoo wrapper our environments need, and what it must not see. The text faces
can't be wrapped: TorchRL does not pass a `Text` action on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pettingzoo import AECEnv, ParallelEnv
from pettingzoo.utils import BaseParallelWrapper, BaseWrapper

try:
    from torchrl.envs import PettingZooWrapper
except ImportError as error:
    raise ImportError("populora_env.bridges.torchrl needs TorchRL: pip install 'populora-league[bridges]'") from error

PROPOSERS, SOLVERS = "proposers", "solvers"

_Infos = dict[str, dict[str, Any]]


def torchrl_env(
    env: ParallelEnv[str, Any, int] | AECEnv[str, Any, int], *, seed: int | None = None, return_state: bool = True
) -> PettingZooWrapper:
    """Return the environment as TorchRL takes it.

    Each group has `observation`, `action`, `action_mask` (legal tokens; give it to a masked distribution), `mask` (AEC:
    whether it is the agent's turn), `reward`, `done`, and under `info` the numbers of our infos. `state` stands at the
    root, for a centralised critic.

    Args:
        env: `token_v0.parallel_env(...)` or `token_v0.env(...)`.
        seed: Of the first reset.
        return_state: Whether `state` is given.
    """
    return PettingZooWrapper(
        env=_ParallelWithoutMasks(env) if isinstance(env, ParallelEnv) else _WithoutMasks(env),
        group_map=group_map(env.possible_agents),
        use_mask=True,
        categorical_actions=True,
        return_state=return_state,
        done_on_any=False,
        seed=seed,
    )


def group_map(agents: list[str]) -> dict[str, list[str]]:
    """Return the agents of each group; the proposer is a group of one."""
    solvers = [agent for agent in agents if agent.startswith("solver")]
    return {PROPOSERS: [agent for agent in agents if agent not in solvers], SOLVERS: solvers}


class _WithoutMasks(BaseWrapper[str, Any, int]):  # type: ignore[misc]  # PettingZoo is untyped
    """An AEC environment without masks in its infos: TorchRL takes the observation's and trips over a second one."""

    @property
    def infos(self) -> _Infos:
        return _without_masks(self.env.infos)


class _ParallelWithoutMasks(BaseParallelWrapper[str, Any, int]):  # type: ignore[misc]  # PettingZoo is untyped
    """As `_WithoutMasks`, for a parallel environment."""

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], _Infos]:
        observations, infos = self.env.reset(seed=seed, options=options)
        return observations, _without_masks(infos)

    def step(self, actions: Mapping[str, int]) -> tuple[Any, ...]:
        *seen, infos = self.env.step(actions)
        return *seen, _without_masks(infos)


def _without_masks(infos: _Infos) -> _Infos:
    return {agent: {key: value for key, value in info.items() if key != "action_mask"} for agent, info in infos.items()}
