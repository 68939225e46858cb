"""A text under way: tokens chosen one by one, each expanding the leftmost nonterminal.

Owns the budget: whatever was chosen, the mask holds a token, and following any such tokens ends within it. Owns nothing
of what the parts mean (`token_printing`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from populora_env.token_grammar import N_TOKENS, TAKES, Kind, Slot
from populora_env.token_rules import (
    BINDS,
    EXPANSIONS,
    RULES,
    SHORTEST,
    SLOTS,
    Mask,
    legal_tokens,
    nth_shortest,
    start_of_hint,
    start_of_literal,
    start_of_program,
)

_KIND_OF_PROGRAM = {token: kind for kind, token in TAKES.items()}
_ARGUMENT = -1
"""A part that stands for the literal of what the first part, a program, takes."""

NOTHING_TO_DO = np.zeros(N_TOKENS, dtype=np.int8)
"""The mask of who waits: `NOOP` alone."""
NOTHING_TO_DO[0] = 1
NOTHING_TO_DO.setflags(write=False)


class Derivation:
    """A row of parts, each derived from a nonterminal of its own; finished parts are token tuples."""

    def __init__(self, starts: Sequence[int], *, budget: int, room: int, distinct: bool = False) -> None:
        """Begin the first part.

        Args:
            starts: Nonterminals of the parts.
            budget: Most tokens of all parts together.
            room: Most tokens of each part after the first; with `distinct`, of the first as well.
            distinct: Whether parts from the same nonterminal must differ.

        Raises:
            ValueError: The budget or the room is too small for any derivation.
        """
        reserves = _reserves(starts, distinct)
        if budget < sum(reserves) or room < max(reserves[1:], default=0):
            raise ValueError(f"`budget` must be at least {sum(reserves)}, got {budget!r} (`room` {room!r})")
        self.done: list[tuple[int, ...]] = []
        """Finished parts."""
        self.part: tuple[int, ...] = ()
        """Tokens of the part under way."""
        self.n_tokens = 0
        """Tokens chosen so far."""
        self.left = budget
        """Tokens that the budget still holds."""
        self.mask: Mask = NOTHING_TO_DO
        """Which tokens are legal now; `NOOP` alone when finished. Read-only."""
        self._starts = tuple(starts)
        self._distinct = distinct
        self._room = room
        self._later = [sum(reserves[place + 1 :]) for place in range(len(reserves))]
        self._scope: tuple[Kind, ...] = ()
        self._begin()

    @property
    def finished(self) -> bool:
        """Whether all parts are."""
        return not self._stack

    @property
    def slot(self) -> Slot | None:
        """What the next token fills; None when finished."""
        return SLOTS[self._stack[-1]] if self._stack else None

    def choose(self, token: int) -> None:
        """Expand the leftmost nonterminal.

        Raises:
            ValueError: The token is not legal here.
        """
        if not self.mask[token]:
            raise ValueError(f"`token` must be legal here, got {token!r}")
        symbol = self._stack.pop()
        if (kind := BINDS[symbol]) is not None:
            self._scope = (*self._scope, kind)
        children, growth = EXPANSIONS[symbol][token]
        self._stack += children
        self._need += growth
        self.left -= 1
        self.n_tokens += 1
        self.part = (*self.part, token)
        if self._stack:
            self._see()
            return
        self.done.append(self.part)
        self.part = ()
        if len(self.done) == len(self._starts):
            self.mask = NOTHING_TO_DO
        else:
            self._begin()

    def _begin(self) -> None:
        start = self._starts[len(self.done)]
        if start == _ARGUMENT:
            start = start_of_literal(_KIND_OF_PROGRAM[self.done[0][0]])
        self._stack = [start]
        self._need = SHORTEST[start]
        self._scope = ()
        self._capped = self._distinct or bool(self.done)
        self._see()

    def _see(self) -> None:
        """Find out what is legal now."""
        left = self.left - self._later[len(self.done)]
        if self._capped:
            left = min(left, self._room - len(self.part))
        symbol = self._stack[-1]
        self.mask = legal_tokens(symbol, left - self._need + SHORTEST[symbol], self._scope)
        if self._distinct and (used := self._used()):
            self.mask = self._without_repeats(used, left)

    def _used(self) -> list[tuple[int, ...]]:
        """Return how the earlier parts went on that began like this one and come from the same nonterminal."""
        start, n = self._starts[len(self.done)], len(self.part)
        earlier = zip(self._starts, self.done, strict=False)
        return [part[n:] for other, part in earlier if other == start and part[:n] == self.part]

    def _without_repeats(self, used: list[tuple[int, ...]], left: int) -> Mask:
        """Return the mask less the tokens after which only an earlier part could still be finished in time."""
        mask = self.mask.copy()
        rest, rules = tuple(reversed(self._stack[:-1])), RULES[self._stack[-1]]
        for token in {part[0] for part in used}:
            tails = [part[1:] for part in used if part[0] == token]
            mask[token] &= 1 + _shortest_other((*rules[token], *rest), tails, left - 1) <= left
        mask.setflags(write=False)
        return mask


def _shortest_other(symbols: tuple[int, ...], used: list[tuple[int, ...]], most: int) -> int:
    """Return the length of the shortest derivation from `symbols` that is not in `used`; more than `most`: any more."""
    shortest = sum(SHORTEST[symbol] for symbol in symbols)
    if not used or shortest > most:
        return shortest
    if not symbols:
        return most + 1
    first, *rest = symbols
    lengths = []
    for token, children in RULES[first].items():
        tails = [part[1:] for part in used if part[0] == token]
        lengths.append(1 + _shortest_other((*children, *rest), tails, most - 1))
    return min(lengths)


def _reserves(starts: Sequence[int], distinct: bool) -> list[int]:
    """Return, for each part, a length within which it can be finished whatever the parts before it are."""
    reserves = []
    for place, start in enumerate(starts):
        if start == _ARGUMENT:
            reserves.append(max((SHORTEST[start_of_literal(kind)]) for kind in Kind))
        else:
            earlier = starts[:place].count(start) if distinct else 0
            reserves.append(nth_shortest(start, earlier) if earlier else (SHORTEST[start]))
    return reserves


def derive_program_and_input(budget: int, room: int) -> Derivation:
    """Begin a proposal of deduction or abduction: a program, and a literal for its argument."""
    return Derivation((start_of_program(), _ARGUMENT), budget=budget, room=room)


def derive_inputs_and_hint(kind: Kind, n: int, budget: int, room: int) -> Derivation:
    """Begin a proposal of induction: `n` different literals, and a hint."""
    return Derivation((*[start_of_literal(kind)] * n, start_of_hint()), budget=budget, room=room, distinct=True)


def derive_literal(kind: Kind, budget: int) -> Derivation:
    """Begin an answer of deduction or abduction."""
    return Derivation((start_of_literal(kind),), budget=budget, room=budget)


def derive_program(takes: Kind, gives: Kind | None, budget: int) -> Derivation:
    """Begin an answer of induction: a program of that type; `gives` None leaves the type of its value open."""
    return Derivation((start_of_program(takes, gives),), budget=budget, room=budget)


def least_budget(n_inputs: int) -> int:
    """Return the least budget within which every proposal and answer can be written; `n_inputs` of induction."""
    programs = [(SHORTEST[start_of_program(takes, gives)]) for takes in Kind for gives in Kind]
    hints = [sum(_reserves((*[start_of_literal(kind)] * n_inputs, start_of_hint()), True)) for kind in Kind]
    return max(sum(_reserves((start_of_program(), _ARGUMENT), False)), *programs, *hints)
