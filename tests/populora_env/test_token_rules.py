"""Tests of `populora_env.token_grammar` and `populora_env.token_rules`: size, shortest derivations, masks."""

import numpy as np
import pytest

from populora_env.token_grammar import COMPARISONS, DIGITS, HINTS, LETTERS, N_TOKENS, OPERATORS, Kind, Slot, Token
from populora_env.token_rules import (
    EXPANSIONS,
    LONGEST_STEP,
    RULES,
    SHORTEST,
    SLOTS,
    UNFINISHABLE,
    legal_tokens,
    n_derivations,
    nth_shortest,
    start_of_hint,
    start_of_literal,
    start_of_program,
)

ROOMY = 100


def named(mask):
    return {Token(token).name for token in np.flatnonzero(mask)}


def test_there_are_at_most_64_tokens_and_noop_is_in_no_rule():
    assert N_TOKENS == len(Token) <= 64
    assert list(Token) == list(range(N_TOKENS))
    used = {token for rules in RULES for token in rules}
    assert used == set(range(1, N_TOKENS))


def test_operators_are_told_apart_by_type_and_token():
    assert len({(operator.takes, operator.token) for operator in OPERATORS}) == len(OPERATORS)
    assert {operator.takes for operator in OPERATORS} == {operator.gives for operator in OPERATORS} == set(Kind)
    assert set(HINTS) == {operator.token for operator in OPERATORS}
    assert not set(HINTS) & (set(COMPARISONS) | set(DIGITS) | set(LETTERS))


def test_shortest_derivations():
    assert SHORTEST[start_of_program()] == 3  # its type, return, an operator without operands
    assert [SHORTEST[start_of_literal(kind)] for kind in Kind] == [1, 1, 1]
    assert SHORTEST[start_of_hint()] == 1
    ways = {(takes, gives): SHORTEST[start_of_program(takes, gives)] for takes in Kind for gives in Kind}
    assert ways == {
        (Kind.INT, Kind.INT): 2,  # return abs(x)
        (Kind.INT, Kind.LIST): 2,  # return list(range(x % 6))
        (Kind.INT, Kind.STR): 3,  # return 'a' * (x % 5)
        (Kind.LIST, Kind.INT): 2,  # return len(x)
        (Kind.LIST, Kind.LIST): 2,  # return x[::-1]
        (Kind.LIST, Kind.STR): 5,  # y = len(x); return 'a' * (y % 5)
        (Kind.STR, Kind.INT): 2,  # return len(x)
        (Kind.STR, Kind.LIST): 3,  # return [i for i, c in enumerate(x) if c == 'a']
        (Kind.STR, Kind.STR): 2,  # return x[::-1]
    }


def test_shortest_is_a_fixpoint():
    for symbol, rules in enumerate(RULES):
        costs = [1 + sum(SHORTEST[child] for child in children) for children in rules.values()]
        assert SHORTEST[symbol] == min([*costs, UNFINISHABLE])
        for token, (children, growth) in EXPANSIONS[symbol].items():
            assert children == rules[token][::-1]
            assert growth == sum(SHORTEST[child] for child in children) - SHORTEST[symbol]


@pytest.mark.parametrize(
    ("kind", "counts"),
    [
        (Kind.INT, [10, 9, 90, 90]),  # d; -d; dd; -dd: every int has one spelling
        (Kind.STR, [1, 3, 9, 27]),
        # [d]: 10; [-d], [d, d]: 9 + 100; [dd], [-d, d] and [d, -d], [d, d, d]: 90 + 180 + 1000
        (Kind.LIST, [1, 10, 109, 1270]),
    ],
)
def test_literals_of_each_length_are_counted(kind, counts):
    start = start_of_literal(kind)
    assert [n_derivations((start,), length) for length in range(1, 5)] == counts
    assert n_derivations((), 0) == 1
    assert n_derivations((), 1) == 0
    assert nth_shortest(start, 0) == 1
    assert nth_shortest(start, sum(counts[:3])) == 4
    assert nth_shortest(start, sum(counts[:3]) - 1) == 3


def test_masks_hold_what_fits_the_room():
    start = start_of_program()
    assert named(legal_tokens(start, ROOMY, ())) == {"TAKES_INT", "TAKES_LIST", "TAKES_STR"}
    assert named(legal_tokens(start, 2, ())) == set()
    body = start_of_program(Kind.LIST, Kind.STR)
    assert named(legal_tokens(body, 5, ())) == {"LET"}  # nothing returns a str from a list at once
    assert named(legal_tokens(body, 4, ())) == set()
    number = start_of_literal(Kind.INT)
    assert named(legal_tokens(number, 1, ())) == {Token(digit).name for digit in DIGITS}
    assert "NEGATIVE" in named(legal_tokens(number, 2, ()))
    assert "MORE" not in named(legal_tokens(number, 2, ()))
    assert "MORE" in named(legal_tokens(number, 3, ()))


def test_variables_are_legal_where_one_of_their_type_is_in_scope():
    hole = SLOTS.index(Slot.INT)
    assert named(legal_tokens(hole, 1, (Kind.INT,))) - {Token(digit).name for digit in DIGITS} == {"VARIABLE_X"}
    scope = (Kind.LIST, Kind.INT, Kind.STR)
    assert not {"VARIABLE_X", "VARIABLE_Z"} & named(legal_tokens(hole, 1, scope))
    assert "VARIABLE_Y" in named(legal_tokens(hole, 1, scope))
    assert named(legal_tokens(SLOTS.index(Slot.LIST), 1, scope)) == {"VARIABLE_X"}
    assert named(legal_tokens(SLOTS.index(Slot.STR), 1, scope)) == {"LETTER_A", "LETTER_B", "LETTER_C", "VARIABLE_Z"}
    assert "ITEM" in named(legal_tokens(SLOTS.index(Slot.ITEM_INT), 1, ()))
    assert "ITEM" not in named(legal_tokens(hole, 1, ()))


def test_masks_are_read_only_and_the_same_beyond_the_longest_step():
    start = start_of_program(Kind.INT)
    mask = legal_tokens(start, LONGEST_STEP, ())
    assert mask is legal_tokens(start, ROOMY, (Kind.INT,))
    assert mask.dtype == np.int8
    with pytest.raises(ValueError, match="read-only"):
        mask[0] = 1
