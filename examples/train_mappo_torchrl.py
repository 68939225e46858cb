"""MAPPO with TorchRL on the token game: python examples/train_mappo_torchrl.py [SEED].

One proposer invents programs, four solvers predict what they return; all write token by token under a mask. Each side
has an actor, which sees what its agent sees, and a critic, which sees what all see together (`state`). Both learn at
once, each from its own reward: the solvers aim at a moving target.

Needs `pip install 'populora-league[bridges]'`.

Takes 110 s of CPU time. Seed 0 prints this, the seconds apart (here the two cores were busy with other work):

    batch  rounds  proposer  solvers  answers right  seconds
        1      49      0.25    -0.35           0.10       14
        5      72      0.20    -0.26           0.16       38
       10      58      0.08     0.00           0.34       72
       15      50      0.06     0.36           0.57      122
       20      56      0.02     0.12           0.41      158
       25      45      0.01     0.09           0.39      196
       30      45      0.02    -0.10           0.27      245

The first line is nearly random play. The solvers gain fast on the problems of a nearly random proposer, whose reward
falls: nobody pays for what all solve, or none. Then it finds problems that are harder for them. It need not: with
seed 1 the solvers stay at 0.73 and the proposer at 0.00. Two seeds show the machinery, not which algorithm is good.
"""

from __future__ import annotations

import sys
import time
import warnings

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import SerialEnv
from torchrl.modules import MaskedCategorical, ProbabilisticActor
from torchrl.objectives import ClipPPOLoss, ValueEstimators

from populora_env import RewardConfig, Verifier, token_v0
from populora_env.bridges.torchrl import torchrl_env

GAMES = 16
"""Games stepped side by side."""
BATCHES, BATCH_STEPS = 30, 48
"""Batches, and steps of every game in each."""
EPOCHS, MINIBATCHES = 4, 4
LEARNING_RATE, ENTROPY_COST, LAMBDA, CLIP = 7e-4, 0.03, 0.95, 0.2
RULES = {"tasks": ("deduction",), "solver_seats": 4, "references": 1, "rounds": 1}


def make_games(verifier: Verifier, seed: int) -> SerialEnv:
    """Return the games as one batched environment; the verifier serves them all."""
    env = SerialEnv(
        GAMES,
        lambda: torchrl_env(token_v0.parallel_env(verifier=verifier, max_tokens=16, **RULES)),
        serial_for_single=True,
    )
    env.set_seed(seed)
    return env


def network(inputs: int, outputs: int) -> nn.Module:
    """Return two hidden layers; the output layer starts small, so that play starts nearly random."""
    last = nn.Linear(128, outputs)
    nn.init.orthogonal_(last.weight, 0.01)
    return nn.Sequential(nn.Linear(inputs, 128), nn.Tanh(), nn.Linear(128, 128), nn.Tanh(), last)


class CentralCritic(nn.Module):
    """From what all see together to one value an agent."""

    def __init__(self, inputs: int, agents: int) -> None:
        """Make the critic of a group."""
        super().__init__()
        self.values = network(inputs, agents)

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        """Return [..., agents, 1] for [..., inputs]."""
        return self.values(state).unsqueeze(-1)


class Side:
    """One group of agents: an actor that they share, their critic, and the loss of both."""

    def __init__(self, group: str, env: SerialEnv) -> None:
        """Make untrained networks."""
        self.group = group
        seen = env.observation_spec[group, "observation", "observation"].shape
        actor = TensorDictModule(
            network(seen[-1], env.observation_spec[group, "action_mask"].shape[-1]),
            in_keys=[(group, "observation", "observation")],
            out_keys=[(group, "logits")],
        )
        self.actor = ProbabilisticActor(
            actor,
            in_keys={"logits": (group, "logits"), "mask": (group, "action_mask")},
            out_keys=[(group, "action")],
            distribution_class=MaskedCategorical,
            return_log_prob=True,
            log_prob_key=(group, "action_log_prob"),
        )
        critic = TensorDictModule(
            CentralCritic(env.observation_spec["state"].shape[-1], seen[-2]),
            in_keys=["state"],
            out_keys=[(group, "state_value")],
        )
        self.loss = ClipPPOLoss(self.actor, critic, clip_epsilon=CLIP, entropy_coeff=ENTROPY_COST)
        names = ("action", "reward", "done", "terminated", "advantage", "value_target")
        self.loss.set_keys(
            **{name: (group, name) for name in names},
            value=(group, "state_value"),
            sample_log_prob=(group, "action_log_prob"),
        )
        self.loss.make_value_estimator(ValueEstimators.GAE, gamma=1.0, lmbda=LAMBDA)
        self.optimiser = torch.optim.Adam(self.loss.parameters(), lr=LEARNING_RATE)

    def learn(self, batch: TensorDict) -> None:
        """Improve both networks on a batch of play, [games, steps]."""
        with torch.no_grad():
            self.loss.value_estimator(
                batch, params=self.loss.critic_network_params, target_params=self.loss.target_critic_network_params
            )
        advantage = batch[self.group, "advantage"]
        acts = batch[self.group, "action_mask"].sum(-1, keepdim=True) > 1  # who waits has no choice to learn from
        mean, spread = advantage[acts].mean(), advantage[acts].std()
        batch[self.group, "advantage"] = torch.where(acts, (advantage - mean) / (spread + 1e-6), 0.0)
        rows = batch.reshape(-1)
        for _ in range(EPOCHS):
            for chosen in torch.randperm(len(rows)).chunk(MINIBATCHES):
                losses = self.loss(rows[chosen])
                total = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
                self.optimiser.zero_grad()
                total.backward()
                nn.utils.clip_grad_norm_(self.loss.parameters(), 0.5)
                self.optimiser.step()


def results(batch: TensorDict) -> tuple[int, float, float, float]:
    """Return the finished rounds, and of these the mean rewards of both sides and the share of right answers."""
    over = batch["next", "done"].squeeze(-1)
    paid = {group: batch["next", group, "reward"][over] for group in ("proposers", "solvers")}
    right = (paid["solvers"] == RewardConfig().correct).float().mean()
    return int(over.sum()), paid["proposers"].mean().item(), paid["solvers"].mean().item(), right.item()


def main(seed: int) -> None:
    """Train both sides against each other and show how they fare."""
    for noise in ("PettingZoo in TorchRL is tested", "The env passed to Collector is missing"):
        warnings.filterwarnings("ignore", message=noise)
    torch.set_num_threads(1)  # the networks are small, and the verifier wants the other cores
    torch.manual_seed(seed)
    with Verifier() as verifier:
        env = make_games(verifier, seed)
        sides = [Side(group, env) for group in ("proposers", "solvers")]
        policy = TensorDictSequential(*(side.actor for side in sides))
        collector = Collector(
            env, policy, frames_per_batch=GAMES * BATCH_STEPS, total_frames=GAMES * BATCH_STEPS * BATCHES
        )
        began = time.monotonic()
        sys.stdout.write("batch  rounds  proposer  solvers  answers right  seconds\n")
        for number, batch in enumerate(collector, start=1):
            for side in sides:
                side.learn(batch)
            if number % 5 == 0 or number == 1:
                rounds, proposer, solvers, right = results(batch)
                seconds = time.monotonic() - began
                sys.stdout.write(
                    f"{number:5d}  {rounds:6d}  {proposer:8.2f}  {solvers:7.2f}  {right:13.2f}  {seconds:7.0f}\n"
                )
        collector.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
