"""The rounds of a step: plan, groups, batches, and what is too long to be shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from scripted import ScriptedBackend

from league.options import PlayOptions
from league.rounds import (
    TOO_LONG,
    PlayedRound,
    Room,
    Sampling,
    judge_answers,
    judge_proposals,
    open_rounds,
    propose,
    recall_proposals,
    solve,
)
from league.types import Match, Member, Side
from populora_env.config import GameConfig, RewardConfig
from populora_env.game import seeded_buffer
from populora_env.types import Observation, Role, Status, Task

GAME = GameConfig(seed_problems=24, solver_seats=3)
PLAY = PlayOptions(groups=2, proposals=4)
SAMPLING = Sampling(seed=3, proposal_tokens=400, answer_tokens=200, temperature=0.9, top_p=0.95, stop=("never said",))


def match(number: int, step: int = 1) -> Match:
    teacher = Member(member_id=f"teacher_{number}", side=Side.TEACHER, slot=number, version=2)
    student = Member(member_id=f"student_{number}", side=Side.STUDENT, slot=number, version=5)
    return Match(match_id=10 + number, step=step, teacher=teacher, student=student, expected=0.5)


def open_some(game: GameConfig = GAME, room: Any = None, step: int = 1) -> list[PlayedRound]:
    backend = ScriptedBackend(game)
    room = room or Room(None, backend.prompt_ids, SAMPLING)
    return open_rounds([match(0, step), match(1, step)], seeded_buffer(game), game, PLAY, room, seed=3)


def test_every_teacher_gets_every_task_in_groups_that_share_their_references() -> None:
    rounds = open_some()
    assert Counter((p.match.match_id, p.round.task) for p in rounds) == {(m, t): 8 for m in (10, 11) for t in Task}
    groups: dict[str, set[Any]] = {}
    for played in rounds:
        groups.setdefault(played.group_id, set()).add(played.round.references)
    assert len(groups) == 2 * 3 * 2
    assert all(len(references) == 1 for references in groups.values())
    assert len({references.pop() for references in groups.values()}) > 6
    assert len({played.proposal_id for played in rounds}) == len(rounds)


@pytest.mark.parametrize(("problems", "dealt"), [(1, [1]), (3, [1, 1, 1]), (5, [2, 2, 1]), (6, [2, 2, 2])])
def test_a_match_of_a_cross_table_has_so_many_problems_dealt_over_the_tasks(problems: int, dealt: list[int]) -> None:
    room, buffer = Room(None, ScriptedBackend(GAME).prompt_ids, SAMPLING), seeded_buffer(GAME)
    matches = [replace(match(number), kind="cross_eval") for number in (0, 1)]
    rounds = open_rounds(matches, buffer, GAME, PLAY, room, seed=3, cross_eval_problems=problems)
    for one in matches:
        own = [played for played in rounds if played.match is one]
        assert list(Counter(played.round.task for played in own).values()) == dealt
    assert len({played.proposal_id for played in rounds}) == 2 * problems


def test_references_depend_on_the_step_and_nothing_else() -> None:
    first, again, later = ([played.round.references for played in open_some(step=step)] for step in (1, 1, 2))
    assert first == again
    assert first != later


def test_a_step_is_two_batches_and_two_calls_of_the_judge(verifier: Any) -> None:
    rounds = open_some()
    backend = ScriptedBackend(GAME)
    room = Room(None, backend.prompt_ids, SAMPLING)
    propose(rounds, backend, SAMPLING)
    judge_proposals(rounds, verifier, room)
    solve(rounds, backend, SAMPLING)
    judge_answers(rounds, verifier)
    assert all(played.round.settled for played in rounds)
    proposals, attempts = backend.batches
    valid = [played for played in rounds if played.round.problem is not None]
    assert len(proposals) == len(rounds)
    assert len(attempts) == 3 * len(valid)
    assert 0 < len(valid) < len(rounds)
    assert {played.round.task for played in valid} == set(Task)
    assert len({request.seed for request in (*proposals, *attempts)}) == len(proposals) + len(attempts)
    assert {str(request.adapter) for request in proposals} == {"teacher_0@2", "teacher_1@2"}
    assert {str(request.adapter) for request in attempts} == {"student_0@5", "student_1@5"}
    assert all(request.max_new_tokens == 400 for request in proposals)
    ways = {(request.temperature, request.top_p, request.stop) for request in (*proposals, *attempts)}
    assert ways == {(0.9, 0.95, ("never said",))}
    for played in valid:
        assert [seat.group_id for seat in played.solvers] == [played.proposal_id] * 3
        assert [seat.number for seat in played.solvers] == [0, 1, 2]
        assert {seat.member.member_id for seat in played.solvers} == {played.match.student.member_id}
    statuses = {played.round.result().proposal_verdict.status for played in rounds}
    assert {Status.OK, Status.FORMAT} <= statuses
    solved = [played.round.result().solve_rate for played in valid]
    assert any(rate == 0.0 for rate in solved)


class NoRoom(Room):
    """A base whose context is too small for any solver."""

    def __init__(self) -> None:
        """Measure nothing."""
        super().__init__(None, lambda _: (), SAMPLING)

    def fits(self, observation: Observation) -> bool:
        """Return whether it is a proposer with fewer than two references."""
        return observation.role is Role.PROPOSER and observation.prompt.count("<program>") < 2


def test_problems_that_cannot_be_shown_are_invalid_and_long_references_are_dropped(verifier: Any) -> None:
    rounds = open_some(room=NoRoom())
    assert {len(played.round.references) for played in rounds} == {1}
    backend = ScriptedBackend(GAME)
    propose(rounds, backend, SAMPLING)
    judge_proposals(rounds, verifier, NoRoom())
    solve(rounds, backend, SAMPLING)
    judge_answers(rounds, verifier)
    verdicts = [played.round.result().proposal_verdict for played in rounds]
    assert TOO_LONG in verdicts
    assert not any(verdict.ok for verdict in verdicts)
    assert {played.round.result().proposer_reward for played in rounds} == {-1.0}


def test_room_counts_prompt_and_full_answer() -> None:
    def ids(messages: Sequence[Any]) -> range:
        return range(len(messages[0].content))

    sampling = Sampling(seed=0, proposal_tokens=4, answer_tokens=6, temperature=1.0)
    room = Room(16, ids, sampling)
    played = open_some()[0]
    prompt = played.round.proposer_observation()
    short = {"prompt": "x", "task": prompt.task}
    for role, longest in ((Role.PROPOSER, 12), (Role.SOLVER, 10)):
        for size in (longest, longest + 1):
            message = type(prompt.messages[0])(role="user", content="x" * size)
            assert room.fits(Observation(role=role, messages=(message,), **short)) == (size == longest)
    with pytest.raises(ValueError, match="`answer_tokens` must be at most half"):
        Room(11, ids, sampling)


def test_before_its_proposal_a_round_has_no_proposer() -> None:
    with pytest.raises(ValueError, match="nobody has proposed"):
        _ = open_some()[0].proposer


def test_only_what_a_teacher_learns_from_is_compared_and_remembered(verifier: Any) -> None:
    game = replace(GAME, rewards=RewardConfig(repeat_penalty=0.5))
    backend = ScriptedBackend(game)
    room = Room(None, backend.prompt_ids, SAMPLING)
    proposed: dict[str, set[str]] = {}
    for kind, repeats in (("cross_eval", {None}), ("train", {None, False}), ("train", {None, True})):
        rounds = open_rounds([replace(match(0), kind=kind)], seeded_buffer(game), game, PLAY, room, seed=3)
        propose(rounds, backend, SAMPLING)
        judge_proposals(rounds, verifier, room)
        solve(rounds, backend, SAMPLING)
        judge_answers(rounds, verifier)
        recall_proposals(rounds, proposed)
        assert {played.round.result().repeated for played in rounds} >= repeats
        assert set(proposed) == (set() if kind == "cross_eval" else {"teacher_0"})
    assert {played.round.result().repeated for played in rounds} == {None, True}
