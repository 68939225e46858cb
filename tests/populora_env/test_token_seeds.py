"""Tests of `populora_env.token_seeds`: the problems with which token games begin."""

import pytest

from populora_env.config import GameConfig
from populora_env.token_printing import read_argument, read_hint, read_literal
from populora_env.token_seeds import seeded_buffer
from populora_env.types import Answer, Proposal, Task
from populora_env.verifier import Verifier

SMALL = GameConfig(seed_problems=24)


def test_seeds_are_the_same_for_every_game_and_told_in_tokens():
    seeds = seeded_buffer(SMALL, budget=24, room=16)
    assert seeds is seeded_buffer(GameConfig(seed_problems=24, rounds=7), budget=24, room=16)
    for task in Task:
        problems = seeds.buffer.problems(task)
        assert len(problems) == 24
        for problem in problems:
            program = seeds.programs[problem.program]
            for given, gives in zip(problem.inputs, problem.outputs, strict=True):
                assert read_argument(given)[0] is program.takes
                kind, tokens = read_literal(gives)
                assert kind is program.gives
                assert len(tokens) <= 16
            assert (problem.n_visible, len(problem.inputs)) == ((2, 4) if task is Task.INDUCTION else (0, 1))
            assert read_hint(problem.message) == 1 or task is Task.INDUCTION


def test_the_verifier_agrees_with_every_gold_value():
    """And with the normal form: a proposal's program is stored as it is printed."""
    buffer = seeded_buffer(SMALL, budget=24, room=16).buffer
    problems = [problem for task in Task for problem in buffer.problems(task)]
    proposals = [
        Proposal(task=problem.task, program=problem.program, inputs=problem.inputs, message=problem.message)
        for problem in problems
    ]
    with Verifier() as verifier:
        for problem, verdict in zip(problems, verifier.check_proposals(proposals), strict=True):
            assert verdict.verdict.ok
            assert (verdict.inputs, verdict.outputs) == (problem.inputs, problem.outputs)
        gold = {Task.DEDUCTION: lambda problem: problem.outputs[0], Task.ABDUCTION: lambda problem: problem.inputs[0]}
        gold[Task.INDUCTION] = lambda problem: problem.program
        answers = [(problem, Answer(task=problem.task, text=gold[problem.task](problem))) for problem in problems]
        assert all(verdict.ok for verdict in verifier.check_answers(answers))


def test_more_seeds_than_the_budget_has_room_for_are_refused():
    with pytest.raises(ValueError, match="`seed_problems` is 9000, but only"):
        seeded_buffer(GameConfig(seed_problems=9000), budget=5, room=1)
