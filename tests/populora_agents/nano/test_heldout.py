"""`nano-heldout`: equal shares, nothing that training has seen, always the same."""

from __future__ import annotations

from collections import Counter

import pytest

from populora_agents.nano.heldout import COUNT, nano_heldout
from populora_env.generator_families import Family, family_of, is_held_out
from populora_env.types import Task


def test_the_suite_has_500_problems_a_task_in_equal_shares() -> None:
    suite = nano_heldout()
    assert suite.name == "nano-heldout"
    for task in Task:
        items = suite.of_task(task).items
        assert len(items) == COUNT == 500
        assert len({item.problem.problem_id for item in items}) == COUNT
        for key, kinds in (("depth", 6), ("family", len(Family))):
            counts = Counter(item.labels[key] for item in items)
            assert len(counts) == kinds
            assert max(counts.values()) - min(counts.values()) <= 8


def test_no_program_of_it_is_one_that_training_may_use() -> None:
    assert all(is_held_out(item.problem.program) for item in nano_heldout().items)


def test_labels_are_true() -> None:
    for item in nano_heldout(96).items:
        assert family_of(item.problem.program, item.problem.inputs[0]) == item.labels["family"]


def test_the_same_count_gives_the_same_suite() -> None:
    nano_heldout.cache_clear()
    first = nano_heldout(20)
    nano_heldout.cache_clear()
    assert nano_heldout(20) == first
    assert first.name == "nano-heldout-20"


def test_a_suite_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        nano_heldout(0)
