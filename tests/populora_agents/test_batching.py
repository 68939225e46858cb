"""Micro-batches: layout, budget, and that no rollout is lost."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from populora_agents.batching import micro_batches
from populora_agents.types import Rollout


def rollout(prompt: int, completion: int) -> Rollout:
    return Rollout(
        member_id="m",
        batch="b",
        group_id="g",
        prompt_ids=tuple(range(1, prompt + 1)),
        token_ids=tuple(range(101, 101 + completion)),
        logprobs=(0.0,) * completion,
        reward=0.0,
    )


def test_layout_by_hand() -> None:
    (batch,) = micro_batches([rollout(1, 3), rollout(2, 1)], [0, 1], [1, 0], 100)
    # Sorted by slot: rollout 1 comes first.
    assert batch.places == (1, 0)
    assert batch.input_ids.tolist() == [[1, 2, 101, 0, 0], [0, 1, 101, 102, 103]]
    assert batch.mask.tolist() == [[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]]
    assert batch.position_ids.tolist() == [[0, 1, 2, 0, 0], [0, 0, 1, 2, 3]]
    assert batch.targets.tolist() == [101, 101, 102, 103]
    # Of the last C + 1 = 4 columns of two rows; each token is predicted by the column before it.
    assert batch.predictors.tolist() == [0, 4, 5, 6]
    assert batch.row_slots == (0, 1)
    assert not batch.shares_rows


def test_rollouts_of_one_prompt_share_a_row_by_hand() -> None:
    rollouts = [rollout(2, 2), rollout(1, 2), rollout(2, 1)]
    (batch,) = micro_batches(rollouts, [0, 1, 2], [0, 0, 0], 100, shared_row_tokens=5)
    assert batch.places == (0, 2, 1)
    assert batch.input_ids.tolist() == [[1, 2, 101, 102, 101], [0, 1, 101, 102, 0]]
    assert batch.position_ids.tolist() == [[0, 1, 2, 3, 2], [0, 0, 1, 2, 0]]
    assert batch.segments.tolist() == [[0, 0, 1, 1, 2], [-1, 0, 1, 1, -1]]
    assert batch.targets.tolist() == [101, 102, 101, 101, 102]
    # The prompt's last token (column 0 of 4) predicts the first token of both completions of row 0.
    assert batch.predictors.tolist() == [0, 1, 0, 4, 5]
    assert batch.shares_rows
    seen = (batch.attention_mask(torch.float64, "cpu")[:, 0] == 0).to(torch.int64)
    assert seen[0].tolist() == [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 0, 0, 1]]
    # Padding sees padding, so that no row of the softmax is empty, and nobody sees padding.
    assert seen[1].tolist() == [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 1, 1, 1, 0], [1, 0, 0, 0, 1]]


def test_a_full_row_begins_another_and_slots_never_share() -> None:
    rollouts = [rollout(2, 2) for _ in range(4)]
    (batch,) = micro_batches(rollouts, range(4), [0, 0, 0, 1], 100, shared_row_tokens=6)
    assert batch.row_slots == (0, 0, 1)
    assert batch.places == (0, 1, 2, 3)
    (apart,) = micro_batches(rollouts, range(4), [0, 0, 0, 1], 100, shared_row_tokens=0)
    assert apart.row_slots == (0, 0, 0, 1)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(0, 3)), max_size=20),
    st.integers(1, 60),
    st.integers(0, 40),
)
def test_every_rollout_once_and_the_budget_is_kept(rows: list[tuple[int, int, int]], budget: int, shared: int) -> None:
    rollouts = [rollout(prompt, completion) for prompt, completion, _ in rows]
    slots = [slot for _, _, slot in rows]
    batches = list(micro_batches(rollouts, range(len(rows)), slots, budget, shared_row_tokens=shared))
    assert sorted(place for batch in batches for place in batch.places) == list(range(len(rows)))
    for batch in batches:
        assert batch.input_ids.numel() <= budget or len(batch.places) == 1
        own = [slots[place] for place in batch.places]
        assert own == sorted(own)
        assert list(batch.row_slots) == sorted(batch.row_slots)
        assert sorted(set(own)) == sorted(set(batch.row_slots))
        assert batch.targets.tolist() == [token for place in batch.places for token in rollouts[place].token_ids]
