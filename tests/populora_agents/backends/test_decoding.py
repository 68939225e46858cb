"""Which rows stay when a batch is compacted."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from populora_agents.backends.decoding import rows_to_keep


def test_finished_rows_fill_slots_up_where_it_is_cheap() -> None:
    slots = np.array([0] * 4 + [1] * 4)
    live = np.array([1, 1, 1, 1, 0, 1, 1, 1], dtype=bool)
    assert rows_to_keep(slots, live).tolist() == list(range(8))
    # Slot 1 has one live row of four: filling it up would cost too much.
    live = np.array([1, 1, 1, 1, 0, 0, 1, 0], dtype=bool)
    assert rows_to_keep(slots, live).tolist() == [0, 1, 2, 3, 6]


def test_a_slot_without_live_rows_leaves_whole() -> None:
    slots = np.array([0, 0, 1, 1])
    assert rows_to_keep(slots, np.array([0, 0, 1, 1], dtype=bool)).tolist() == [2, 3]


@given(st.lists(st.tuples(st.integers(-1, 4), st.booleans()), max_size=30))
def test_live_rows_are_never_lost(rows: list[tuple[int, bool]]) -> None:
    rows.sort(key=lambda row: row[0])
    live = np.array([row[1] for row in rows], dtype=bool)
    kept = rows_to_keep(np.array([row[0] for row in rows], dtype=np.int64), live)
    assert set(np.flatnonzero(live)) <= set(kept.tolist())
    assert kept.tolist() == sorted(set(kept.tolist()))
    assert len(kept) <= 1.25 * live.sum()
