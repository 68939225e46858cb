"""What is told of a population: copies count once."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pyspiel", reason="needs OpenSpiel")

from league.classic.measures import distinct
from league.payoff import cyclic_share

PAYOFF = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])


def share(policies: np.ndarray) -> float:
    scores = 0.5 * (1 + policies @ PAYOFF @ policies.T)
    found = cyclic_share(1000 * scores, np.full_like(scores, 1000))
    assert found is not None
    return found[0]


def test_a_circle_run_at_an_uneven_pace_is_a_whole_one_once_copies_are_left_out() -> None:
    pure = np.eye(3)
    uneven = pure[[0] * 20 + [1] * 3 + [2]]
    assert share(pure) == pytest.approx(1)
    assert share(uneven) < 0.8
    assert share(uneven[distinct(uneven[:, None])]) == pytest.approx(1)


def test_policies_differ_by_their_most_different_information_state() -> None:
    policies = np.full((3, 2, 2), 0.5)
    policies[1, 1] = 0.58, 0.42
    policies[2, 1] = 0.7, 0.3
    assert distinct(policies) == [0, 2]
    assert distinct(policies, 0.05) == [0, 1, 2]
