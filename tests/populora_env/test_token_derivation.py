"""Tests of `populora_env.token_derivation`: whatever is chosen, every derivation ends within its budget."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from populora_env.token_derivation import (
    NOTHING_TO_DO,
    derive_inputs_and_hint,
    derive_literal,
    derive_program,
    derive_program_and_input,
    least_budget,
)
from populora_env.token_grammar import TAKES, Kind, Slot, Token
from populora_env.token_printing import literal_value, print_program
from populora_env.token_rules import SHORTEST, start_of_program

KINDS = st.sampled_from(Kind)
PICKS = st.lists(st.integers(0, 56), min_size=30, max_size=30)
"""Which of the legal tokens is chosen at each place."""


def follow(derivation, picks):
    """Finish a derivation; each pick says which of the legal tokens is taken."""
    budget = derivation.left
    for pick in picks:
        if derivation.finished:
            break
        legal = np.flatnonzero(derivation.mask)
        assert len(legal)
        assert legal[0] != Token.NOOP
        assert derivation.slot is not None
        derivation.choose(int(legal[pick % len(legal)]))
    assert derivation.finished
    assert derivation.left == budget - derivation.n_tokens >= 0
    assert derivation.n_tokens == sum(map(len, derivation.done))
    assert derivation.mask is NOTHING_TO_DO
    assert derivation.slot is None
    return derivation.done


@given(picks=PICKS, budget=st.integers(4, 30), room=st.integers(1, 16))
def test_a_program_and_its_input_end_in_time(picks, budget, room):
    program, literal = follow(derive_program_and_input(budget, room), picks)
    assert len(literal) <= room
    literal_value(literal, print_program(program).takes)


@given(picks=PICKS, kind=KINDS, n=st.integers(2, 5), spare=st.integers(0, 12))
def test_inputs_and_a_hint_end_in_time_and_differ(picks, kind, n, spare):
    budget = least_budget(n) + spare
    *literals, hint = follow(derive_inputs_and_hint(kind, n, budget, 6), picks)
    assert len(hint) == 1
    assert len(literals) == n
    assert len({repr(literal_value(literal, kind)) for literal in literals}) == n


@given(picks=PICKS, takes=KINDS, gives=KINDS, spare=st.integers(0, 20))
def test_a_program_of_a_type_ends_in_time_and_has_it(picks, takes, gives, spare):
    budget = SHORTEST[start_of_program(takes, gives)] + spare
    (tokens,) = follow(derive_program(takes, gives, budget), picks)
    program = print_program((TAKES[takes], *tokens))
    assert (program.takes, program.gives) == (takes, gives)


@given(picks=PICKS, kind=KINDS, budget=st.integers(1, 30))
def test_a_literal_ends_in_time(picks, kind, budget):
    (tokens,) = follow(derive_literal(kind, budget), picks)
    literal_value(tokens, kind)


def test_repeats_are_closed_off_where_they_would_end():
    derivation = derive_inputs_and_hint(Kind.STR, 3, 24, 16)
    derivation.choose(Token.DIGIT_0)  # ''
    assert not derivation.mask[Token.DIGIT_0]
    derivation.choose(Token.DIGIT_1)
    derivation.choose(Token.LETTER_B)  # 'b'
    assert derivation.mask[Token.DIGIT_1]
    derivation.choose(Token.DIGIT_1)
    assert derivation.mask[[Token.LETTER_A, Token.LETTER_B, Token.LETTER_C]].tolist() == [1, 0, 1]


def test_a_beginning_that_only_repeats_can_finish_in_time_is_closed_off():
    derivation = derive_inputs_and_hint(Kind.STR, 5, 1 + 2 + 2 + 2 + 3 + 1, 16)
    for token in (Token.DIGIT_0, *(t for letter in (11, 12, 13) for t in (Token.DIGIT_1, letter))):
        derivation.choose(token)
    assert np.flatnonzero(derivation.mask).tolist() == [Token.DIGIT_2]  # all of '', 'a', 'b', 'c' are taken


def test_the_budget_that_is_needed():
    assert least_budget(1) == 5
    assert least_budget(2) == 5
    assert least_budget(4) == 1 + 3 * 2 + 1  # '', 'a', 'b', 'c' and a hint; of ints four digits would do
    assert least_budget(5) == 1 + 3 * 2 + 3 + 1
    for n in (2, 4, 5):
        for kind in Kind:
            derive_inputs_and_hint(kind, n, least_budget(n), 16)


def test_too_small_a_budget_is_refused():
    with pytest.raises(ValueError, match="`budget` must be at least 4, got 3"):
        derive_program_and_input(3, 16)
    with pytest.raises(ValueError, match="`budget` must be at least 8"):
        derive_inputs_and_hint(Kind.STR, 4, 7, 16)


def test_illegal_tokens_are_refused_and_change_nothing():
    derivation = derive_literal(Kind.INT, 3)
    with pytest.raises(ValueError, match="`token` must be legal here, got 0"):
        derivation.choose(0)
    assert (derivation.slot, derivation.left, derivation.part) == (Slot.NUMBER, 3, ())
    derivation.choose(Token.DIGIT_7)
    assert derivation.done == [(Token.DIGIT_7,)]
