"""Draws by request, and the inverse of the cumulative distribution."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from populora_agents.sampling import choose_tokens, uniforms


def test_draws_are_keyed_by_the_seed_and_a_longer_run_begins_the_same() -> None:
    assert np.array_equal(uniforms(7, 5), uniforms(7, 9)[:5])
    assert not np.array_equal(uniforms(7, 5), uniforms(8, 5))
    assert uniforms(-1, 2).shape == uniforms(1 << 200, 2).shape == (2,)


@pytest.mark.parametrize(("draw", "token"), [(0.0, 0), (0.24, 0), (0.25, 1), (0.74, 1), (0.75, 3), (0.9999999999, 3)])
def test_inverse_cdf_by_hand(draw: float, token: int) -> None:
    logits = torch.tensor([[0.25, 0.5, 0.0, 0.25]]).log()
    tokens, logprobs = choose_tokens(logits, torch.ones(1), torch.tensor([draw], dtype=torch.float64))
    assert tokens.item() == token
    assert logprobs.item() == pytest.approx(np.log([0.25, 0.5, 0, 0.25][token]))


def test_temperature_scales_and_zero_is_greedy() -> None:
    logits = torch.tensor([[0.0, 1.0, 3.0]] * 2)
    draws = torch.zeros(2, dtype=torch.float64)
    tokens, logprobs = choose_tokens(logits, torch.tensor([2.0, 0.0]), draws)
    assert tokens.tolist() == [0, 2]
    expected = torch.stack([(logits[0] / 2).log_softmax(0)[0], logits[1].log_softmax(0)[2]])
    torch.testing.assert_close(logprobs, expected)


def test_frequencies_follow_the_probabilities() -> None:
    logits = torch.tensor([0.5, 0.3, 0.2]).log().expand(20000, 3)
    draws = torch.from_numpy(uniforms(0, 20000))
    tokens, _ = choose_tokens(logits, torch.ones(20000), draws)
    shares = torch.bincount(tokens, minlength=3) / 20000
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.3, 0.2]), atol=0.02, rtol=0)
