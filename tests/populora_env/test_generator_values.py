"""Arguments and the values that programs may give are small and of known kinds."""

from __future__ import annotations

import numpy as np
import pytest

from populora_env.generator_steps import BOOL, DICT, INT, LIST, STR, TUPLE
from populora_env.generator_values import argument, constants, fits


@pytest.mark.parametrize("kind", [INT, STR, LIST, TUPLE, DICT, BOOL])
def test_arguments_are_of_their_kind_and_fit(kind: str) -> None:
    rng = np.random.default_rng(0)
    drawn = [argument(rng, kind) for _ in range(100)]
    assert {type(value).__name__ for value in drawn} == {kind}
    assert all(fits(value) for value in drawn)
    assert len({repr(value) for value in drawn}) > 1


@pytest.mark.parametrize("value", [99, -99, True, "abcdefgh", "", [1, -2], [], (1, 2, 3), {"a": 1}, {}])
def test_small_values_fit(value: object) -> None:
    assert fits(value)


@pytest.mark.parametrize(
    "value",
    [100, -100, "abcdefghi", [0] * 6, [100], [True], ["a"], (1, 2, 3, 4), {"a": 100}, {"abcdefghi": 1}, None, 1.0, {1}],
)
def test_other_values_do_not(value: object) -> None:
    assert not fits(value)


def test_constants_are_drawn_for_the_fields_that_are_asked_for() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        drawn = constants(rng, frozenset("kmncs"))
        assert set(drawn) == set("kmncs")
        assert drawn["k"] in range(1, 10)
        assert drawn["m"] in (2, 3)
        assert drawn["n"] in range(2, 6)
        assert drawn["c"] in list("abcd")
        assert 1 <= len(str(drawn["s"])) <= 2
