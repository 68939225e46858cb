"""Micro-batches: layout, budget, and that no rollout is lost."""

from __future__ import annotations

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
    assert batch.sampled.tolist() == [[True, False, False], [True, True, True]]
    assert batch.position_ids.tolist() == [[0, 1, 2, 2, 2], [0, 0, 1, 2, 3]]
    assert batch.targets.tolist() == [101, 101, 102, 103]


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(0, 3)), max_size=20), st.integers(1, 60))
def test_every_rollout_once_and_the_budget_is_kept(rows: list[tuple[int, int, int]], budget: int) -> None:
    rollouts = [rollout(prompt, completion) for prompt, completion, _ in rows]
    slots = [slot for _, _, slot in rows]
    batches = list(micro_batches(rollouts, range(len(rows)), slots, budget))
    assert sorted(place for batch in batches for place in batch.places) == list(range(len(rows)))
    for batch in batches:
        assert batch.input_ids.numel() <= budget or len(batch.places) == 1
        own = [slots[place] for place in batch.places]
        assert own == sorted(own)
