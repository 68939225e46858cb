"""nano's recipe: schedule, batches, targets."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from populora_agents.nano.corpus import Example
from populora_agents.nano.recipe import IGNORE, Recipe, batches, encode, learning_rate, model_config
from populora_agents.nano.tokenizer import build_tokenizer
from populora_env.types import Role, Task

TOKENIZER = build_tokenizer()
RECIPE = Recipe(steps=100, decay=40, warmup=10, learning_rate=1.0, chunk=256, batch_tokens=512)


def test_rate_climbs_stays_and_falls_in_straight_lines() -> None:
    assert learning_rate(RECIPE, 0) == pytest.approx(0.1)
    assert learning_rate(RECIPE, 9) == pytest.approx(1.0)
    assert learning_rate(RECIPE, 60) == pytest.approx(1.0)
    assert learning_rate(RECIPE, 80) == pytest.approx(0.5)
    assert learning_rate(RECIPE, 100) == 0.0


def test_before_the_decay_the_rate_does_not_know_where_the_schedule_ends() -> None:
    longer = replace(RECIPE, steps=10_000, decay=0)
    assert [learning_rate(longer, step) for step in range(60)] == [learning_rate(RECIPE, step) for step in range(60)]


def test_a_decay_longer_than_the_schedule_is_refused() -> None:
    with pytest.raises(ValueError, match="`decay` must be in"):
        Recipe(steps=10, decay=11)


def test_batches_hold_every_text_of_the_chunk_within_the_budget() -> None:
    made = batches(RECIPE, TOKENIZER, chunk=0)
    assert sum(len(batch.ids) for batch in made) == RECIPE.chunk
    assert all(batch.ids.numel() <= RECIPE.batch_tokens for batch in made)


def test_targets_are_the_ids_or_nothing() -> None:
    for batch in batches(RECIPE, TOKENIZER, chunk=0):
        counted = batch.targets != IGNORE
        assert torch.equal(batch.targets[counted], batch.ids[counted])
        last = counted.cumsum(1).argmax(1)
        ends = batch.targets[torch.arange(len(last)), last]
        assert (ends == TOKENIZER.eos_token_id).all()
        padded = torch.arange(batch.ids.shape[1]) > last[:, None]
        assert (batch.ids[padded] == TOKENIZER.pad_token_id).all()
        assert batch.tokens == batch.ids.numel() - int(padded.sum())


def test_a_begun_completion_carries_no_loss_on_its_first_token() -> None:
    begun = Example(role=Role.SOLVER, task=Task.DEDUCTION, prompt="x\n", completion="a = 3", is_begun=True)
    prompt, completion = TOKENIZER("x\n").input_ids, TOKENIZER("a = 3").input_ids
    ((ids, targets),) = encode(TOKENIZER, [begun])
    assert ids == [*prompt, *completion, TOKENIZER.eos_token_id]
    assert targets == [IGNORE] * (len(prompt) + 1) + ids[len(prompt) + 1 :]


def test_solvers_carry_loss_on_their_answers_only() -> None:
    shares = [(batch.targets != IGNORE).sum() / batch.tokens for batch in batches(RECIPE, TOKENIZER, chunk=0)]
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
