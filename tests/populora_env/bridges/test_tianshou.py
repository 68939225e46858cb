"""The token game under Tianshou 2: masks obeyed, rewards in place, one update."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("NUMBA_DISABLE_JIT", "1")  # compiling takes longer than all that is computed here
pytest.importorskip("tianshou", reason="needs the extra `bridges`")

from tianshou.algorithm import DQN, MARLRandomDiscreteMaskedOffPolicyAlgorithm
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.multiagent.marl import MultiAgentOffPolicyAlgorithm
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.utils.net.common import Net
from tianshou.utils.torch_utils import policy_within_training_step

from populora_env import token_v0
from populora_env.bridges.tianshou import tianshou_env
from populora_env.config import GameConfig
from populora_env.game import RoundResult
from populora_env.types import Task
from populora_env.verifier import Verifier

CONFIG = GameConfig(solver_seats=2, rounds=2, seed_problems=16, tasks=(Task.DEDUCTION,))


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier() as shared:
        yield shared


def algorithm(env: Any) -> Any:
    """A random proposer, and a DQN for each solver."""
    networks = [
        Net(state_shape=env.observation_space["observation"].shape, action_shape=env.action_space.n, hidden_sizes=[16])
        for _ in env.agents[1:]
    ]
    solvers = [
        DQN(
            policy=DiscreteQLearningPolicy(model=network, action_space=env.action_space, eps_training=0.5),
            optim=AdamOptimizerFactory(lr=1e-3),
        )
        for network in networks
    ]
    proposer = MARLRandomDiscreteMaskedOffPolicyAlgorithm(action_space=env.action_space)
    return MultiAgentOffPolicyAlgorithm(algorithms=[proposer, *solvers], env=env)


def test_dqn_collects_legal_play_with_the_games_rewards_and_learns(verifier: Verifier) -> None:
    np.random.seed(0)  # Tianshou draws from the global generators
    settled: list[RoundResult] = []

    def make() -> Any:
        return tianshou_env(token_v0.TokenEnv(config=CONFIG, verifier=verifier, on_settled=settled.append))

    learner = algorithm(make())
    buffer = VectorReplayBuffer(2000, 1)
    collector = Collector(learner, DummyVectorEnv([make]), buffer, exploration_noise=True)
    collector.reset()
    stats = collector.collect(n_episode=4)
    played = buffer[:]
    assert played.obs.mask[np.arange(len(played)), played.act.astype(int)].all()
    assert stats.n_collected_episodes == 4
    assert played.rew.shape[1] == 3
    due = np.zeros(3)
    for result in settled:
        due += [result.proposer_reward, *(result.solver_rewards or (0.0, 0.0))]
    assert len(settled) == 4 * CONFIG.rounds
    assert played.rew.sum(axis=0) == pytest.approx(due)
    with policy_within_training_step(learner.policy):
        losses = learner.update(buffer=buffer, sample_size=0).get_loss_stats_dict()
    assert set(losses) == {"solver_0/loss", "solver_1/loss"}
    assert np.isfinite(list(losses.values())).all()


def test_only_the_aec_token_face_is_taken(verifier: Verifier) -> None:
    with pytest.raises(ValueError, match="expected an AEC environment with `action_mask`"):
        tianshou_env(token_v0.parallel_env(config=CONFIG, verifier=verifier))
