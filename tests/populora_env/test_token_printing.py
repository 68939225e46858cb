"""Tests of `populora_env.token_printing`: programs as Python, literals there and back."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from token_play import derived_program

from populora_env.source import normalise
from populora_env.token_grammar import HINTS, OPERATORS, TAKES, Kind, Slot, Token
from populora_env.token_printing import (
    HINT_WORDS,
    argument_text,
    literal_value,
    print_program,
    read_argument,
    read_hint,
    read_literal,
)
from populora_env.token_seeds import run_program

T = Token
OPERANDS = {
    Slot.INT: [T.DIGIT_3],
    Slot.POSITIVE: [T.DIGIT_2],
    Slot.LETTER: [T.LETTER_B],
    Slot.STR: [T.LETTER_C],
    Slot.LIST: [T.VARIABLE_X],
    Slot.COMPARE: [T.GREATER, T.DIGIT_4],
    Slot.ITEM_OPERATOR: [T.TIMES, T.ITEM],
    Slot.ITEM_COMPARE: [T.EQUAL, T.DIGIT_1],
}
VALUES = {
    Kind.INT: st.integers(-(10**9), 10**9),
    Kind.LIST: st.lists(st.integers(-200, 200), max_size=12),
    Kind.STR: st.text("abc", max_size=15),
}
ANY_VALUE = st.sampled_from(Kind).flatmap(lambda kind: st.tuples(st.just(kind), VALUES[kind]))

EXPRESSIONS = {
    (Kind.INT, T.ADD): ("x + 3", 7, 10),
    (Kind.INT, T.SUBTRACT): ("x - 3", 7, 4),
    (Kind.INT, T.SUBTRACT_FROM): ("3 - x", 7, -4),
    (Kind.INT, T.TIMES): ("x * 3", 7, 21),
    (Kind.INT, T.DIVIDE): ("x // 2", -7, -4),
    (Kind.INT, T.MODULO): ("x % 2", 7, 1),
    (Kind.INT, T.AT_MOST): ("min(x, 3)", 7, 3),
    (Kind.INT, T.AT_LEAST): ("max(x, 3)", 7, 7),
    (Kind.INT, T.ABSOLUTE): ("abs(x)", -7, 7),
    (Kind.INT, T.CHOOSE): ("3 if x > 4 else 3", 7, 3),
    (Kind.INT, T.PAIR): ("[x, 3]", 7, [7, 3]),
    (Kind.INT, T.RANGE): ("list(range(x % 6))", 9, [0, 1, 2]),
    (Kind.INT, T.REPEAT): ("'b' * (x % 5)", -2, "bbb"),
    (Kind.LIST, T.REVERSE): ("x[::-1]", [1, 2, 3], [3, 2, 1]),
    (Kind.LIST, T.REST): ("x[1:]", [], []),
    (Kind.LIST, T.DROP_LAST): ("x[:-1]", [1, 2, 3], [1, 2]),
    (Kind.LIST, T.JOIN): ("x + x", [1, 2], [1, 2, 1, 2]),
    (Kind.LIST, T.SORT): ("sorted(x)", [2, 1], [1, 2]),
    (Kind.LIST, T.APPEND): ("x + [3]", [1], [1, 3]),
    (Kind.LIST, T.MAP): ("[i * i for i in x]", [1, -3], [1, 9]),
    (Kind.LIST, T.FILTER): ("[i for i in x if i == 1]", [1, 2, 1], [1, 1]),
    (Kind.LIST, T.LENGTH): ("len(x)", [], 0),
    (Kind.LIST, T.COUNT): ("x.count(3)", [3, 1, 3], 2),
    (Kind.LIST, T.SUM): ("sum(x)", [3, 1], 4),
    (Kind.LIST, T.LARGEST): ("max(x, default=0)", [], 0),
    (Kind.LIST, T.FIRST): ("x[0] if x else 0", [], 0),
    (Kind.STR, T.REVERSE): ("x[::-1]", "abc", "cba"),
    (Kind.STR, T.REST): ("x[1:]", "abc", "bc"),
    (Kind.STR, T.DROP_LAST): ("x[:-1]", "", ""),
    (Kind.STR, T.JOIN): ("x + 'c'", "a", "ac"),
    (Kind.STR, T.REPLACE): ("x.replace('b', 'c')", "abb", "acc"),
    (Kind.STR, T.LENGTH): ("len(x)", "ab", 2),
    (Kind.STR, T.COUNT): ("x.count('b')", "abb", 2),
    (Kind.STR, T.FIND): ("x.find('b')", "aa", -1),
    (Kind.STR, T.POSITIONS): ("[i for i, c in enumerate(x) if c == 'b']", "bab", [0, 2]),
}
"""What each operator is printed as with the operands above, an argument, and the value."""


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: f"{operator.takes}-{Token(operator.token).name}")
def test_every_operator_is_printed_and_does_what_it_says(operator):
    expression, given_value, gives = EXPRESSIONS[operator.takes, operator.token]
    operands = [token for hole in operator.holes for token in OPERANDS[hole]]
    program = print_program((TAKES[operator.takes], T.RETURN, operator.token, *operands))
    assert program.text == f"def f(x: {operator.takes}):\n    return {expression}"
    assert (program.takes, program.gives) == (operator.takes, operator.gives)
    _, literal = read_literal(repr(given_value))
    assert run_program(program, literal) == gives


def test_statements_bind_variables_in_turn():
    tokens = (T.TAKES_LIST, T.LET, T.LENGTH, T.LET, T.ADD, T.VARIABLE_Y, T.RETURN, T.CHOOSE, T.LESS, T.VARIABLE_Y)
    program = print_program((*tokens, T.VARIABLE_Z, T.DIGIT_0))
    assert program.text == "def f(x: list):\n    y = len(x)\n    z = y + y\n    return z if z < y else 0"
    assert (program.takes, program.gives) == (Kind.LIST, Kind.INT)


def test_comprehensions_may_choose_by_their_item():
    inner = (T.CHOOSE, T.GREATER, T.DIGIT_2, T.ITEM, T.DIGIT_0)
    program = print_program((T.TAKES_LIST, T.RETURN, T.MAP, *inner))
    assert program.text == "def f(x: list):\n    return [i if i > 2 else 0 for i in x]"


@given(program=derived_program())
def test_programs_are_in_normal_form(program):
    assert normalise(program.text) == program.text
    assert len(program.text.splitlines()) <= 4


@given(first=derived_program(), second=derived_program())
def test_no_two_programs_look_alike(first, second):
    assert (first.text == second.text) == (first.tokens == second.tokens)


@given(program=derived_program(), value=ANY_VALUE)
def test_programs_take_any_value_of_their_type_and_give_what_they_say(program, value):
    kind, argument = value
    if kind is program.takes:
        given_text = f"({argument!r},)"
        gives = run_program(program, read_argument(given_text)[1])
        assert type(gives).__name__ == program.gives
        found = read_literal(repr(gives))
        assert found is not None
        assert found[0] is program.gives


@given(value=ANY_VALUE)
def test_literals_there_and_back(value):
    kind, plain = value
    found = read_literal(repr(plain))
    assert found[0] is kind
    assert literal_value(found[1], kind) == plain
    assert read_argument(argument_text(found[1], kind)) == found
    assert ast.literal_eval(argument_text(found[1], kind)) == (plain,)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("0", [T.DIGIT_0]),
        ("-7", [T.NEGATIVE, T.DIGIT_7]),
        ("120", [T.MORE, T.DIGIT_1, T.MORE, T.DIGIT_2, T.DIGIT_0]),
        ("[]", [T.DIGIT_0]),
        ("[5, -1]", [T.DIGIT_2, T.DIGIT_5, T.NEGATIVE, T.DIGIT_1]),
        ("[1, 2, 3, 4]", [T.MORE, T.DIGIT_1, T.DIGIT_2, T.DIGIT_3, T.DIGIT_1, T.DIGIT_4]),
        ("'abcabc'", [T.MORE, *([T.LETTER_A, T.LETTER_B, T.LETTER_C, T.DIGIT_3] * 2)[:-1]]),
    ],
)
def test_literals_are_spelt_as_told(text, tokens):
    assert read_literal(text)[1] == tuple(tokens)


@pytest.mark.parametrize("text", ["", "shown", "None", "True", "1.0", "'d'", "[[1]]", "[True]", "(1,)", "'", "x" * 999])
def test_what_the_grammar_cannot_write_has_no_tokens(text):
    assert read_literal(text) is None
    assert read_argument(f"({text},)") is None


@pytest.mark.parametrize("text", ["", "1", "()", "(1, 2)", "(1,", "1,)"])
def test_what_is_no_tuple_of_one_value_has_no_tokens(text):
    assert read_argument(text) is None


def test_hints_are_words_there_and_back():
    assert HINT_WORDS[T.AT_MOST] == "at most"
    assert HINT_WORDS[T.DIGIT_0] == ""
    for token in (*HINTS, T.DIGIT_0):
        assert read_hint(HINT_WORDS[token]) == token
    assert read_hint("something else") == T.DIGIT_0
