"""Shares worked off in this process: one call a share, answers in the callers' order, divergence told whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from scripted import ScriptedBackend, make_base

from league.config import RunConfig, make_game, resolve
from league.executors.local import LocalExecutor, ShardedBackend, ShardedRule
from league.options import ClusterOptions
from populora_agents.backends.torch import TorchBackend
from populora_agents.config import NANO
from populora_agents.stack import AdapterStack
from populora_agents.types import AdapterVersion, DivergedError, Request, Rollout, UpdateReport
from populora_env.types import Message

SLOTS = {"teacher_0": 0, "teacher_1": 1, "student_0": 2}


def make_config(**cluster: Any) -> RunConfig:
    return resolve(RunConfig(teachers=2, students=1, cluster=ClusterOptions(**cluster)), NANO, {"svd_perturb": True})


def rollout(name: str) -> Rollout:
    return Rollout(member_id=name, batch="b", group_id="g", prompt_ids=(1,), token_ids=(), logprobs=(), reward=0.0)


class Fragile:
    """Diverges at the members it was told."""

    def __init__(self, *broken: str) -> None:
        """Break at these."""
        self.broken = broken
        self.seen: list[list[str]] = []

    def update(self, rollouts: Sequence[Rollout], advantages: Any, *_: Mapping[str, Any]) -> UpdateReport:
        """Note who was there."""
        assert len(advantages) == len(rollouts)
        self.seen.append([one.member_id for one in rollouts])
        if broken := [one.member_id for one in rollouts if one.member_id in self.broken]:
            raise DivergedError(broken, "gradients are")
        return UpdateReport(members={}, seconds=0.0)


def test_one_shard_is_the_backend_and_the_trainer_as_they_are(verifier: Any) -> None:
    executor = LocalExecutor(make_config(), make_base(), verifier)
    assert isinstance(executor.backend, TorchBackend)
    assert isinstance(executor.adapters, AdapterStack)
    assert not isinstance(executor.rule, ShardedRule)


def test_a_sharded_backend_asks_once_a_share_and_answers_in_order(verifier: Any) -> None:
    config = make_config(rollout_shards=2)
    scripted = ScriptedBackend(make_game(config, None))
    executor = LocalExecutor(config, make_base(), verifier, scripted)
    executor.slots |= {name: (slot, 0) for name, slot in SLOTS.items()}
    requests = [
        Request(
            adapter=AdapterVersion(member_id=name, version=0),
            messages=(Message(role="user", content="<propose deduction>"),),
            max_new_tokens=9,
            seed=5 * seed,
        )
        for seed, name in enumerate(("student_0", "teacher_1", "teacher_0"))
    ]
    assert isinstance(executor.backend, ShardedBackend)
    assert [one.request for one in executor.backend.generate(requests)] == requests
    assert scripted.batches == [[requests[0], requests[2]], [requests[1]]]
    assert executor.backend.generate([]) == []


def test_all_shares_learn_and_all_members_that_diverged_are_named() -> None:
    rule = Fragile("teacher_0", "teacher_1")
    sharded = ShardedRule(rule, 2)  # type: ignore[arg-type]
    with pytest.raises(DivergedError) as stop:
        sharded.update([rollout(name) for name in SLOTS], np.zeros(3), SLOTS, {})
    assert stop.value.members == ("teacher_0", "teacher_1")
    assert rule.seen == [["teacher_0", "student_0"], ["teacher_1"]]
    assert sharded.update([], [], SLOTS, {}).members == {}


def test_cluster_flags_without_a_cluster_are_refused() -> None:
    for changes in ({"ray_address": "auto"}, {"worker_gpus": 1.0}):
        with pytest.raises(ValueError, match="need `--executor ray`"):
            make_config(**changes)
    with pytest.raises(ValueError, match="`rollout_shards` must be at least 1"):
        make_config(rollout_shards=0)
