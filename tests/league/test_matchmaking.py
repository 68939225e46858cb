"""Prioritised fictitious self-play: who meets whom."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league.matchmaking import (
    CROSS_EVAL_IDS,
    SchemeName,
    cross_table,
    make_matches,
    pair,
    pfsp_weights,
    with_floor,
)
from league.ratings import expected
from league.types import Match, Member, Rating, Side

PURE = settings(deadline=None)

SIZES = st.integers(1, 9)


def side(which: Side, size: int) -> list[Member]:
    return [Member(member_id=f"{which.value}_{n}", side=which, slot=n, version=n) for n in range(size)]


def population(n: int, m: int, seed: int) -> tuple[list[Member], list[Member], dict[str, Rating]]:
    rng = np.random.default_rng(seed)
    teachers, students = side(Side.TEACHER, n), side(Side.STUDENT, m)
    ratings = {x.member_id: Rating(mu=rng.normal(25, 8), sigma=rng.uniform(1, 8)) for x in (*teachers, *students)}
    return teachers, students, ratings


def matched(n: int, m: int, seed: int) -> tuple[Match, ...]:
    teachers, students, ratings = population(n, m, seed)
    return make_matches(
        teachers, students, ratings, step=3, first_match_id=10, generator=np.random.default_rng(seed + 1)
    )


def test_weights_are_p_times_one_minus_p() -> None:
    assert pfsp_weights(np.array([0.0, 0.1, 0.5, 1.0])).tolist() == pytest.approx([0.0, 0.09, 0.25, 0.0])


@PURE
@given(SIZES, SIZES, st.integers(0, 999))
def test_every_member_plays_and_nobody_much_more_than_others(n: int, m: int, seed: int) -> None:
    matches = matched(n, m, seed)
    assert len(matches) == max(n, m)
    for size, counts in (
        (n, Counter(match.teacher.member_id for match in matches)),
        (m, Counter(match.student.member_id for match in matches)),
    ):
        assert len(counts) == size
        assert max(counts.values()) - min(counts.values()) <= 1


@PURE
@given(SIZES, SIZES, st.integers(0, 999))
def test_same_generator_same_matches(n: int, m: int, seed: int) -> None:
    assert matched(n, m, seed) == matched(n, m, seed)


def test_matches_say_what_was_known_at_pairing() -> None:
    teachers, students, ratings = population(3, 2, 0)
    matches = make_matches(teachers, students, ratings, step=3, first_match_id=10, generator=np.random.default_rng(1))
    assert [match.match_id for match in matches] == [10, 11, 12]
    assert [match.teacher for match in matches] == teachers
    for match in matches:
        assert (match.step, match.kind) == (3, "train")
        assert match.expected == expected(ratings[match.student.member_id], ratings[match.teacher.member_id])


def test_the_larger_side_chooses() -> None:
    matches = matched(2, 5, 0)
    assert [match.student.slot for match in matches] == [0, 1, 2, 3, 4]


def test_a_single_chooser_meets_opponents_by_weight() -> None:
    """Chances 0.5 and 0.1 weigh 0.25 and 0.09: the first is met in 0.25 / 0.34 of the draws."""
    rng = np.random.default_rng(0)
    weights = pfsp_weights(np.array([[0.5, 0.1]]))
    draws = 4000
    share = sum(pair(weights, rng)[0] == 0 for _ in range(draws)) / draws
    expected_share = 0.25 / 0.34
    assert abs(share - expected_share) < 4 * (expected_share * (1 - expected_share) / draws) ** 0.5


def test_no_chooser_is_always_left_with_the_rest() -> None:
    rng = np.random.default_rng(0)
    weights = np.array([[1.0, 0.0], [1.0, 0.0]])
    first = Counter(pair(weights, rng)[0] for _ in range(400))
    assert 150 < first[0] < 250


@pytest.mark.parametrize("weights", [np.zeros((3, 3)), np.full((3, 3), 5e-324), np.full((3, 3), 1e308)])
def test_hopeless_and_extreme_weights_still_pair_everybody(weights: np.ndarray) -> None:
    assert sorted(pair(weights, np.random.default_rng(0))) == [0, 1, 2]


def test_an_opponent_without_weight_is_met_only_when_nobody_else_is_left() -> None:
    for seed in range(50):
        assert pair(np.array([[0.0, 1.0, 0.0]]), np.random.default_rng(seed)) == [1]


def test_a_newcomer_is_not_starved() -> None:
    """The argmax of quality would never choose it; p (1 - p) of a wide rating is close to 1/4."""
    _, students, ratings = population(1, 3, 0)
    ratings = {name: Rating(mu=25.0, sigma=1.0) for name in ratings} | {"student_2": Rating(mu=20.0, sigma=25 / 3)}
    rng = np.random.default_rng(0)
    seen = Counter(
        pair(pfsp_weights(np.array([[expected(ratings[s.member_id], ratings["teacher_0"]) for s in students]])), rng)[0]
        for _ in range(300)
    )
    assert seen[2] > 60


@pytest.mark.parametrize("bad", [np.array([[np.nan]]), np.array([[-1.0]]), np.array([[np.inf]])])
def test_weights_that_are_none_are_refused(bad: np.ndarray) -> None:
    with pytest.raises(ValueError, match="`weights`"):
        pair(bad, np.random.default_rng(0))


def test_empty_sides_and_missing_ratings_are_refused() -> None:
    teachers, students, ratings = population(2, 2, 0)
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="each side"):
        make_matches([], students, ratings, step=0, first_match_id=0, generator=rng)
    with pytest.raises(ValueError, match="empty pool"):
        pair(np.zeros((1, 0)), rng)
    del ratings["student_1"]
    with pytest.raises(ValueError, match="student_1"):
        make_matches(teachers, students, ratings, step=0, first_match_id=0, generator=rng)


def test_the_floor_mixes_with_even_chances() -> None:
    weights = np.array([[0.0, 3.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    assert with_floor(weights, 0.2).tolist() == [pytest.approx([0.05, 0.65, 0.25, 0.05]), pytest.approx([0.25] * 4)]


@pytest.mark.parametrize("scheme", ["pfsp", "uniform", "round_robin", "latest"])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 3), (5, 2), (4, 4), (64, 64)])
def test_under_every_scheme_everybody_plays(scheme: SchemeName, n: int, m: int) -> None:
    teachers, students, ratings = population(n, m, 0)
    for step in range(3):
        rng = np.random.default_rng(step)
        matches = make_matches(
            teachers, students, ratings, step=step, first_match_id=0, generator=rng, scheme=scheme, exploration=0.1
        )
        assert len(matches) == max(n, m)
        assert {match.teacher.slot for match in matches} == set(range(n))
        assert {match.student.slot for match in matches} == set(range(m))


@pytest.mark.parametrize(("n", "m"), [(3, 3), (5, 2), (2, 5)])
def test_round_robin_meets_all_alike_and_latest_always_the_same(n: int, m: int) -> None:
    teachers, students, ratings = population(n, m, 0)
    met: dict[SchemeName, Counter[tuple[int, int]]] = {"round_robin": Counter(), "latest": Counter()}
    for scheme, counts in met.items():
        for step in range(1, 1 + min(n, m)):
            rng = np.random.default_rng(step)
            matches = make_matches(
                teachers, students, ratings, step=step, first_match_id=0, generator=rng, scheme=scheme
            )
            counts.update((match.teacher.slot, match.student.slot) for match in matches)
    assert len(met["round_robin"]) == n * m
    assert set(met["round_robin"].values()) == {1}
    assert len(met["latest"]) == max(n, m)
    assert all(teacher % min(n, m) == student % min(n, m) for teacher, student in met["latest"])


@pytest.mark.parametrize("bad", [-0.1, 1.1, np.nan])
def test_an_exploration_that_is_no_share_is_refused(bad: float) -> None:
    teachers, students, ratings = population(2, 2, 0)
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="`exploration`"):
        make_matches(teachers, students, ratings, step=0, first_match_id=0, generator=rng, exploration=bad)


def test_a_cross_table_has_every_pair_and_ids_of_its_own() -> None:
    teachers, students, ratings = population(2, 3, 0)
    tables = [cross_table(teachers, students, ratings, step=step, table=table) for table, step in enumerate((5, 10))]
    for table in tables:
        assert {(one.teacher.member_id, one.student.member_id) for one in table} == {
            (teacher.member_id, student.member_id) for teacher in teachers for student in students
        }
        assert all(one.learners == () for one in table)
        assert all(
            one.expected == expected(ratings[one.student.member_id], ratings[one.teacher.member_id]) for one in table
        )
    assert [one.match_id for table in tables for one in table] == list(range(CROSS_EVAL_IDS, CROSS_EVAL_IDS + 12))
