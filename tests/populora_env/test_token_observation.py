"""Tests of `populora_env.token_observation`: where what stands in a vector."""

import numpy as np

from populora_env.config import GameConfig
from populora_env.token_grammar import N_TOKENS, Slot, Token
from populora_env.token_observation import CODE_SIZE, CODES, Layout, Shown
from populora_env.types import Role, Task

HEADER = 2 + 3 + 3 + 1 + 1 + 1
N_SLOTS = len(Slot)
SMALL = GameConfig(tasks=(Task.DEDUCTION,), references=0)


def test_every_token_has_a_code_of_its_own():
    assert CODES.shape == (N_TOKENS, CODE_SIZE)
    assert len({tuple(code) for code in CODES.tolist()}) == N_TOKENS
    assert CODES[Token.NOOP].tolist() == [0] * CODE_SIZE
    assert CODES[Token.DIGIT_9].tolist() == [0, 1, 0, 1, 0, 0, 1]
    assert CODES.min() >= 0
    assert CODES.max() <= 1


def test_the_size_follows_the_rules():
    row, value = 8 * CODE_SIZE, 1 + 8 * CODE_SIZE
    least = HEADER + N_SLOTS + row + CODE_SIZE + row + 2 * value
    assert Layout(SMALL, 8).size == least
    assert Layout(GameConfig(tasks=(Task.DEDUCTION,), references=3), 8).size == least + 2 * (row + 2 * value)
    both = GameConfig(tasks=(Task.DEDUCTION, Task.INDUCTION), references=1, induction_inputs=5)
    assert Layout(both, 8).size == least + 2 * 2 * value  # three pairs are visible, not one
    assert Layout(GameConfig(), 24).size == 1222


def test_role_round_and_turn_are_told():
    layout = Layout(SMALL, 8)
    vector = layout.blank(Role.SOLVER)
    layout.set_round(vector, task=Task.INDUCTION, stage="attempt", progress=0.25)
    assert vector[:HEADER].tolist() == [0, 1, 0, 0, 1, 0, 1, 0, 0, 0.25, 0]
    layout.set_turn(vector, Slot.NUMBER, 8)
    assert vector[8:HEADER].tolist() == [1, 0.25, 1]
    assert vector[HEADER : HEADER + N_SLOTS].tolist() == [slot is Slot.NUMBER for slot in Slot]
    layout.add_token(vector, 0, Token.NEGATIVE, Slot.NUMBER, Slot.AFTER_SIGN, 7)
    assert vector[HEADER - 1] == np.float32(7 / 8)
    assert vector[HEADER : HEADER + N_SLOTS].tolist() == [slot is Slot.AFTER_SIGN for slot in Slot]
    layout.add_token(vector, 1, Token.DIGIT_4, Slot.AFTER_SIGN, Slot.NUMBER, 6)
    own = vector[HEADER + N_SLOTS :][: 8 * CODE_SIZE].reshape(8, CODE_SIZE)
    assert np.array_equal(own[:3], CODES[[Token.NEGATIVE, Token.DIGIT_4, Token.NOOP]])
    layout.clear_turn(vector)
    layout.set_round(vector, task=Task.DEDUCTION, stage="over", progress=1.0)
    assert vector.nonzero()[0].tolist() == [1, 2, 7, 9]


def test_what_is_shown_has_places_of_its_own():
    layout = Layout(GameConfig(tasks=(Task.INDUCTION,), references=2), 8)
    start, row, value = HEADER + N_SLOTS + 8 * CODE_SIZE, 8 * CODE_SIZE, 1 + 8 * CODE_SIZE
    empty = layout.shown(Shown())
    assert empty.shape == (layout.size - start,)
    assert not empty.any()
    program, value_tokens = (Token.TAKES_INT, Token.RETURN, Token.ABSOLUTE), (Token.NEGATIVE, Token.DIGIT_1)
    hint = layout.shown(Shown(hint=Token.ADD))
    assert hint.nonzero()[0].max() < CODE_SIZE
    at = CODE_SIZE
    part = layout.shown(Shown(program=program))
    assert np.array_equal(part[at : at + 3 * CODE_SIZE].reshape(3, -1), CODES[list(program)])
    assert part[at : at + row].sum() == part.sum()
    at += row
    for place in range(4):  # input and output of two pairs
        pairs = [[None, None], [None, None]]
        pairs[place // 2][place % 2] = value_tokens
        part = layout.shown(Shown(pairs=pairs))
        assert part[at] == 2 / 8
        assert np.array_equal(part[at + 1 : at + 1 + 2 * CODE_SIZE].reshape(2, -1), CODES[list(value_tokens)])
        assert part[at : at + value].sum() == part.sum()
        at += value
    part = layout.shown(Shown(others=[(program, (value_tokens, None))]))
    assert part[at : at + row + value].sum() == part.sum()
    assert at + row + 2 * value == len(part)
    vector = layout.blank(Role.PROPOSER)
    layout.set_shown(vector, part)
    assert np.array_equal(vector[start:], part)
    layout.set_shown(vector, 0.0)
    assert vector.sum() == 1


def test_long_outputs_are_cut_and_their_length_is_told():
    layout = Layout(SMALL, 8)
    tokens = (Token.DIGIT_1,) * 9
    part = layout.shown(Shown(pairs=[(None, tokens)]))
    shorter = layout.shown(Shown(pairs=[(None, tokens[:8])]))
    assert np.array_equal(part, shorter)
    assert part.max() == 1
