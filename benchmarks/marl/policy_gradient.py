"""IPPO and MAPPO: TorchRL's clipped objective with generalised advantages; the critics differ.

An IPPO critic sees what its agent sees, a MAPPO critic what all agents see together.
"""

from __future__ import annotations

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch import Tensor, nn
from torchrl.modules import MaskedCategorical, ProbabilisticActor
from torchrl.objectives import ClipPPOLoss, ValueEstimators

from benchmarks.marl.config import PolicyGradientConfig
from benchmarks.marl.learners import Shape
from benchmarks.marl.networks import Central, PerKind

_NAMES = ("action", "reward", "done", "terminated", "advantage", "value_target")


class PolicyGradient:
    """Actors, critics, and the loss of both."""

    def __init__(self, shape: Shape, config: PolicyGradientConfig, *, central: bool) -> None:
        """Make untrained networks; `central` makes it MAPPO."""
        self.config, self._kinds = config, shape.kinds
        self.actor = ProbabilisticActor(
            TensorDictModule(
                PerKind(shape.kinds, shape.width, shape.choices, scale=0.01),
                in_keys=[("agents", "observation")],
                out_keys=[("agents", "logits")],
            ),
            in_keys={"logits": ("agents", "logits"), "mask": ("agents", "action_mask")},
            out_keys=[("agents", "action")],
            distribution_class=MaskedCategorical,
            return_log_prob=True,
            log_prob_key=("agents", "action_log_prob"),
        )
        values = (
            Central(shape.kinds, shape.agents * shape.width)
            if central
            else PerKind(shape.kinds, shape.width, 1, scale=1.0)
        )
        critic = TensorDictModule(
            values,
            in_keys=["state" if central else ("agents", "observation")],
            out_keys=[("agents", "state_value")],
        )
        self.loss = ClipPPOLoss(self.actor, critic, clip_epsilon=config.clip, entropy_coeff=config.entropy_cost)
        self.loss.set_keys(
            **{name: ("agents", name) for name in _NAMES},
            value=("agents", "state_value"),
            sample_log_prob=("agents", "action_log_prob"),
        )
        self.loss.make_value_estimator(ValueEstimators.GAE, gamma=shape.gamma, lmbda=config.trace)
        self.optimiser = torch.optim.Adam(self.loss.parameters(), lr=config.learning_rate)

    @torch.no_grad()
    def act(self, seen: TensorDict) -> Tensor:
        """Draw each agent's action from its policy."""
        chosen: Tensor = self.actor(seen)["agents", "action"]
        return chosen

    @torch.no_grad()
    def best(self, seen: TensorDict) -> Tensor:
        """Return each agent's likeliest legal action."""
        logits = self.actor.module[0](seen)["agents", "logits"]
        chosen: Tensor = logits.masked_fill(~seen["agents", "action_mask"], -torch.inf).argmax(-1)
        return chosen

    def learn(self, batch: TensorDict, progress: float) -> None:
        """Go over the batch a few times."""
        self.loss.entropy_coeff.fill_((1 - progress) * self.config.entropy_cost)
        with torch.no_grad():
            self.loss.value_estimator(
                batch, params=self.loss.critic_network_params, target_params=self.loss.target_critic_network_params
            )
        batch["agents", "advantage"] = self._whitened(batch)
        rows = batch.reshape(-1)
        for _ in range(self.config.passes):
            for chosen in torch.randperm(len(rows)).chunk(self.config.minibatches):
                losses = self.loss(rows[chosen])
                total = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
                self.optimiser.zero_grad()
                total.backward()
                nn.utils.clip_grad_norm_(self.loss.parameters(), self.config.largest_gradient)
                self.optimiser.step()

    def _whitened(self, batch: TensorDict) -> Tensor:
        """Return the advantages with mean 0 and spread 1 over each kind's choices; 0 where there was no choice."""
        advantages = batch["agents", "advantage"]
        acts = batch["agents", "action_mask"].sum(-1, keepdim=True) > 1
        parts = []
        for kind in self._kinds:
            own, there = advantages[..., list(kind), :], acts[..., list(kind), :]
            mean, spread = own[there].mean(), own[there].std().nan_to_num()  # of one choice there is none
            parts.append(torch.where(there, (own - mean) / (spread + 1e-6), 0.0))
        return torch.cat(parts, dim=-2)
