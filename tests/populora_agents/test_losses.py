"""The clipped objective and the divergence against hand-worked tables."""

from __future__ import annotations

import math

import pytest
import torch

from populora_agents.losses import clipped_objective, kl_k3


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


@pytest.mark.parametrize(
    ("policy", "reference", "value", "slope"),
    [
        (-1.0, -1.0, 0.0, 0.0),
        # d = ln 2: e^d - d - 1 = 1 - ln 2; the slope by the policy is 1 - e^d = -1.
        (-1.0, -1.0 + math.log(2), 1 - math.log(2), -1.0),
        # d = -ln 2: 1/2 + ln 2 - 1; slope 1 - 1/2.
        (-1.0, -1.0 - math.log(2), math.log(2) - 0.5, 0.5),
    ],
)
def test_kl_k3_by_hand(policy: float, reference: float, value: float, slope: float) -> None:
    logprobs = torch.tensor([policy], dtype=torch.float64, requires_grad=True)
    found = kl_k3(logprobs, torch.tensor([reference], dtype=torch.float64))
    (gradient,) = torch.autograd.grad(found.sum(), logprobs)
    assert found.item() == pytest.approx(value, abs=1e-12)
    assert gradient.item() == pytest.approx(slope, abs=1e-12)


def test_kl_k3_is_unbiased_over_the_policys_own_tokens() -> None:
    policy, reference = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.2, 0.6])
    expected = (policy * (policy / reference).log()).sum()
    assert (policy * kl_k3(policy.log(), reference.log())).sum().item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize("gap", [-1e4, 1e4])
def test_kl_k3_of_far_policies_stays_finite(gap: float) -> None:
    logprobs = torch.tensor([gap], requires_grad=True)
    value = kl_k3(logprobs, torch.zeros(1))
    (gradient,) = torch.autograd.grad(value.sum(), logprobs)
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()
