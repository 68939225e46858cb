"""Stop strings over tokens that are bytes, characters and whole words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from populora_agents.stopping import StopFinder, cut


def decode(tokens: Sequence[int]) -> str:
    """Tokens are bytes."""
    return bytes(tokens).decode(errors="replace")


@pytest.mark.parametrize(
    ("text", "stops", "left"),
    [
        ("abc", (), ("abc", False)),
        ("abc", ("x",), ("abc", False)),
        ("abcabc", ("bc",), ("a", True)),
        ("abcabc", ("ca", "b"), ("a", True)),
        ("abc", ("abc", "c"), ("", True)),
    ],
)
def test_text_is_cut_before_the_first_stop(text: str, stops: tuple[str, ...], left: tuple[str, bool]) -> None:
    assert cut(text, stops) == left


@given(
    st.text(alphabet="ab`\né€", max_size=20),
    st.lists(st.text(alphabet="ab`\né€", min_size=1, max_size=3), max_size=3),
)
def test_a_row_ends_with_the_token_that_completes_a_stop(text: str, stops: list[str]) -> None:
    finder = StopFinder(decode)
    tokens = list(text.encode())
    ended = next((count for count in range(1, len(tokens) + 1) if finder.ends(tokens[:count], stops)), None)
    whole = [count for count in range(1, len(tokens) + 1) if any(stop in decode(tokens[:count]) for stop in stops)]
    assert ended == (whole[0] if whole else None)


def test_a_token_that_cannot_complete_a_stop_is_not_looked_at_again() -> None:
    calls: list[Sequence[int]] = []

    def counted(tokens: Sequence[int]) -> str:
        calls.append(tokens)
        return decode(tokens)

    finder = StopFinder(counted)
    tokens = list(b"aaaa")
    for count in range(1, 5):
        assert not finder.ends(tokens[:count], ("`",))
    assert calls == [[97]]
