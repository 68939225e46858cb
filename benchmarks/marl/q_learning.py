"""IQL, VDN and QMIX: TorchRL's DQN loss for each agent, or over a mixture of all agents' values.

VDN's mixture is their sum, QMIX's a monotonic network whose weights follow from what all see together.
"""

from __future__ import annotations

from typing import Literal

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import Tensor, nn
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.modules import QMixer, QValueModule, VDNMixer
from torchrl.objectives import DQNLoss, QMixerLoss, SoftUpdate, ValueEstimators

from benchmarks.marl.config import QLearningConfig
from benchmarks.marl.learners import Shape
from benchmarks.marl.networks import PerKind

_MIXED = 32  # units of QMIX's mixture, as in its paper
_NAMES = ("action", "reward", "done", "terminated", "action_value")


class QLearning:
    """Networks of action values, their mixture if there is one, and a buffer of play."""

    def __init__(self, shape: Shape, config: QLearningConfig, *, mixture: Literal["none", "sum", "monotonic"]) -> None:
        """Make untrained networks and an empty buffer."""
        self.config = config
        values = TensorDictModule(
            PerKind(shape.kinds, shape.width, shape.choices, scale=0.1),
            in_keys=[("agents", "observation")],
            out_keys=[("agents", "action_value")],
        )
        best = QValueModule(
            action_space="categorical",
            action_value_key=("agents", "action_value"),
            action_mask_key=("agents", "action_mask"),
            out_keys=[("agents", name) for name in ("action", "action_value", "chosen_action_value")],
        )
        self.values = TensorDictSequential(values, best)
        self.loss = _independent(self.values) if mixture == "none" else _mixed(self.values, shape, mixture)
        self.loss.make_value_estimator(ValueEstimators.TD0, gamma=shape.gamma)
        self.target = SoftUpdate(self.loss, tau=config.target_rate)
        self.optimiser = torch.optim.Adam(self.loss.parameters(), lr=config.learning_rate)
        self.buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(config.buffer), batch_size=config.minibatch)
        self._random = 1.0

    @torch.no_grad()
    def act(self, seen: TensorDict) -> Tensor:
        """Return the best actions, some of them replaced by legal ones at random."""
        best, mask = self.best(seen), seen["agents", "action_mask"]
        other = torch.multinomial(mask.flatten(0, -2).float(), 1).view_as(best)
        chosen = torch.where(torch.rand(best.shape) < self._random, other, best)
        seen["agents", "action"] = chosen
        return chosen

    @torch.no_grad()
    def best(self, seen: TensorDict) -> Tensor:
        """Return the legal actions of the highest values."""
        chosen: Tensor = self.values(seen.clone(False))["agents", "action"]
        return chosen

    def learn(self, batch: TensorDict, progress: float) -> None:
        """Keep the batch and learn from minibatches of all that is kept."""
        self._random = max(self.config.least_random, 1 - 2 * progress)
        self.buffer.extend(batch.reshape(-1))
        for _ in range(self.config.updates):
            loss = self.loss(self.buffer.sample())["loss"]
            self.optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.loss.parameters(), self.config.largest_gradient)
            self.optimiser.step()
            self.target.step()


def _independent(values: TensorDictSequential) -> DQNLoss:
    loss = DQNLoss(values, action_space="categorical", loss_function="smooth_l1", delay_value=True)
    loss.set_keys(
        **{name: ("agents", name) for name in _NAMES}, value=("agents", "chosen_action_value"), priority="td_error"
    )
    return loss


def _mixed(values: TensorDictSequential, shape: Shape, mixture: Literal["sum", "monotonic"]) -> QMixerLoss:
    if mixture == "sum":
        mixer: nn.Module = VDNMixer(n_agents=shape.agents, device="cpu")
    else:
        mixer = QMixer(
            state_shape=(shape.agents * shape.width,), mixing_embed_dim=_MIXED, n_agents=shape.agents, device="cpu"
        )
    chosen = ("agents", "chosen_action_value")
    return QMixerLoss(
        values,
        TensorDictModule(
            mixer, in_keys=[chosen] if mixture == "sum" else [chosen, "state"], out_keys=["chosen_action_value"]
        ),
        action_space="categorical",
        loss_function="smooth_l1",
        delay_value=True,
    )
