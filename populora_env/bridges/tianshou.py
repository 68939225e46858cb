"""Tianshou 2: the token game in Tianshou's PettingZoo wrapper, one policy an agent.

Owns nothing but the check that the environment is one which Tianshou's wrapper can take. Its observations carry
`agent_id`, `obs` and `mask`; Tianshou's DQN and random policies obey the mask, its discrete actors do not look at it.
"""

from __future__ import annotations

from typing import Any

from gymnasium import spaces
from pettingzoo import AECEnv

try:
    from tianshou.env import PettingZooEnv
except ImportError as error:
    raise ImportError(
        "populora_env.bridges.tianshou needs Tianshou 2: pip install 'populora-league[bridges]'"
    ) from error


def tianshou_env(env: AECEnv[str, Any, int]) -> PettingZooEnv:
    """Return the environment as Tianshou takes it; `env.agents` names the agents in the order of the rewards.

    Args:
        env: `token_v0.env(...)`.

    Raises:
        ValueError: A parallel environment, or one without a mask.
    """
    space = env.observation_space(env.possible_agents[0]) if isinstance(env, AECEnv) else None
    if not isinstance(space, spaces.Dict) or "action_mask" not in space.spaces:
        raise ValueError(f"expected an AEC environment with `action_mask`, as from token_v0.env, got {env}")
    return PettingZooEnv(env)
