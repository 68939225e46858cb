"""Settings out of range are refused by name."""

from __future__ import annotations

import pytest

from benchmarks.marl.config import PolicyGradientConfig, QLearningConfig, TrainingConfig


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        (PolicyGradientConfig, "learning_rate", 0.0),
        (PolicyGradientConfig, "clip", -0.1),
        (PolicyGradientConfig, "entropy_cost", -1.0),
        (PolicyGradientConfig, "trace", 1.5),
        (QLearningConfig, "buffer", 0),
        (QLearningConfig, "target_rate", 0.6),
        (QLearningConfig, "least_random", float("nan")),
        (TrainingConfig, "batches", 0),
        (TrainingConfig, "episodes", -1),
    ],
)
def test_what_is_out_of_range_is_refused_by_name(kind: type, name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"`{name}` must be"):
        kind(**{name: value})
