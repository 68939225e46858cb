"""BenchMARL: the token game as a task, with the agents in the groups `proposers` and `solvers`.

Owns the `TaskClass`. BenchMARL 1.5 pins torchrl < 0.12: give it an environment of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from populora_env import token_v0
from populora_env.bridges.torchrl import torchrl_env

try:
    from benchmarl.environments.common import TaskClass
except ImportError as error:
    raise ImportError("populora_env.bridges.benchmarl needs BenchMARL: pip install benchmarl") from error


def token_task(**arguments: Any) -> TokenTask:
    """Return the task for `Experiment(task=...)`; `arguments` are those of `token_v0.parallel_env`."""
    return TokenTask("TOKEN", arguments)


class TokenTask(TaskClass):  # type: ignore[misc]  # imported only where it is installed
    """The parallel token game; `config` holds the arguments of `token_v0.parallel_env`."""

    def get_env_fun(self, num_envs: int, continuous_actions: bool, seed: int | None, device: Any) -> Callable[[], Any]:
        """Return a maker of one game; BenchMARL makes as many as it wants.

        Raises:
            ValueError: Continuous actions are asked for.
        """
        del num_envs
        if continuous_actions:
            raise ValueError("`continuous_actions` must be False, tokens are discrete")
        config = dict(self.config)
        return lambda: torchrl_env(token_v0.parallel_env(**config), seed=seed).to(device)

    def supports_continuous_actions(self) -> bool:
        """Return False: tokens are discrete."""
        return False

    def supports_discrete_actions(self) -> bool:
        """Return True."""
        return True

    def has_render(self, env: Any) -> bool:
        """Return False: the game renders text, not frames."""
        del env
        return False

    def max_steps(self, env: Any) -> int:
        """Return the most steps of an episode: each round a proposal, then the answers side by side."""
        del env
        game = token_v0.parallel_env(**self.config)  # its verifier does not start before it is needed
        return 2 * game.config.rounds * int(self.config.get("max_tokens", token_v0.MAX_TOKENS))

    def group_map(self, env: Any) -> dict[str, list[str]]:
        """Return the agents of each group."""
        groups: dict[str, list[str]] = env.group_map
        return groups

    def state_spec(self, env: Any) -> Any:
        """Return the spec of `state`."""
        return _only(env, {"state"}, None)

    def action_mask_spec(self, env: Any) -> Any:
        """Return the specs of the groups' masks of legal tokens."""
        return _only(env, set(env.group_map), "action_mask")

    def observation_spec(self, env: Any) -> Any:
        """Return the specs of the groups' observations."""
        return _only(env, set(env.group_map), "observation")

    def info_spec(self, env: Any) -> Any:
        """Return the specs of the groups' infos."""
        return _only(env, set(env.group_map), "info")

    def action_spec(self, env: Any) -> Any:
        """Return the specs of the groups' actions."""
        return env.full_action_spec

    @staticmethod
    def env_name() -> str:
        """Return the name under which BenchMARL files its results."""
        return "populora"


def _only(env: Any, roots: set[str], leaf: str | None) -> Any:
    """Return the observation spec with only these keys at its root and, in each, only `leaf`."""
    spec = env.observation_spec.clone()
    for root in list(spec.keys()):
        if root not in roots:
            del spec[root]
        elif leaf is not None:
            for key in list(spec[root].keys()):
                if key != leaf:
                    del spec[root][key]
    return spec
