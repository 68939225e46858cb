"""Nothing that acts on a terminal gets through."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from league.escaping import printable


@given(st.text(st.characters()))
def test_nothing_unprintable_gets_through(text: str) -> None:
    assert printable(text).isprintable()
    assert all(char.isprintable() or char == "\n" for char in printable(text, keep_lines=True))
