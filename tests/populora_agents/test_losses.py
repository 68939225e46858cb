"""The clipped objective against a hand-worked table."""

from __future__ import annotations

import math

import pytest
import torch

from populora_agents.losses import clipped_objective


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope", "clipped"),
    [
        # On-policy: loss -A, and d loss / d logprob = -rho A.
        (1.0, 2.0, -2.0, -2.0, 0),
        (1.0, -2.0, 2.0, 2.0, 0),
        # Above 1.28 a good token gains no more; a bad one still pays.
        (1.5, 1.0, -1.28, 0.0, 1),
        (1.5, -1.0, 1.5, 1.5, 0),
        # Below .8 a bad token is pushed no further; a good one still gains.
        (0.5, -1.0, 0.8, 0.0, 1),
        (0.5, 1.0, -0.5, -0.5, 0),
        # Inside both bounds.
        (1.25, 1.0, -1.25, -1.25, 0),
        # The bound on rho.
        (50.0, -1.0, 10.0, 0.0, 1),
        (1.0, 0.0, 0.0, 0.0, 0),
    ],
)
def test_table(ratio: float, advantage: float, loss: float, slope: float, clipped: int) -> None:
    logprobs = torch.tensor([-1.0], dtype=torch.float64, requires_grad=True)
    sampled = torch.tensor([-1.0 - math.log(ratio)], dtype=torch.float64)
    value, metrics = clipped_objective(logprobs, sampled, torch.tensor([advantage], dtype=torch.float64))
    (gradient,) = torch.autograd.grad(value.sum(), logprobs)
    assert value.item() == pytest.approx(loss)
    assert gradient.item() == pytest.approx(slope)
    assert metrics["clipped"].item() == clipped
    assert metrics["gap"].item() == pytest.approx(abs(math.log(ratio)))


@pytest.mark.parametrize("gap", [-1e4, 1e4])
@pytest.mark.parametrize("advantage", [-1.0, 0.0, 1.0])
def test_far_off_policy_tokens_stay_finite(gap: float, advantage: float) -> None:
    logprobs = torch.tensor([gap], requires_grad=True)
    value, _ = clipped_objective(logprobs, torch.zeros(1), torch.tensor([advantage]))
    (gradient,) = torch.autograd.grad(value.sum(), logprobs)
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()


def test_no_tokens_is_legal() -> None:
    value, metrics = clipped_objective(torch.zeros(0), torch.zeros(0), torch.zeros(0))
    assert value.shape == metrics["clipped"].shape == (0,)
