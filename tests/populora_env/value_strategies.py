"""Hypothesis strategies for values, shared by the tests of encoding and of literals."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from populora_env.encoding import EncodeError, encode

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text(max_size=8)
    | st.binary(max_size=8)
)
_KEYS = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3).map(tuple) | st.frozensets(inner, max_size=3))


@st.composite
def _keys(draw: st.DrawFn) -> Any:
    """Draw a key; hides a strategy whose repr is thousands of characters long."""
    return draw(_KEYS)


KEYS = _keys()
_VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.sets(KEYS, max_size=3)
        | st.frozensets(KEYS, max_size=3)
    ),
    max_leaves=12,
)


@st.composite
def _values(draw: st.DrawFn) -> Any:
    return draw(_VALUES)


VALUES = _values()


def canonical(value: Any) -> bytes | None:
    """Return the bytes of a value; None where two NaN keys make it none."""
    try:
        return encode(value)
    except EncodeError:
        return None
