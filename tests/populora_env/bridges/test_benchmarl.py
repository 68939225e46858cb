"""The token game as a BenchMARL task: two iterations of MAPPO."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("benchmarl", reason="needs BenchMARL, in an environment of its own (docs/bridges.md)")

from benchmarl.algorithms import MappoConfig
from benchmarl.experiment import Experiment, ExperimentConfig
from benchmarl.models.mlp import MlpConfig

from populora_env.bridges.benchmarl import token_task
from populora_env.config import GameConfig
from populora_env.types import Task

RULES = GameConfig(solver_seats=2, rounds=1, seed_problems=16, tasks=(Task.DEDUCTION,))


def weights(experiment: Any, group: str) -> list[Any]:
    return [tensor.clone() for tensor in experiment.losses[group].actor_network_params.values(True, True)]


@pytest.mark.filterwarnings("ignore")
def test_mappo_trains_both_groups(tmp_path: Any) -> None:
    settings = ExperimentConfig.get_from_yaml()
    settings.max_n_iters, settings.max_n_frames = 2, None
    settings.on_policy_collected_frames_per_batch = 60
    settings.on_policy_n_envs_per_worker = 1
    settings.on_policy_n_minibatch_iters, settings.on_policy_minibatch_size = 1, 30
    settings.evaluation, settings.render, settings.loggers, settings.create_json = False, False, [], False
    settings.save_folder = str(tmp_path)
    experiment = Experiment(
        task=token_task(config=RULES, max_tokens=16),
        algorithm_config=MappoConfig.get_from_yaml(),
        model_config=MlpConfig.get_from_yaml(),
        critic_model_config=MlpConfig.get_from_yaml(),
        seed=0,
        config=settings,
    )
    before = {group: weights(experiment, group) for group in ("proposers", "solvers")}
    experiment.run()
    for group, old in before.items():
        assert any((one != other).any() for one, other in zip(old, weights(experiment, group), strict=True)), group
    assert experiment.task.max_steps(None) == 2 * 16
