"""Draws by request, and the inverse of the cumulative distribution."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

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


@pytest.mark.parametrize(
    ("top_p", "left"),
    [(1.0, [0, 1, 2, 3]), (0.91, [0, 1, 2, 3]), (0.9, [0, 1, 3]), (0.5, [1]), (0.51, [0, 1, 3]), (1e-6, [1])],
)
def test_the_nucleus_by_hand(top_p: float, left: list[int]) -> None:
    # Tokens 0 and 3 are equally likely: where one is taken, the other is taken too.
    logits = torch.tensor([0.2, 0.5, 0.1, 0.2]).log().expand(1000, 4)
    draws = torch.linspace(0, 1 - 1e-9, 1000, dtype=torch.float64)
    tokens, logprobs = choose_tokens(logits, torch.ones(1000), draws, torch.full((1000,), top_p))
    assert sorted(set(tokens.tolist())) == left
    shares = torch.bincount(tokens, minlength=4) / 1000
    expected = torch.tensor([0.2, 0.5, 0.1, 0.2])
    expected[[token for token in range(4) if token not in left]] = 0
    torch.testing.assert_close(shares, expected / expected.sum(), atol=0.003, rtol=0)
    # The log-probabilities are those of the whole distribution.
    torch.testing.assert_close(logprobs, logits[0].log_softmax(0)[tokens])


def test_a_wide_nucleus_is_found_in_a_large_vocabulary() -> None:
    # Equal steps: token k has 3000 - k shares of 3000 * 3001 / 2, so half of the probability lies in the first 879.
    logits = torch.arange(3000, 0, -1).double().log().float().expand(4, 3000)
    top_p = torch.tensor([0.5, 0.02, 0.999, 1.0])
    tokens, _ = choose_tokens(logits, torch.ones(4), torch.full((4,), 1 - 1e-12, dtype=torch.float64), top_p)
    shares = (3000 - np.arange(3000)).cumsum() / (3000 * 3001 / 2)
    assert tokens.tolist() == [int(np.searchsorted(shares, share)) for share in (0.5, 0.02, 0.999)] + [2999]


def test_rows_cut_and_not_cut_stand_side_by_side() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(40, 300, generator=generator)
    draws = torch.rand(40, generator=generator, dtype=torch.float64)
    top_p = torch.tensor([1.0, 0.3, 0.95, 0.02] * 10)
    temperatures = torch.tensor([1.0, 0.5, 1.3, 1.0, 0.0] * 8)
    together = choose_tokens(logits, temperatures, draws, top_p)
    for row in range(40):
        part = slice(row, row + 1)
        cut = None if top_p[row] == 1 else top_p[part]
        alone = choose_tokens(logits[part], temperatures[part], draws[part], cut)
        assert torch.equal(together[0][part], alone[0])
        assert torch.equal(together[1][part], alone[1])


@given(seed=st.integers(0, 1 << 30), size=st.sampled_from([2, 1023, 1024, 1025, 2048, 5000]), peak=st.floats(0, 40))
def test_large_vocabularies_are_searched_like_small_ones(seed: int, size: int, peak: float) -> None:
    rng = np.random.default_rng(seed)
    logits = (rng.normal(size=size) * peak).astype(np.float32)
    draw = float(rng.choice([0.0, rng.random(), 1 - 2.0**-53]))
    (token,), (logprob,) = choose_tokens(
        torch.from_numpy(logits)[None], torch.ones(1), torch.tensor([draw], dtype=torch.float64)
    )
    logprobs = torch.from_numpy(logits).double().log_softmax(0).numpy()
    cumulative = np.exp(logprobs).cumsum()
    assert cumulative[token] >= draw - 1e-6
    assert token == 0 or cumulative[token - 1] <= draw + 1e-6
    assert float(logprob) == pytest.approx(logprobs[token], abs=1e-4)


def test_numbers_that_are_not_finite_give_tokens_all_the_same() -> None:
    for value in (float("nan"), float("inf"), float("-inf")):
        for size in (7, 3000):
            logits = torch.zeros(2, size)
            logits[0] = value
            tokens, logprobs = choose_tokens(
                logits, torch.ones(2), torch.full((2,), 0.5, dtype=torch.float64), torch.full((2,), 0.9)
            )
            assert 0 <= int(tokens.min()) <= int(tokens.max()) < size
            assert not torch.isfinite(logprobs[0])
            assert torch.isfinite(logprobs[1])
