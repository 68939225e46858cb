"""`LocalExecutor`: all work in this process, one share after the other.

Owns the base's stack and what serves it. Several shards gain nothing here; they make the numbers those of a cluster
with as many.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from league.config import RunConfig
from league.executors.shares import one_report, request_shares, shared_lessons
from league.executors.types import ClosingJudge
from league.learning import MakeTrainer, lora_config, make_trainer
from league.serving import make_backend
from populora_agents.bases import Base
from populora_agents.stack import AdapterStack
from populora_agents.types import Backend, Completion, DivergedError, Request, Rollout, UpdateReport, UpdateRule


class LocalExecutor:
    """Implements `league.executors.types.Executor`."""

    def __init__(
        self,
        config: RunConfig,
        base: Base,
        judge: ClosingJudge,
        backend: Backend | None = None,
        new_trainer: MakeTrainer | None = None,
    ) -> None:
        """Put an empty stack on the base.

        Args:
            config: Resolved.
            base: Taken over: its model carries the stack from now on.
            judge: Taken over: closed with this.
            backend: Taken over: who completes prompts. None is the one that the configuration names.
            new_trainer: Makes what learns. None is the trainer that the configuration names.

        Raises:
            ValueError: Not resolved, targets that the base lacks, or as `make_backend`.
            EngineError: As `make_backend`.
        """
        cluster = config.cluster
        self.slots: dict[str, tuple[int, int]] = {}
        self.adapters = AdapterStack(base.model, lora_config(config), config.stack_slots)
        rule = (new_trainer or make_trainer)(config, self.adapters)
        self.rule: UpdateRule = rule if cluster.trainer_shards == 1 else ShardedRule(rule, cluster.trainer_shards)
        served = make_backend(config, base, self.adapters, self.slots) if backend is None else backend
        self.backend: Backend = served
        if cluster.rollout_shards > 1:
            self.backend = ShardedBackend(served, self.slots, cluster.rollout_shards)
        self.judge = judge

    def close(self) -> None:
        """Close backend and judge."""
        self.backend.close()
        self.judge.close()


class ShardedBackend:
    """Asks a backend once a share; implements `populora_agents.types.Backend`."""

    def __init__(self, backend: Backend, slots: Mapping[str, tuple[int, int]], shards: int) -> None:
        """Take the backend over."""
        self.name = backend.name
        self._backend = backend
        self._slots = slots
        self._shards = shards

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete the requests, in their order; see `Backend`."""
        completions: dict[int, Completion] = {}
        for places in request_shares(requests, self._slots, self._shards):
            answers = self._backend.generate([requests[place] for place in places]) if places else []
            completions |= zip(places, answers, strict=True)
        return [completions[place] for place in range(len(requests))]

    def close(self) -> None:
        """Close the backend."""
        self._backend.close()


class ShardedRule:
    """Updates by a rule once a share; implements `populora_agents.types.UpdateRule`."""

    def __init__(self, rule: UpdateRule, shards: int) -> None:
        """Wrap a rule."""
        self._rule = rule
        self._shards = shards

    def advantages(self, rollouts: Sequence[Rollout]) -> NDArray[Any]:
        """Return one advantage a rollout; see `UpdateRule`."""
        return self._rule.advantages(rollouts)

    def update(
        self,
        rollouts: Sequence[Rollout],
        advantages: ArrayLike,
        slots: Mapping[str, int],
        learning_rates: Mapping[str, float],
    ) -> UpdateReport:
        """Update the members of each share; see `UpdateRule`.

        Raises:
            DivergedError: As there; members of other shares may have moved.
        """
        began = time.perf_counter()
        reports: list[UpdateReport | DivergedError] = []
        for part, values in shared_lessons(rollouts, advantages, slots, self._shards):
            if part:
                try:
                    reports.append(self._rule.update(part, values, slots, learning_rates))
                except DivergedError as error:
                    reports.append(error)
        return one_report(reports, time.perf_counter() - began)

    def reset_slot(self, slot: int) -> None:
        """Forget what was learnt about one slot; see `UpdateRule`."""
        self._rule.reset_slot(slot)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the rule's state."""
        return self._rule.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self._rule.load_state_dict(state)
