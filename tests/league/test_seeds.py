"""Randomness keyed by (root, step, names)."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league.seeds import generator, seed

PURE = settings(deadline=None)

ROOTS = st.integers(0, 2**128 - 1)
STEPS = st.integers(0, 2**32 - 1)
NAMES = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), min_size=1, max_size=3)


def test_values_never_change_between_releases() -> None:
    assert seed(0, 0, "a") == 846387996624505992
    assert seed(7, 3, "breed", "student_4") == 2411180662653148680
    assert generator(7, 3, "match").random() == 0.3596827636519212


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_another_process_with_another_hash_seed_agrees(hash_seed: str) -> None:
    command = "from league.seeds import seed; print(seed(0, 0, 'a'))"
    done = subprocess.run(
        [sys.executable, "-c", command], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": hash_seed}
    )
    assert int(done.stdout) == 846387996624505992


@PURE
@given(ROOTS, STEPS, NAMES)
def test_a_purpose_has_one_stream_and_a_seed_of_63_bits(root: int, step: int, names: list[str]) -> None:
    one, other = generator(root, step, *names), generator(root, step, *names)
    assert np.array_equal(one.integers(0, 2**62, 4), other.integers(0, 2**62, 4))
    assert 0 <= seed(root, step, *names) < 2**63


@PURE
@given(st.tuples(ROOTS, STEPS, NAMES), st.tuples(ROOTS, STEPS, NAMES))
def test_two_purposes_have_two_seeds(one: tuple[int, int, list[str]], other: tuple[int, int, list[str]]) -> None:
    same = one == other
    assert (seed(one[0], one[1], *one[2]) == seed(other[0], other[1], *other[2])) is same


def test_neither_names_nor_numbers_run_together() -> None:
    seeds = {
        seed(0, 0, "ab", "c"),
        seed(0, 0, "a", "bc"),
        seed(0, 0, "abc"),
        seed(0, 0, "abc", ""),
        seed(1, 0, "abc"),
        seed(0, 1, "abc"),
        seed(2**32, 0, "abc"),
        seed(2**64, 0, "abc"),
    }
    assert len(seeds) == 8


def test_the_global_generator_is_left_alone() -> None:
    before = np.random.get_state()[1].copy()  # type: ignore[index]
    generator(1, 2, "x").random(10)
    assert np.array_equal(before, np.random.get_state()[1])  # type: ignore[index]


@pytest.mark.parametrize(("root", "step", "names"), [(-1, 0, ["a"]), (2**128, 0, ["a"]), (0, -1, ["a"]), (0, 0, [])])
def test_bad_keys_are_refused(root: int, step: int, names: list[str]) -> None:
    with pytest.raises(ValueError, match="must"):
        generator(root, step, *names)
