"""What runs in an actor's process: a rollout worker, a trainer, a judge. Knows nothing of Ray.

Owns what a process holds between calls (base, stack, moments, verifier). Nothing of it is needed to go on: whatever a
call needs, its arguments name, so that a fresh process answers the same call with the same bits. Importing this loads
neither torch nor a model: threads have to be set before, and a failure to load shall reach whoever asked.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from league.executors.types import ExecutorError
from league.machine import prepare_torch
from populora_agents.types import DivergedError
from populora_env.types import Answer, Problem, Proposal, ProposalVerdict, Verdict
from populora_env.verifier import Verifier

if TYPE_CHECKING:
    from league.config import RunConfig
    from league.executors.ledger import Place, RowShapes
    from league.learning import MakeTrainer
    from populora_agents.backends.torch import TorchBackend
    from populora_agents.stack import AdapterStack
    from populora_agents.types import Completion, Rollout, UpdateReport, UpdateRule
    from populora_env.config import VerifierConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlan:
    """What a worker is made of."""

    config: RunConfig
    """Resolved."""
    base: str
    """Name of the base, with its version."""
    new_trainer: MakeTrainer | None
    """Makes what learns; None is the trainer that the configuration names."""


class Worker:
    """A process that can be asked who it is."""

    def pid(self) -> int:
        """Return the process id."""
        return os.getpid()


class ModelWorker(Worker):
    """Holds the base with a stack that has all slots of the league, filled as calls need them."""

    def __init__(self, plan: WorkerPlan) -> None:
        """Load nothing yet."""
        self._plan = plan
        self._weights: dict[int, str] = {}

    @cached_property
    def _stack(self) -> AdapterStack:
        return self._loaded[1]

    @cached_property
    def _loaded(self) -> tuple[Any, AdapterStack]:
        """The base and the stack on it."""
        config = self._plan.config
        prepare_torch(config.machine.threads)
        import torch

        from league.learning import lora_config
        from populora_agents.bases import load_base
        from populora_agents.stack import AdapterStack

        dtype = None if config.machine.dtype == "auto" else getattr(torch, config.machine.dtype)
        device = "cuda" if config.cluster.worker_gpus else "cpu"
        base = load_base(self._plan.base, device=device, dtype=dtype)
        return base, AdapterStack(base.model, lora_config(config), config.stack_slots)

    def _fill(self, slot: int, weights: str) -> None:
        """Have a slot hold the weights that lie there."""
        if self._weights.get(slot) == weights:
            return
        from populora_agents.lora import load_adapter

        if not Path(weights).is_dir():
            raise ExecutorError(
                f"the node {os.uname().nodename} does not see {weights!r}: the run folder must lie where all nodes do"
            )
        self._weights.pop(slot, None)
        self._stack.load(slot, load_adapter(weights)[0])
        self._weights[slot] = weights


class RolloutWorker(ModelWorker):
    """Completes requests of the members of its share."""

    def generate(
        self, requests: Sequence[Any], slots: Mapping[str, tuple[int, int]], weights: Mapping[int, str]
    ) -> list[Completion]:
        """Complete the requests, in their order.

        Args:
            requests: `populora_agents.types.Request`s.
            slots: Slot and version by member id, of the members asked.
            weights: Folder of the adapter by slot; what is held already is not read again.
        """
        for slot, path in weights.items():
            self._fill(slot, path)
        self._slots.clear()
        self._slots.update(slots)
        return self._backend.generate(requests)

    @cached_property
    def _slots(self) -> dict[str, tuple[int, int]]:
        return {}

    @cached_property
    def _backend(self) -> TorchBackend:
        from populora_agents.backends.torch import TorchBackend

        base, stack = self._loaded
        return TorchBackend(base, stack, self._slots)


class TrainWorker(ModelWorker):
    """Updates the members of its share, and writes what they have become before it answers."""

    def __init__(self, plan: WorkerPlan) -> None:
        """Load nothing yet."""
        super().__init__(plan)
        self._moments: dict[int, str | None] = {}

    def advantages(self, rollouts: Sequence[Rollout]) -> Any:
        """Return one advantage a rollout, [N]."""
        return self._rule.advantages(rollouts)

    def update(
        self,
        rollouts: Sequence[Rollout],
        advantages: Any,
        rates: Mapping[str, float],
        share: Mapping[str, tuple[int, Place, str]],
    ) -> UpdateReport | DivergedError:
        """Update members.

        Args:
            rollouts: Of the members of the share.
            advantages: float64 [N].
            rates: Learning rates by member id.
            share: By member id its slot, where its state lies, and the folder that takes its new one.

        Returns:
            What the update did, or the error where members diverged: other shares may have diverged too.
        """
        self._take(share)
        slots = {member_id: slot for member_id, (slot, _, _) in share.items()}
        for slot in slots.values():  # until all is written, what is held is what no file says
            del self._weights[slot], self._moments[slot]
        try:
            report = self._rule.update(rollouts, advantages, slots, rates)
        except DivergedError as error:
            return error
        self._give(share)
        return report

    def row_shapes(self) -> RowShapes:
        """Return what the optimiser keeps for one slot.

        Raises:
            ExecutorError: It keeps something that is not one row a slot, which cannot be shared out.
        """
        state = self._rule.state_dict()
        for name, value in state.items():
            if value.ndim == 0 or value.shape[0] != self._stack.slots:
                raise ExecutorError(f"the trainer keeps {name!r} of shape {list(value.shape)!r}, not one row a slot")
        return {name: (tuple(value.shape[1:]), value.dtype) for name, value in state.items()}

    @cached_property
    def _rule(self) -> UpdateRule:
        from league.learning import make_trainer

        return (self._plan.new_trainer or make_trainer)(self._plan.config, self._stack)

    def _take(self, share: Mapping[str, tuple[int, Place, str]]) -> None:
        """Have weights and moments of the share as they lie in its places."""
        from league.executors.ledger import read_moments

        learnt: dict[int, str] = {}
        for slot, place, _ in share.values():
            self._fill(slot, place.weights)
            if place.moments is None:
                self._rule.reset_slot(slot)
            elif self._moments.get(slot) != place.moments:
                learnt[slot] = place.moments
            self._moments[slot] = place.moments
        if learnt:
            state = self._rule.state_dict()
            for slot, path in learnt.items():
                for name, row in read_moments(path).items():
                    state[name][slot] = row
            self._rule.load_state_dict(state)

    def _give(self, share: Mapping[str, tuple[int, Place, str]]) -> None:
        """Write weights and moments of the share to its targets."""
        from league.executors.ledger import write_moments
        from league.learning import lora_config
        from populora_agents.lora import save_adapter

        state, lora = self._rule.state_dict(), lora_config(self._plan.config)
        for slot, _, target in share.values():
            save_adapter(target, self._stack.adapter(slot), lora, self._plan.base)
            write_moments(target, {name: value[slot] for name, value in state.items()})
            self._weights[slot] = self._moments[slot] = target


class JudgeWorker(Worker):
    """The verifier of one node."""

    def __init__(self, config: VerifierConfig) -> None:
        """Start nothing yet."""
        self._verifier = Verifier(config)

    def layers(self) -> dict[str, bool]:
        """Return the layers of the sandbox here, and whether each is in force."""
        return dict(self._verifier.layers)

    def check_proposals(
        self, proposals: Sequence[Proposal], owners: Sequence[Hashable] | None
    ) -> list[ProposalVerdict]:
        """Judge proposals; see `Verifier.check_proposals`."""
        return self._verifier.check_proposals(proposals, owners=owners)

    def check_answers(
        self, attempts: Sequence[tuple[Problem, Answer]], owners: Sequence[Hashable] | None
    ) -> list[Verdict]:
        """Judge answers; see `Verifier.check_answers`."""
        return self._verifier.check_answers(attempts, owners=owners)
