"""Tests of `populora_env.token_game`: who writes when, what is handed to the game, and what each seat sees."""

import numpy as np
import pytest
from scripted_judge import ScriptedJudge
from token_play import ADD_ONE, input_tokens

from populora_env.config import GameConfig
from populora_env.game import Phase
from populora_env.judging import judge_attempts, judge_proposals
from populora_env.token_derivation import NOTHING_TO_DO
from populora_env.token_game import PROPOSER_SEAT, TokenGame, TokenRules
from populora_env.token_grammar import Token
from populora_env.token_observation import Shown
from populora_env.token_printing import HINT_WORDS, read_argument, read_literal
from populora_env.types import Proposal, Task

T = Token
ONE = (T.DIGIT_1,)


def make(task=Task.DEDUCTION, *, together=False, max_tokens=24, **rules):
    config = GameConfig(**{"solver_seats": 2, "tasks": (task,), "rounds": 2, "seed_problems": 8} | rules)
    return TokenGame(TokenRules(config=config, max_tokens=max_tokens, together=together), 0)


def write(game, place, tokens):
    """Have a seat choose tokens; return whether the last one finished what it wrote."""
    return [game.choose(place, token) for token in tokens][-1]


def judge(game, output="2"):
    judged = ScriptedJudge(output=output)
    judge_proposals([game.game.round], judged)
    judge_attempts([game.game.round], judged)
    return game.proceed()


def shown(game, place):
    """Return the part of a seat's vector that tells what it is shown."""
    layout = game.rules.layout
    return game.seats[place].vector[-len(layout.shown(Shown())) :]


def propose(game, value=1):
    assert write(game, PROPOSER_SEAT, [*ADD_ONE, *input_tokens(value)])
    return judge(game)


# Turns


def test_solvers_write_one_after_the_other():
    game = make()
    assert game.writing == [0]
    assert propose(game) is None
    assert game.writing == [1]
    assert write(game, 1, ONE)
    assert game.writing == [2]
    assert game.game.round.phase is Phase.ATTEMPT
    assert write(game, 2, ONE)
    assert game.game.round.phase is Phase.JUDGE_ATTEMPTS
    assert judge(game).solve_rate == 0
    assert game.writing == [0]


def test_solvers_write_together_and_are_read_in_seat_order():
    game = make(together=True)
    propose(game)
    assert game.writing == [1, 2]
    assert write(game, 2, ONE)
    assert game.writing == [1]
    assert judge(game) is None
    assert game.writing == [1]
    assert write(game, 1, (T.NEGATIVE, T.DIGIT_5))
    result = judge(game)
    assert [answer.text for answer in result.answers] == ["-5", "1"]


def test_the_last_round_ends_the_game():
    game = make(rounds=1)
    game.choose(PROPOSER_SEAT, T.NOOP)
    result = judge(game)
    assert result.proposal_verdict.status == "format"
    assert game.game.over
    assert game.writing == []
    assert all(seat.mask is NOTHING_TO_DO for seat in game.seats)
    assert not shown(game, PROPOSER_SEAT).any()


def test_what_is_not_legal_ends_the_turn_as_malformed():
    game = make()
    assert not game.choose(PROPOSER_SEAT, T.TAKES_INT)
    assert game.choose(PROPOSER_SEAT, T.DIGIT_1)
    assert judge(game).proposer_reward == -1.0
    propose(game)
    assert game.choose(1, T.NOOP)
    assert write(game, 2, ONE)
    result = judge(game)
    assert result.answers[0] is None
    assert result.solver_rewards == (-1.0, -0.5)


def test_who_waits_may_choose_anything():
    game = make()
    before = [seat.vector.copy() for seat in game.seats]
    assert not game.choose(1, T.ADD)
    assert all(np.array_equal(old, seat.vector) for old, seat in zip(before, game.seats, strict=True))
    propose(game)
    assert not game.choose(PROPOSER_SEAT, T.ADD)
    assert game.writing == [1]


# Texts


def test_proposals_are_handed_over_as_text():
    game = make(Task.ABDUCTION)
    propose(game, value=-12)
    expected = Proposal(task=Task.ABDUCTION, program="def f(x: int):\n    return x + 1", inputs=("(-12,)",))
    assert game.game.round.proposal == expected


def test_induction_proposals_are_about_the_reference():
    game = make(Task.INDUCTION)
    (reference,) = game.game.round.references
    kind, _ = read_argument(reference.inputs[0])
    values = {"int": (1, 2, 3, 40), "list": ([], [1], [2], [1, 2]), "str": ("", "a", "b", "ab")}[kind]
    assert write(game, PROPOSER_SEAT, [*input_tokens(*values), T.AT_MOST])
    proposal = game.game.round.proposal
    assert proposal.program == reference.program
    assert proposal.inputs == tuple(f"({value!r},)" for value in values)
    assert proposal.message == "at most"


@pytest.mark.parametrize(
    ("task", "tokens", "text"),
    [
        (Task.DEDUCTION, (T.MORE, T.DIGIT_1, T.DIGIT_0), "10"),
        (Task.ABDUCTION, (T.NEGATIVE, T.DIGIT_3), "(-3,)"),
    ],
)
def test_answers_are_handed_over_as_text(task, tokens, text):
    game = make(task)
    propose(game)
    write(game, 1, tokens)
    write(game, 2, ONE)
    assert game.game.round.answers[0].text == text


def test_induction_answers_are_programs_of_the_type_that_is_shown():
    game = make(Task.INDUCTION)
    reference = game.game.round.references[0]
    program = game.rules.seeds.programs[reference.program]
    values = {"int": (1, 2, 3, 4), "list": ([], [1], [2], [3]), "str": ("", "a", "b", "c")}[program.takes]
    write(game, PROPOSER_SEAT, [*input_tokens(*values), T.DIGIT_0])
    judge(game)
    write(game, 1, program.tokens[1:])  # the type of the argument is given
    write(game, 2, program.tokens[1:])
    assert [answer.text for answer in game.game.round.answers] == [program.text] * 2


@pytest.mark.parametrize("style", ["compact", "chat"])
def test_both_styles_are_written(style):
    game = make(style=style)
    propose(game)
    write(game, 1, ONE)
    write(game, 2, ONE)
    assert judge(game).problem is not None


# What is seen


def test_the_proposer_sees_its_references():
    game = make(references=2)
    first, second = game.game.round.references
    programs = game.rules.seeds.programs

    def told(problem):
        pair = (read_argument(problem.inputs[0])[1], read_literal(problem.outputs[0])[1])
        return programs[problem.program].tokens, pair

    (program, pair), other = told(first), told(second)
    expected = game.rules.layout.shown(Shown(program=program, pairs=[pair], others=[other]))
    assert np.array_equal(shown(game, PROPOSER_SEAT), expected)
    assert not shown(game, 1).any()


def test_the_proposer_of_induction_sees_the_program_alone():
    game = make(Task.INDUCTION)
    program = game.rules.seeds.programs[game.game.round.references[0].program]
    expected = game.rules.layout.shown(Shown(program=program.tokens))
    assert np.array_equal(shown(game, PROPOSER_SEAT), expected)


@pytest.mark.parametrize("task", [Task.DEDUCTION, Task.ABDUCTION])
def test_solvers_see_the_program_and_what_is_given(task):
    game = make(task)
    propose(game, value=7)
    pair = ((T.DIGIT_7,), None) if task is Task.DEDUCTION else (None, (T.DIGIT_2,))
    expected = game.rules.layout.shown(Shown(program=ADD_ONE, pairs=[pair]))
    for place in (1, 2):
        assert np.array_equal(shown(game, place), expected)
    write(game, 1, ONE)
    assert np.array_equal(shown(game, 1), expected)


def test_solvers_of_induction_see_half_of_the_pairs_and_the_hint():
    game = make(Task.INDUCTION)
    kind = game.rules.seeds.programs[game.game.round.references[0].program].takes
    values = {"int": (1, 2, 3, 4), "list": ([], [1], [2], [3]), "str": ("", "a", "b", "c")}[kind]
    write(game, PROPOSER_SEAT, [*input_tokens(*values), T.REVERSE])
    judge(game, output="9")
    given = [read_argument(f"({value!r},)")[1] for value in values[:2]]
    expected = game.rules.layout.shown(Shown(pairs=[(each, None) for each in given], hint=T.REVERSE))
    assert HINT_WORDS[T.REVERSE] == game.game.round.problem.message
    assert np.array_equal(shown(game, 1), expected)  # the judge's visible outputs, "shown", have no tokens


def test_nothing_stays_of_what_was_written():
    game = make(together=True)
    own = slice(0, len(game.seats[0].vector) - len(shown(game, 0)))
    waiting = game.seats[1].vector[own].copy()
    write(game, PROPOSER_SEAT, ADD_ONE)
    assert game.seats[PROPOSER_SEAT].vector[own].sum() > waiting.sum() + 1
    game.choose(PROPOSER_SEAT, T.DIGIT_1)
    judge(game)
    assert game.seats[PROPOSER_SEAT].vector[own].sum() == waiting.sum()
    before = game.seats[2].vector.copy()
    write(game, 1, ONE)
    assert game.seats[1].vector[own].sum() == waiting.sum()
    assert np.array_equal(game.seats[2].vector, before)


def test_too_few_tokens_are_refused_with_what_is_needed():
    with pytest.raises(ValueError, match="`max_tokens` must be at least 8 under these rules, got 7"):
        make(Task.INDUCTION, max_tokens=7)
    make(Task.INDUCTION, max_tokens=8, seed_problems=1)
