"""The environments' ids in the registries of gymnasium and PettingZoo.

Owns the ids. `import populora_env` enters them; nothing of an environment is loaded before it is made.
"""

from __future__ import annotations

import pettingzoo
from gymnasium.envs.registration import register, registry

SOLVER_ID, PROPOSER_ID = "populora/Solver-v0", "populora/Proposer-v0"
"""Single-seat views, for `gymnasium.make` and `gymnasium.make_vec`."""
TEXT_ID, TOKEN_ID = "populora/Text-v0", "populora/Token-v0"
"""All seats, for `pettingzoo.make`, both as `aec` and as `parallel`."""


def register_environments() -> None:
    """Enter the ids where they are missing; PettingZoo has a registry from 1.27 on."""
    for env_id, name in ((SOLVER_ID, "solver"), (PROPOSER_ID, "proposer")):
        if env_id not in registry:
            register(
                env_id,
                entry_point=f"populora_env.solo_envs:{name.capitalize()}Env",
                vector_entry_point=f"populora_env.vector:make_{name}_vec",
            )
    if "register" not in pettingzoo.__all__:
        return
    for env_id, module in ((TEXT_ID, "text_v0"), (TOKEN_ID, "token_v0")):
        if env_id not in pettingzoo.aec_registry:
            pettingzoo.register("aec", env_id, f"populora_env.{module}:env")
            pettingzoo.register("parallel", env_id, f"populora_env.{module}:parallel_env")
