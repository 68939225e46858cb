"""The rules of the typed grammar, and from them what is legal: which tokens leave a way to finish in time.

Owns the nonterminals, what each token expands them to, their shortest derivations (a fixpoint over the rules), and the
masks. Everything is built at import or on first use and never changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from populora_env.token_grammar import (
    CHUNK,
    COMPARISONS,
    DIGITS,
    HINTS,
    LETS,
    LETTERS,
    N_TOKENS,
    OPERATORS,
    TAKES,
    VARIABLES,
    Kind,
    Slot,
    Token,
    holes_in_comprehension,
)

_T = Token


@dataclass(frozen=True, slots=True)
class _Symbol:
    """A nonterminal. The fields after `slot` are of programs alone."""

    slot: Slot
    kind: Kind | None = None
    """Type of the newest variable."""
    goal: Kind | None = None
    """Type that the program must return; None: any."""
    lets: int = 0
    """Statements that may still come before the `return`."""
    binding: bool = False
    """Whether the operator's value is bound to the next variable, not returned."""


def _operators(symbol: _Symbol) -> dict[int, tuple[_Symbol, ...]]:
    rules: dict[int, tuple[_Symbol, ...]] = {}
    for operator in OPERATORS:
        if operator.takes is not symbol.kind:
            continue
        holes = tuple(map(_Symbol, operator.holes))
        if symbol.binding:
            following = _Symbol(Slot.STATEMENT, operator.gives, symbol.goal, symbol.lets - 1)
            rules[operator.token] = (*holes, following)
        elif symbol.goal in (None, operator.gives):
            rules[operator.token] = holes
    return rules


def _statement(symbol: _Symbol) -> dict[int, tuple[_Symbol, ...]]:
    rules: dict[int, tuple[_Symbol, ...]] = {int(_T.RETURN): (_Symbol(Slot.OPERATOR, symbol.kind, symbol.goal),)}
    if symbol.lets:
        rules[int(_T.LET)] = (_Symbol(Slot.OPERATOR, symbol.kind, symbol.goal, symbol.lets, binding=True),)
    return rules


def _sequence(item: tuple[_Symbol, ...], rest: _Symbol, first: int) -> dict[int, tuple[_Symbol, ...]]:
    rules: dict[int, tuple[_Symbol, ...]] = {DIGITS[length]: item * length for length in range(first, CHUNK + 1)}
    rules[int(_T.MORE)] = (*item * CHUNK, rest)
    return rules


def _rules_of(symbol: _Symbol) -> dict[int, tuple[_Symbol, ...]]:
    """Return what each token expands a nonterminal to."""
    number = (_Symbol(Slot.NUMBER),)
    letter = (_Symbol(Slot.LETTER),)
    longer = {int(_T.MORE): (_Symbol(Slot.LEADING_DIGIT), _Symbol(Slot.DIGITS))}
    digits: dict[int, tuple[_Symbol, ...]] = dict.fromkeys(DIGITS, ())
    positive: dict[int, tuple[_Symbol, ...]] = dict.fromkeys(DIGITS[1:], ())
    letters: dict[int, tuple[_Symbol, ...]] = dict.fromkeys(LETTERS, ())
    variables: dict[int, tuple[_Symbol, ...]] = dict.fromkeys(VARIABLES, ())
    match symbol.slot:
        case Slot.PROGRAM:
            return {token: (_Symbol(Slot.STATEMENT, kind, None, LETS),) for kind, token in TAKES.items()}
        case Slot.STATEMENT:
            return _statement(symbol)
        case Slot.OPERATOR:
            return _operators(symbol)
        case Slot.INT:
            return digits | variables
        case Slot.ITEM_INT:
            return digits | variables | {int(_T.ITEM): ()}
        case Slot.POSITIVE | Slot.LEADING_DIGIT:
            return positive
        case Slot.LETTER:
            return letters
        case Slot.STR:
            return letters | variables
        case Slot.LIST:
            return variables
        case Slot.COMPARE:
            return dict.fromkeys(COMPARISONS, (_Symbol(Slot.INT),))
        case Slot.ITEM_COMPARE:
            return dict.fromkeys(COMPARISONS, (_Symbol(Slot.ITEM_INT),))
        case Slot.ITEM_OPERATOR:
            return {
                operator.token: tuple(map(_Symbol, holes_in_comprehension(operator)))
                for operator in OPERATORS
                if operator.takes is operator.gives is Kind.INT
            }
        case Slot.NUMBER:
            return digits | longer | {int(_T.NEGATIVE): (_Symbol(Slot.AFTER_SIGN),)}
        case Slot.AFTER_SIGN:
            return positive | longer
        case Slot.DIGITS:
            return digits | {int(_T.MORE): (_Symbol(Slot.DIGIT), _Symbol(Slot.DIGITS))}
        case Slot.DIGIT:
            return digits
        case Slot.LIST_LITERAL:
            return _sequence(number, _Symbol(Slot.REST_OF_LIST), 0)
        case Slot.REST_OF_LIST:
            return _sequence(number, _Symbol(Slot.REST_OF_LIST), 1)
        case Slot.STR_LITERAL:
            return _sequence(letter, _Symbol(Slot.REST_OF_STR), 0)
        case Slot.REST_OF_STR:
            return _sequence(letter, _Symbol(Slot.REST_OF_STR), 1)
        case Slot.HINT:
            return {DIGITS[0]: (), **dict.fromkeys(HINTS, ())}


_STARTS = (
    _Symbol(Slot.PROGRAM),
    *(_Symbol(Slot.STATEMENT, kind, goal, LETS) for kind in Kind for goal in (None, *Kind)),
    _Symbol(Slot.NUMBER),
    _Symbol(Slot.LIST_LITERAL),
    _Symbol(Slot.STR_LITERAL),
    _Symbol(Slot.HINT),
)


def _closure() -> dict[_Symbol, dict[int, tuple[_Symbol, ...]]]:
    """Return the rules of all nonterminals that can be reached, in a fixed order."""
    found: dict[_Symbol, dict[int, tuple[_Symbol, ...]]] = {}
    waiting = list(reversed(_STARTS))
    while waiting:
        symbol = waiting.pop()
        if symbol not in found:
            found[symbol] = _rules_of(symbol)
            waiting += [child for children in found[symbol].values() for child in children]
    return found


_FOUND = _closure()
_INDEX = {symbol: place for place, symbol in enumerate(_FOUND)}

RULES: Final = tuple(
    {token: tuple(_INDEX[child] for child in children) for token, children in rules.items()}
    for rules in _FOUND.values()
)
"""For each nonterminal, what a token expands it to: nonterminals, leftmost first."""
SLOTS: Final = tuple(symbol.slot for symbol in _FOUND)
BINDS: Final = tuple(symbol.kind if symbol.slot is Slot.STATEMENT else None for symbol in _FOUND)
"""The type of the variable that is in scope from this nonterminal on, where there is a new one."""


UNFINISHABLE: Final = 1 << 30
"""Length that stands for: no derivation ends."""


def _shortest() -> tuple[int, ...]:
    """Return the length of each nonterminal's shortest derivation, `UNFINISHABLE` where there is none.

    The least fixpoint of: shortest(N) = min over the rules of N of 1 + the sum of shortest over what the rule gives.
    Variables count as always there: where none may be, a constant is, and the newest variable is always in scope.
    """
    lengths = [UNFINISHABLE] * len(RULES)
    while True:
        new = [
            min((1 + sum(lengths[child] for child in children) for children in rules.values()), default=UNFINISHABLE)
            for rules in RULES
        ]
        new = [min(length, UNFINISHABLE) for length in new]
        if new == lengths:
            return tuple(new)
        lengths = new


SHORTEST: Final = _shortest()

_COSTS: Final = tuple(
    {token: 1 + sum(SHORTEST[child] for child in children) for token, children in rules.items()} for rules in RULES
)
EXPANSIONS: Final = tuple(
    {token: (children[::-1], _COSTS[symbol][token] - 1 - SHORTEST[symbol]) for token, children in RULES[symbol].items()}
    for symbol in range(len(RULES))
)
"""As `RULES`, but leftmost last, and by how many tokens the shortest end is then farther off than it was."""
LONGEST_STEP: Final = max(cost for costs in _COSTS for cost in costs.values() if cost < UNFINISHABLE)
"""A hole that may take this many tokens may be filled in any way that the grammar has."""

_VARIABLE_KIND = {Slot.INT: Kind.INT, Slot.ITEM_INT: Kind.INT, Slot.STR: Kind.STR, Slot.LIST: Kind.LIST}

Mask = npt.NDArray[np.int8]
"""int8 [N_TOKENS]: 1 where the token is legal."""


def start_of_program(takes: Kind | None = None, gives: Kind | None = None) -> int:
    """Return the nonterminal of a program; with `takes`, of what follows the program's first token."""
    if takes is None:
        return _INDEX[_Symbol(Slot.PROGRAM)]
    return _INDEX[_Symbol(Slot.STATEMENT, takes, gives, LETS)]


def start_of_literal(kind: Kind) -> int:
    """Return the nonterminal of a literal."""
    slots = {Kind.INT: Slot.NUMBER, Kind.LIST: Slot.LIST_LITERAL, Kind.STR: Slot.STR_LITERAL}
    return _INDEX[_Symbol(slots[kind])]


def start_of_hint() -> int:
    """Return the nonterminal of a hint."""
    return _INDEX[_Symbol(Slot.HINT)]


def legal_tokens(symbol: int, room: int, scope: tuple[Kind, ...]) -> Mask:
    """Return which tokens may expand a nonterminal and still be finished.

    Args:
        symbol: The nonterminal.
        room: Tokens that its whole derivation may take.
        scope: Types of the variables so far, oldest first.

    Returns:
        A read-only mask, the same object for the same question.
    """
    return _legal_tokens(symbol, min(room, LONGEST_STEP), scope if SLOTS[symbol] in _VARIABLE_KIND else ())


@cache
def _legal_tokens(symbol: int, room: int, scope: tuple[Kind, ...]) -> Mask:
    mask: Mask = np.zeros(N_TOKENS, dtype=np.int8)
    for token, cost in _COSTS[symbol].items():
        mask[token] = cost <= room
    for place, token in enumerate(VARIABLES):
        in_scope = place < len(scope) and scope[place] is _VARIABLE_KIND.get(SLOTS[symbol])
        mask[token] &= in_scope
    mask.setflags(write=False)
    return mask


@cache
def n_derivations(symbols: tuple[int, ...], length: int) -> int:
    """Return the number of derivations of that many tokens from a row of nonterminals, variables apart."""
    if not symbols:
        return int(length == 0)
    if length < sum(SHORTEST[symbol] for symbol in symbols):
        return 0
    first, *rest = symbols
    return sum(n_derivations((*children, *rest), length - 1) for children in RULES[first].values())


def nth_shortest(symbol: int, n: int) -> int:
    """Return the length of the `n`-th shortest derivation of a literal, 0-based."""
    length = total = 0
    while total <= n:
        length += 1
        total += n_derivations((symbol,), length)
    return length
