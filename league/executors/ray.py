"""`RayExecutor`: rollout workers, trainers and judges as actors of a Ray cluster.

Owns who is asked for what. Each actor serves one share of the plan (`shares`); a lost one is made again and asked again
(`cluster`), from files that the last call wrote (`ledger`), so that a loss costs its call and changes no number.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from league.config import RunConfig
from league.executors.cluster import Call, Cluster, Post
from league.executors.ledger import Ledger, RowShapes
from league.executors.shares import one_report, request_shares, shared_lessons
from league.executors.workers import JudgeWorker, RolloutWorker, TrainWorker, WorkerPlan
from league.learning import MakeTrainer, lora_config
from populora_agents.types import Completion, DivergedError, Request, Rollout, UpdateReport
from populora_env.types import Answer, Problem, Proposal, ProposalVerdict, Verdict

_T = TypeVar("_T")


class RayExecutor:
    """Implements `league.executors.types.Executor`."""

    def __init__(
        self, config: RunConfig, base_name: str, exchange: Path, new_trainer: MakeTrainer | None = None
    ) -> None:
        """Start or join Ray and place the actors.

        Args:
            config: Resolved.
            base_name: The base, with its version; every node loads it.
            exchange: Folder that all nodes see, for adapters on their way; made when it is needed, removed at the end.
            new_trainer: Makes what learns, anywhere: Ray pickles it. None is the trainer that the configuration names.

        Raises:
            ExecutorError: Ray is missing or does not start, or an actor finds no node.
        """
        options = config.cluster
        self._cluster = cluster = Cluster(options.ray_address)
        try:
            plan = WorkerPlan(config=config, base=base_name, new_trainer=new_trainer)
            gpus = options.worker_gpus
            speakers = [
                cluster.post(RolloutWorker, f"rollout worker {number}", plan, gpus=gpus)
                for number in range(options.rollout_shards)
            ]
            trainers = [
                cluster.post(TrainWorker, f"trainer {number}", plan, gpus=gpus)
                for number in range(options.trainer_shards)
            ]
            judges = [
                cluster.post(JudgeWorker, f"judge {number}", config.verifier, node=node)
                for number, node in enumerate(cluster.nodes())
            ]
            cluster.wait_for([*speakers, *trainers, *judges])
            self.slots: dict[str, tuple[int, int]] = {}
            self.adapters = Ledger(exchange, lora_config(config), base_name, config.stack_slots)
            self.rule = RayRule(cluster, trainers, self.adapters)
            self.backend = RayBackend(cluster, speakers, self.slots, self.adapters)
            self.judge = RayJudge(cluster, judges)
        except BaseException:
            cluster.close()
            raise

    def close(self) -> None:
        """End the actors, and Ray if it was started here; remove the exchange."""
        self._cluster.close()
        self.adapters.close()


class RayBackend:
    """Completes by rollout workers, each with the members of one share; a `populora_agents.types.Backend`."""

    name = "torch"

    def __init__(
        self, cluster: Cluster, workers: Sequence[Post], slots: Mapping[str, tuple[int, int]], ledger: Ledger
    ) -> None:
        """Ask these workers."""
        self._cluster = cluster
        self._workers = workers
        self._slots = slots
        self._ledger = ledger

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete the requests, in their order; see `Backend`."""
        shares = request_shares(requests, self._slots, len(self._workers))
        calls: list[Call] = []
        for worker, places in zip(self._workers, shares, strict=True):
            share = [requests[place] for place in places]
            members = {request.adapter.member_id for request in share if request.adapter is not None}
            slots = {member_id: self._slots[member_id] for member_id in sorted(members)}
            weights = {slot: self._ledger.place(slot).weights for slot, _ in slots.values()}
            if share:
                calls.append((worker, "generate", (share, slots, weights)))
        completions: dict[int, Completion] = {}
        for places, answers in zip(filter(None, shares), self._cluster.ask(calls), strict=True):
            completions |= zip(places, answers, strict=True)
        return [completions[place] for place in range(len(requests))]

    def close(self) -> None:
        """Hold nothing: the actors are the executor's."""


class RayRule:
    """Updates by trainers, each with the members of one share; a `populora_agents.types.UpdateRule`."""

    def __init__(self, cluster: Cluster, trainers: Sequence[Post], ledger: Ledger) -> None:
        """Ask these trainers; what they learn is noted in the ledger."""
        self._cluster = cluster
        self._trainers = trainers
        self._ledger = ledger
        self._shapes: RowShapes | None = None

    def advantages(self, rollouts: Sequence[Rollout]) -> NDArray[np.float64]:
        """Return one advantage a rollout, by the first trainer; see `UpdateRule`."""
        advantages: NDArray[np.float64] = self._cluster.ask([(self._trainers[0], "advantages", (rollouts,))])[0]
        return advantages

    def update(
        self,
        rollouts: Sequence[Rollout],
        advantages: ArrayLike,
        slots: Mapping[str, int],
        learning_rates: Mapping[str, float],
    ) -> UpdateReport:
        """Update the members of each share; see `UpdateRule`.

        Raises:
            DivergedError: As there; nothing of this update is kept.
        """
        began = time.perf_counter()
        calls: list[Call] = []
        targets: dict[int, str] = {}
        shares = shared_lessons(rollouts, advantages, slots, len(self._trainers))
        for trainer, (part, values) in zip(self._trainers, shares, strict=True):
            members = {rollout.member_id: slots[rollout.member_id] for rollout in part}
            fresh = {slot: self._ledger.fresh(slot) for slot in members.values()}
            share = {name: (slot, self._ledger.place(slot), fresh[slot]) for name, slot in members.items()}
            if part:
                calls.append((trainer, "update", (part, values, learning_rates, share)))
                targets |= fresh
        reports: list[UpdateReport | DivergedError] = self._cluster.ask(calls)
        report = one_report(reports, time.perf_counter() - began)
        self._ledger.learnt(targets)
        return report

    def reset_slot(self, slot: int) -> None:
        """Forget what was learnt about one slot; see `UpdateRule`."""
        self._ledger.reset_moments(slot)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the moments of all slots, as one process would."""
        return self._ledger.moments(self._row_shapes())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave, here or in one process."""
        self._ledger.set_moments(state, self._row_shapes())

    def _row_shapes(self) -> RowShapes:
        if self._shapes is None:
            self._shapes = self._cluster.ask([(self._trainers[0], "row_shapes", ())])[0]
        return self._shapes


class RayJudge:
    """Judges by the verifiers of all nodes; a `league.executors.types.ClosingJudge`."""

    def __init__(self, cluster: Cluster, judges: Sequence[Post]) -> None:
        """Ask these judges."""
        self._cluster = cluster
        self._judges = judges
        self._layers: dict[str, bool] | None = None

    @property
    def layers(self) -> Mapping[str, bool]:
        """Each layer of the sandbox, and whether it is in force on every node."""
        if self._layers is None:
            found: list[dict[str, bool]] = self._cluster.ask([(judge, "layers", ()) for judge in self._judges])
            self._layers = {name: all(one.get(name, False) for one in found) for name in found[0]}
        return self._layers

    def check_proposals(
        self, proposals: Sequence[Proposal], *, owners: Sequence[Hashable] | None = None
    ) -> list[ProposalVerdict]:
        """Judge proposals, in their order; see `Judge`."""
        return self._ask("check_proposals", proposals, owners)

    def check_answers(
        self, attempts: Sequence[tuple[Problem, Answer]], *, owners: Sequence[Hashable] | None = None
    ) -> list[Verdict]:
        """Judge answers, in their order; see `Judge`."""
        return self._ask("check_answers", attempts, owners)

    def close(self) -> None:
        """Hold nothing: the actors are the executor's."""

    def _ask(self, method: str, items: Sequence[Any], owners: Sequence[Hashable] | None) -> list[Any]:
        """Cut the items into a run for each judge; a verdict does not depend on who gives it."""
        width = -(-len(items) // len(self._judges))
        calls: list[Call] = []
        for number, start in enumerate(range(0, len(items), max(1, width))):
            end = start + width
            part = None if owners is None else owners[start:end]
            calls.append((self._judges[number], method, (items[start:end], part)))
        return [verdict for verdicts in self._cluster.ask(calls) for verdict in verdicts]
