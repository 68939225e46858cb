"""Many games of one environment, stepped side by side, as tensors for TorchRL's losses.

Owns stacking, padding and beginning anew. TorchRL's own wrapper gives the same tensors, a wrapper a game, but costs
five to thirty times what the games themselves do, so that little of a small budget would be left for learning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import torch
from gymnasium import spaces
from pettingzoo import ParallelEnv
from tensordict import TensorDict
from torch import Tensor

from benchmarks.marl.environments import Environment
from populora_env import Verifier

_THREADS = 4
_Seen = Mapping[str, Any]
"""Of a game, by agent."""


class Step(NamedTuple):
    """What a step brought, before games that are over begin anew."""

    after: TensorDict
    """[N]: what is seen, and `reward` [N, A, 1], `done` and `terminated` [N, A, 1] under `agents`; at the root `reward`
    (mean of the agents), `done` and `terminated`, [N, 1]."""
    gains: list[float]
    """N parts of scores."""
    over: list[bool]
    """N: whether the game ended."""


class Games:
    """N games with A agents, C choices and observations of D numbers; short ones are filled up with zeros.

    Games that wait for the verifier do so at the same time.
    """

    def __init__(self, environment: Environment, *, games: int, seed: int, verifier: Verifier | None) -> None:
        """Begin the games; the seed fixes them."""
        self.environment = environment
        self._envs = [environment.make(verifier) for _ in range(games)]
        first = self._envs[0]
        self.agents: list[str] = first.possible_agents
        self.width = max(_vector_space(first, agent).shape[0] for agent in self.agents)
        self._spaces = [int(first.action_space(agent).n) for agent in self.agents]
        self.choices = max(self._spaces)
        self._threads = ThreadPoolExecutor(_THREADS) if environment.judged else None
        seeds = np.random.SeedSequence(seed).generate_state(games)
        self._seen: list[_Seen] = [env.reset(seed=int(root))[0] for env, root in zip(self._envs, seeds, strict=True)]

    def close(self) -> None:
        """End the threads and the games."""
        if self._threads is not None:
            self._threads.shutdown()
        for env in self._envs:
            env.close()

    def look(self) -> TensorDict:
        """Return what is seen now, [N]: under `agents` `observation`, [N, A, D], and `action_mask`, bool [N, A, C].

        `state`, [N, A D], is all that the agents see.
        """
        return self._stack(self._seen)

    def step(self, chosen: Tensor) -> Step:
        """Take a choice of each agent, int64 [N, A]; games that are over begin anew."""
        walk = map if self._threads is None else self._threads.map
        stepped = list(walk(self._step, self._envs, chosen.tolist()))
        after = self._stack([seen for seen, *_ in stepped])
        rewards = torch.tensor([[rewards[agent] for agent in self.agents] for _, rewards, *_ in stepped])
        if self.environment.team:
            rewards = rewards.mean(-1, keepdim=True).expand_as(rewards).clone()
        ends = torch.tensor([any(ended.values()) for _, _, ended, *_ in stepped]).unsqueeze(-1)
        over = [not env.agents for env in self._envs]
        dones = torch.tensor(over).unsqueeze(-1)
        after["reward"], after["done"], after["terminated"] = rewards.mean(-1, keepdim=True), dones, ends
        after["agents", "reward"] = rewards.unsqueeze(-1)
        for name in ("done", "terminated"):
            after["agents", name] = after[name].unsqueeze(-1).expand(-1, len(self.agents), 1).clone()
        gains = [self.environment.gain(rewards, infos) for _, rewards, _, _, infos in stepped]
        self._seen = [
            env.reset()[0] if ended else seen for env, ended, (seen, *_) in zip(self._envs, over, stepped, strict=True)
        ]
        return Step(after, gains, over)

    def _step(self, env: ParallelEnv[str, Any, int], chosen: Sequence[int]) -> tuple[Any, ...]:
        return tuple(env.step(dict(zip(self.agents, chosen, strict=True))))

    def _stack(self, seen: Sequence[_Seen]) -> TensorDict:
        vectors = np.zeros((len(seen), len(self.agents), self.width), dtype=np.float32)
        masks = np.zeros((len(seen), len(self.agents), self.choices), dtype=bool)
        for game, each in enumerate(seen):
            for place, agent in enumerate(self.agents):
                own = each[agent]
                vector = own["observation"] if isinstance(own, dict) else own
                vectors[game, place, : len(vector)] = vector
                masks[game, place, : self._spaces[place]] = own["action_mask"] if isinstance(own, dict) else True
        batch = TensorDict({"state": torch.from_numpy(vectors.reshape(len(seen), -1))}, [len(seen)])
        batch["agents"] = TensorDict(
            {"observation": torch.from_numpy(vectors), "action_mask": torch.from_numpy(masks)},
            [len(seen), len(self.agents)],
        )
        return batch


def _vector_space(env: ParallelEnv[str, Any, int], agent: str) -> Any:
    space = env.observation_space(agent)
    return space["observation"] if isinstance(space, spaces.Dict) else space
