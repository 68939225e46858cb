"""The plan of one forward: which rows are gathered where."""

from __future__ import annotations

import pytest

from populora_agents.routing import plan_rows


def test_equal_sorted_counts_need_no_gathering() -> None:
    plan = plan_rows([0, 0, 1, 1], 4)
    assert plan is not None
    assert plan.gather is None
    assert (plan.count, plan.width, plan.slots) == (2, 2, slice(0, 2))
    assert plan_rows([None, -1], 4) is None
    assert plan_rows([], 4) is None


def test_mixed_rows_are_padded_by_slot_and_find_their_way_back() -> None:
    plan = plan_rows([2, None, 0, 2], 4)
    assert plan is not None
    assert (plan.rows, plan.count, plan.width) == (4, 2, 2)
    assert [part.tolist() for part in (plan.slots, plan.gather, plan.places, plan.routed)] == [  # type: ignore[union-attr]
        [0, 2],
        [2, 2, 0, 3],
        [2, 0, 3],
        [0, 2, 3],
    ]


@pytest.mark.parametrize("slots", [[0, 4], [-2]])
def test_slots_that_do_not_exist_are_refused(slots: list[int]) -> None:
    with pytest.raises(ValueError, match=r"must lie in -1\.\.3"):
        plan_rows(slots, 4)
