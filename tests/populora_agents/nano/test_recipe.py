"""nano's recipe: schedule, batches, targets."""

from __future__ import annotations

import pytest
import torch

from populora_agents.nano.recipe import IGNORE, Recipe, batches, learning_rate, model_config
from populora_agents.nano.tokenizer import build_tokenizer

TOKENIZER = build_tokenizer()
RECIPE = Recipe(steps=100, warmup=10, learning_rate=1.0, chunk=64, batch_tokens=512)


def test_rate_climbs_linearly_and_falls_as_a_cosine() -> None:
    assert learning_rate(RECIPE, 0) == pytest.approx(0.1)
    assert learning_rate(RECIPE, 9) == pytest.approx(1.0)
    assert learning_rate(RECIPE, 55) == pytest.approx(0.5)
    assert learning_rate(RECIPE, 100) == pytest.approx(0.0)


def test_batches_hold_every_text_of_the_chunk_within_the_budget() -> None:
    made = batches(RECIPE, TOKENIZER, chunk=0)
    assert sum(len(batch.ids) for batch in made) == RECIPE.chunk
    assert all(batch.ids.numel() <= RECIPE.batch_tokens for batch in made)


def test_targets_are_the_ids_or_nothing() -> None:
    for batch in batches(RECIPE, TOKENIZER, chunk=0):
        counted = batch.targets != IGNORE
        assert torch.equal(batch.targets[counted], batch.ids[counted])
        assert not (counted & (batch.mask == 0)).any()
        last = batch.mask.sum(1) - 1
        ends = batch.targets[torch.arange(len(last)), last]
        assert (ends == TOKENIZER.eos_token_id).all()


def test_solvers_carry_loss_on_their_answers_only() -> None:
    shares = [(batch.targets != IGNORE).sum() / batch.mask.sum() for batch in batches(RECIPE, TOKENIZER, chunk=0)]
    assert min(shares) < 0.5


def test_chunks_differ_and_repeat() -> None:
    first, again, other = (batches(RECIPE, TOKENIZER, chunk=chunk)[0].ids for chunk in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_default_shape_is_a_small_llama_with_heads_of_32() -> None:
    config = model_config(Recipe(), TOKENIZER)
    assert config.model_type == "llama"
    assert config.hidden_size // config.num_attention_heads == 32
    assert config.populora_preset == "nano"
    with pytest.raises(ValueError, match="multiple of 32"):
        Recipe(hidden=100)
