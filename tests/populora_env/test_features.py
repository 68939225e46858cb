"""Tests of `populora_env.features`: programs measured by hand."""

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from populora_env.features import SIZE, ProgramFeatures, mean_scaled, program_features
from populora_env.source import SourceError

BRANCHY = """\
def f(a, *rest, key=1, **more):
    total = 0
    for x, y in rest:
        if x and y or not a:
            total += x

    while total > 9:
        total -= 1
    try:
        assert key
    except ValueError as fault:
        return [i for i in a if i if not fault]
    return 1 if a else 2
"""


def test_smallest_program():
    # Module, FunctionDef, Return, Name, Load
    assert program_features("def f(a):\n    return a") == ProgramFeatures(
        ast_depth=5, cyclomatic=1, lines=2, variables=1
    )


def test_every_kind_of_branch_and_binding():
    features = program_features(BRANCHY)
    # 1 + for + if + and + or + while + assert + except + comprehension with two conditions (3) + conditional
    assert features.cyclomatic == 12
    # a rest key more total x y fault i
    assert features.variables == 9
    assert features.lines == 12


def test_match_counts_cases_and_captures():
    source = "def f(a):\n    match a:\n        case [x, *y]:\n            return x\n        case {'k': v, **z}:\n"
    features = program_features(source + "            return v\n        case w:\n            return w")
    assert (features.cyclomatic, features.variables) == (4, 6)


def test_scaled_is_one_half_at_the_halfway_values():
    features = ProgramFeatures(ast_depth=8, cyclomatic=4, lines=8, variables=4)
    assert features.scaled().tolist() == [0.5] * SIZE
    assert features.scaled().dtype == np.float32


def test_means_over_programs():
    small, large = "def f(a):\n    return a", BRANCHY
    expected = (program_features(small).scaled() + program_features(large).scaled()) / 2
    assert np.allclose(mean_scaled([small, large]), expected)
    assert mean_scaled([]).tolist() == [0.0] * SIZE
    assert mean_scaled(["("]).tolist() == [0.0] * SIZE


@pytest.mark.parametrize(
    "source", ["-" * 16_000 + "1", "(" * 5000, "f(" * 90 + ")" * 90, "x" * 20_000, "a\0", "\ud800"]
)
def test_hostile_text_is_measured_or_refused(source):
    with contextlib.suppress(SourceError):
        assert program_features(source).ast_depth <= 100


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["a", "[", "]", "(", ")", "+", ":", "\n", " ", "if ", "lambda ", "def f", "="])))
def test_any_text_is_measured_or_refused_and_vectors_stay_in_range(parts):
    vector = mean_scaled(["".join(parts)])
    assert vector.shape == (SIZE,)
    assert ((vector >= 0) & (vector < 1)).all()
