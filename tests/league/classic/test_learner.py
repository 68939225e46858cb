"""The learner of classic games: advantages are compared within a member alone."""

from __future__ import annotations

import numpy as np

from league.classic.learner import _whitened


def test_each_member_has_mean_zero_and_deviation_one_of_its_own() -> None:
    advantages = np.array([1.0, 5.0, 3.0, 105.0], dtype=np.float32)
    places = np.array([0, 1, 0, 1])
    assert _whitened(advantages, places, np.array([2, 2])).tolist() == [-1, -1, 1, 1]


def test_advantages_that_are_all_alike_become_zero() -> None:
    alike = np.full(3, 0.1, dtype=np.float32)
    assert _whitened(alike, np.zeros(3, dtype=np.int64), np.array([3])).abs().max() < 1e-5
