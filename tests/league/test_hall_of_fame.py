"""The hall of fame: who enters and stays, how often it is met, and whole leagues that meet it and go on bit for bit."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rock_paper_scissors import RockPaperScissors

from league.hall_of_fame import PastMember, admit, due, most_past_matches, past_matches, past_members, past_metrics
from league.matchmaking import pfsp_weights
from league.ratings import STANDARD, expected
from league.retention import Retention
from league.storage import StorageError, committed_steps, read_metrics, read_rows, read_table
from league.types import Match, MatchResult, Member, Rating, Side

PRIOR = STANDARD.prior


def member(name: str, version: int = 0) -> Member:
    side, _, slot = name.partition("_")
    return Member(member_id=name, side=Side(side), slot=int(slot), version=version)


def past(name: str, version: int, mu: float = PRIOR.mu) -> PastMember:
    (one,) = admit([], [member(name, version)], {name: Rating(mu=mu, sigma=1.0)}, size=1, seed=0)
    return one


LIVING = [member(name, 9) for name in ("teacher_0", "teacher_1", "student_0", "student_1", "student_2")]
RATINGS = {one.member_id: PRIOR for one in LIVING}


@pytest.mark.parametrize(
    ("matches", "share", "steps"),
    [
        (4, 0.0, [0, 0, 0, 0]),
        (4, 0.2, [1, 1, 1, 1]),  # one of five
        (4, 0.5, [4, 4, 4, 4]),
        (3, 0.25, [1, 1, 1, 1]),
        (4, 1 / 9, [0, 1, 0, 1]),  # half a match a step
        (3, 0.35, [1, 2, 1, 2]),  # 1.615 a step: 1, 3, 4, 6 in all
    ],
)
def test_the_share_is_kept_over_the_steps(matches: int, share: float, steps: list[int]) -> None:
    assert [due(step, matches, share) for step in range(1, 5)] == steps


@given(st.integers(1, 64), st.floats(0, 0.99), st.integers(1, 5000))
def test_no_step_has_more_than_there_are_slots_for(matches: int, share: float, step: int) -> None:
    assert 0 <= due(step, matches, share) <= most_past_matches(matches, share)


@pytest.mark.parametrize("share", [1.0, -0.1, float("nan")])
def test_a_share_of_all_or_less_than_none_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=r"`share` must be in \[0, 1\)"):
        due(1, 4, share)


def test_weights_that_never_played_do_not_enter_and_the_rating_is_that_of_the_first_saving() -> None:
    hall = admit([], [member("teacher_0"), member("student_0", 5)], RATINGS, size=4, seed=0)
    assert [one.name for one in hall] == ["student_0/5"]
    assert hall[0].member.frozen
    again = admit(hall, [member("student_0", 5)], {"student_0": Rating(mu=1.0, sigma=1.0)}, size=4, seed=0)
    assert again == hall
    assert [PastMember.of_row(json.loads(json.dumps(one.row()))) for one in hall] == hall


def test_a_full_hall_is_a_fair_sample_of_all_that_entered_however_they_came() -> None:
    saved = [member(f"teacher_{slot}", version) for version in range(1, 51) for slot in range(2)]
    ratings = dict.fromkeys(("teacher_0", "teacher_1", "student_0"), PRIOR)
    kept: Counter[int] = Counter()
    for seed in range(60):
        hall = admit([past("student_0", 1)], [], ratings, size=5, seed=seed)
        for one in saved:
            hall = admit(hall, [one], ratings, size=5, seed=seed)
        assert {one.name for one in hall} == {
            one.name for one in admit([past("student_0", 1)], saved, ratings, size=5, seed=seed)
        }
        versions = [one.member.version for one in hall if one.member.side is Side.TEACHER]
        assert len(versions) == 5
        assert len(hall) == 6, "sides do not push each other out"
        kept.update(version > 25 for version in versions)
    assert abs(kept[True] - 150) < 45, "300 draws, half of them late; 45 is over 5 standard deviations"


def test_matches_are_of_the_living_against_the_past_of_the_other_side() -> None:
    hall = [past("teacher_0", 3), past("teacher_1", 4, mu=30.0), past("student_7", 5)]
    matches = past_matches(
        LIVING, hall, RATINGS, count=5, step=6, first_match_id=40, generator=np.random.default_rng(0)
    )
    assert [match.match_id for match in matches] == list(range(40, 45))
    names = {one.name: one for one in hall}
    living = []
    for match in matches:
        old, new = (match.teacher, match.student) if match.teacher.frozen else (match.student, match.teacher)
        assert (match.kind, match.step, new.frozen, old.side is new.side) == ("frozen", 6, False, False)
        frozen = names[f"{old.member_id}/{old.version}"].rating
        pair = (PRIOR, frozen) if match.teacher.frozen else (frozen, PRIOR)
        assert match.expected == expected(*pair)
        living.append(new.member_id)
    assert sorted(living) == sorted(RATINGS), "five matches, five living members"
    slots = {(one.member_id, one.version): one.slot for one in past_members(matches)}
    assert sorted(slots.values()) == [0, 1, 2]
    # the member lives on beside its past, under a name of its own
    assert {one.adapter.member_id for one in past_members(matches)} == {"teacher_0@3", "teacher_1@4", "student_7@5"}


def test_even_opponents_are_drawn_most_often_unless_it_is_to_be_even() -> None:
    hall = [past("teacher_0", version, mu) for version, mu in enumerate((25.0, 40.0), start=1)]
    student = [member("student_0", 9)]

    def share(draw: Any) -> float:
        found = [
            past_matches(
                student, hall, RATINGS, count=1, step=1, first_match_id=0, generator=np.random.default_rng(n), draw=draw
            )
            for n in range(400)
        ]
        return sum(match.teacher.version == 1 for (match,) in found) / len(found)

    weights = pfsp_weights(np.array([expected(PRIOR, one.rating) for one in hall]))
    assert share("pfsp") == pytest.approx(weights[0] / weights.sum(), abs=0.07)
    assert share("uniform") == pytest.approx(0.5, abs=0.1)


def test_without_anybody_in_the_hall_there_is_no_match() -> None:
    arguments: Any = {"count": 5, "step": 1, "first_match_id": 0, "generator": np.random.default_rng(0)}
    assert past_matches(LIVING, [], RATINGS, **arguments) == ()
    only = past_matches(LIVING, [past("teacher_0", 1)], RATINGS, **arguments)
    assert {match.student.member_id for match in only} == {"student_0", "student_1", "student_2"}


def test_solve_rates_against_the_past_are_told_by_side() -> None:
    old, new = past("teacher_0", 1).member, past("student_0", 1).member
    results = [
        MatchResult(
            match=Match(match_id=0, step=1, teacher=teacher, student=student, expected=0.5, kind="frozen"),
            observed=observed,
            n_problems=1,
        )
        for teacher, student, observed in (
            (old, member("student_0", 2), 0.25),
            (old, member("student_1", 2), 0.75),
            (old, member("student_2", 2), None),
            (member("teacher_0", 2), new, 1.0),
        )
    ]
    assert past_metrics(results) == {"student/past_solve_rate": 0.5, "teacher/past_solve_rate": 1.0}
    assert past_metrics([]) == {}


PAST = {"past_opponents": 0.5, "hall_size": 3, "save_every": 2, "steps": 12, "payoff_every": 0}


def test_a_league_meets_its_past_which_neither_learns_nor_is_rated(make_league: Any) -> None:
    league, run = make_league(**PAST)
    league.run()
    matches = read_rows(run.path, "matches")
    frozen = [row for row in matches if row["kind"] == "frozen"]
    assert [row["match_id"] for row in matches] == list(range(len(matches)))
    assert len(frozen) == 4 * 10, "nobody is in the hall in the first two steps"
    rated = {row["match_id"] for row in read_rows(run.path, "ratings") if row["event"] == "update"}
    assert rated == {row["match_id"] for row in matches if row["kind"] == "train"}
    assert any("student/past_solve_rate" in line for line in read_metrics(run.path))
    for match in league._arena.seen:
        (old,) = past_members([match])
        path = run.path / "adapters" / old.member_id / str(old.version) / "logits.json"
        # it may have left the hall since, but all adapters are kept here
        assert path.is_file()
    for old in {one for match in league._arena.seen[-4:] for one in past_members([match])}:
        path = run.path / "adapters" / old.member_id / str(old.version) / "logits.json"
        held = league._arena.logits[old.adapter.member_id].tolist()
        assert held == json.loads(path.read_text()), "a past member moved"


def test_every_living_member_plays_the_living_every_step_as_without_a_past(make_league: Any) -> None:
    league, run = make_league(**PAST)
    league.run()
    trained = [row for row in read_rows(run.path, "matches") if row["kind"] == "train"]
    for step in range(1, 13):
        own = [row for row in trained if row["step"] == step]
        assert len({row["student_id"] for row in own}) == len(own) == 4
        assert len({row["teacher_id"] for row in own}) == 3
    versions = [row["student_version"] for row in trained if row["student_id"] == "student_1"]
    assert versions == list(range(len(versions))), "one version a step, whatever it played"


@pytest.mark.parametrize("stop", [3, 4, 7])
def test_a_league_with_a_past_goes_on_bit_for_bit(make_league: Any, stop: int) -> None:
    whole, all_of_it = make_league("whole", **PAST)
    whole.run()
    first, run = make_league("cut", **PAST)
    first.found()
    for step in range(1, stop + 1):
        first.step(step)
    last = run.last_state()
    second, _ = make_league("rest", **PAST)
    second.restore(run.path / "adapters", run.state_of(last))
    run.roll_back(last)
    second._recorder = run
    second.go_on()
    assert (second.ratings, second.members, second.past) == (whole.ratings, whole.members, whole.past)
    for name in ("matches", "ratings", "lineage"):
        tables = [read_table(one.path, name).drop_columns(["run_id"]) for one in (run, all_of_it)]
        assert tables[0] == tables[1]
    assert committed_steps(run.path) == list(range(13))


def test_who_may_still_be_met_is_kept_when_little_else_is(make_league: Any) -> None:
    league, run = make_league(**{**PAST, "steps": 30})
    run.retention = Retention(newest=1)
    league.found()
    for step in range(1, 31):
        league.step(step)
        saved = {f"{path.parent.name}/{path.name}" for path in (run.path / "adapters").glob("*/*")}
        assert set(league.past) <= saved
    assert len(league.past) == 6
    marker = json.loads((run.path / "commits" / "step=30.json").read_text())
    assert sorted(marker["needs"]) == sorted(league.past)
    names = {
        name.rpartition("/")[0]
        for path in run.path.glob("commits/*")
        for name in json.loads(path.read_text())["adapters"]
    }
    assert names > {f"{path.parent.name}/{path.name}" for path in (run.path / "adapters").glob("*/*")}, "others went"


def test_a_past_member_whose_file_is_lost_is_one_clear_error(make_league: Any) -> None:
    league, run = make_league(**PAST)
    league.found()
    for step in (1, 2):
        league.step(step)
    for name in league.past:
        (run.path / "adapters" / name / "logits.json").unlink()
    with pytest.raises(StorageError, match=r"cannot read an adapter that .* saved: .*No such file"):
        league.step(3)
    assert committed_steps(run.path) == [0, 1, 2]


def test_an_arena_that_is_asked_for_the_past_holds_it_beside_the_living(tmp_path: Path) -> None:
    arena = RockPaperScissors(0)
    living = [member("teacher_0"), member("student_0")]
    arena.found(living)
    arena.save_adapters([member("student_0", 3)], str(tmp_path))
    frozen = past("student_0", 3).member
    arena.recall([frozen], str(tmp_path))
    before = arena.logits["student_0"].tolist(), arena.logits["student_0@3"].tolist()
    arena.play([Match(match_id=0, step=1, teacher=living[0], student=frozen, expected=0.5, kind="frozen")], step=1)
    assert (arena.logits["student_0"].tolist(), arena.logits["student_0@3"].tolist()) == before
