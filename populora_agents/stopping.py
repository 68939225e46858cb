"""Stop strings: where a completion's text ends before the model says so.

Owns finding them in what was decoded. Owns no loop (`backends.decoding`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Decode = Callable[[Sequence[int]], str]
"""From token ids to text, without special tokens."""

_UNFINISHED = "\ufffd"
"""What a decoder writes for bytes that are no whole character yet."""


class StopFinder:
    """Tells after each token whether a stop string is complete; a token that cannot complete one costs a look-up."""

    def __init__(self, decode: Decode) -> None:
        """Take the way from ids to text."""
        self._decode = decode
        self._pieces: dict[int, str] = {}

    def ends(self, tokens: Sequence[int], stops: Sequence[str]) -> bool:
        """Return whether the text of `tokens` holds one of `stops`, which it did not before the last token."""
        if not any(self._may_complete(tokens[-1], stop) for stop in stops):
            return False
        return cut(self._decode(tokens), stops)[1]

    def _may_complete(self, token: int, stop: str) -> bool:
        if token not in self._pieces:
            self._pieces[token] = self._decode([token])
        piece = self._pieces[token]
        return stop[-1] in piece or _UNFINISHED in piece


def cut(text: str, stops: Sequence[str]) -> tuple[str, bool]:
    """Return the text before the first of `stops`, and whether there is one."""
    found = [place for place in (text.find(stop) for stop in stops) if place >= 0]
    return (text[: min(found)], True) if found else (text, False)
