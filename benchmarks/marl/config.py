"""Settings of the algorithms and of a run, the same in all environments.

A pilot on seeds 100 and above fixed them before the first run of the summary; docs/marl.md tells what was tried.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

HIDDEN: Final = 128
"""Units of each of the two hidden layers of all networks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyGradientConfig:
    """Settings of IPPO and MAPPO."""

    learning_rate: float = 1e-3
    """Adam's, > 0."""
    passes: int = 4
    """Times that a batch is gone over, >= 1."""
    minibatches: int = 4
    """Parts of a batch, an update each, >= 1."""
    entropy_cost: float = 0.1
    """Weight of the entropy, >= 0; falls evenly to 0 over the run."""
    trace: float = 0.95
    """Lambda of the generalised advantages, in [0, 1]."""
    clip: float = 0.2
    """How far an update may move a choice's probability, > 0."""
    largest_gradient: float = 0.5
    """Norm at which gradients are cut, > 0."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        _above_zero(self, "learning_rate", "passes", "minibatches", "clip", "largest_gradient")
        if self.entropy_cost < 0:
            raise ValueError(f"`entropy_cost` must be at least 0, got {self.entropy_cost!r}")
        if not 0 <= self.trace <= 1:
            raise ValueError(f"`trace` must be in [0, 1], got {self.trace!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class QLearningConfig:
    """Settings of IQL, VDN and QMIX."""

    learning_rate: float = 1e-3
    """Adam's, > 0."""
    buffer: int = 16384
    """Steps of a game that are kept, >= 1."""
    minibatch: int = 128
    """Steps of a game in an update, >= 1."""
    updates: int = 32
    """Updates a batch of play, >= 1."""
    target_rate: float = 0.02
    """Share of the way that the target networks go to the learned ones at each update, in (0, 0.5]."""
    least_random: float = 0.05
    """Share of random actions in the second half of the run, in [0, 1]; falls to it evenly from 1 over the first."""
    largest_gradient: float = 10.0
    """Norm at which gradients are cut, > 0."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        _above_zero(self, "learning_rate", "buffer", "minibatch", "updates", "target_rate", "largest_gradient")
        if self.target_rate > 0.5:
            raise ValueError(f"`target_rate` must be at most 0.5, got {self.target_rate!r}")
        if not 0 <= self.least_random <= 1:
            raise ValueError(f"`least_random` must be in [0, 1], got {self.least_random!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """Settings of a run, alike for all algorithms but for what only one family has."""

    batches: int = 30
    """Batches of play, >= 1."""
    games: int = 32
    """Games stepped side by side, >= 1."""
    steps: int = 32
    """Steps of every game in a batch, >= 1."""
    points: int = 10
    """Points of the learning curve after the first, which is before learning; >= 1."""
    curve_episodes: int = 128
    """Episodes of each point but the last, >= 1."""
    episodes: int = 512
    """Episodes of the last point, which is the run's score, >= 1."""
    policy_gradient: PolicyGradientConfig = field(default_factory=PolicyGradientConfig)
    """Of IPPO and MAPPO."""
    q_learning: QLearningConfig = field(default_factory=QLearningConfig)
    """Of IQL, VDN and QMIX."""

    def __post_init__(self) -> None:
        """Check the counts."""
        _above_zero(self, "batches", "games", "steps", "points", "curve_episodes", "episodes")


def _above_zero(config: object, *names: str) -> None:
    for name in names:
        if not getattr(config, name) > 0:
            raise ValueError(f"`{name}` must be above 0, got {getattr(config, name)!r}")
