"""Who is replaced, and by whose child."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league.selection import Replacement, count_victims, select, worst_first
from league.types import Member, Rating, Side

PURE = settings(deadline=None)

ARITIES = {"svd_perturb": 1, "layer_select": 2, "full_gaussian": 1}


def member(side: Side, slot: int, born: int = 0) -> Member:
    return Member(member_id=f"{side.value}_{slot}", side=side, slot=slot, born=born)


def league(n: int, m: int, seed: int = 0) -> tuple[list[Member], dict[str, Rating]]:
    rng = np.random.default_rng(seed)
    members = [member(Side.TEACHER, k) for k in range(n)] + [member(Side.STUDENT, k) for k in range(m)]
    return members, {x.member_id: Rating(mu=rng.normal(25, 8), sigma=rng.uniform(1, 8)) for x in members}


def plan(members: list[Member], ratings: dict[str, Rating], seed: int = 0, **options: Any) -> list[Replacement]:
    return select(members, ratings, ARITIES, generator=np.random.default_rng(seed), **({"step": 100} | options))


def test_bottom_is_by_the_lower_bound() -> None:
    members = [member(Side.STUDENT, k) for k in range(3)]
    ratings = {
        "student_0": Rating(mu=30.0, sigma=7.0),  # bound 9, the lowest in spite of the highest mean
        "student_1": Rating(mu=25.0, sigma=2.0),  # 19
        "student_2": Rating(mu=20.0, sigma=1.0),  # 17
    }
    assert [x.slot for x in worst_first(members, ratings, 3.0)] == [0, 2, 1]
    assert [x.slot for x in worst_first(members, ratings, 0.0)] == [2, 1, 0]


def test_ties_go_by_age_then_slot_whatever_the_order_given() -> None:
    members = [member(Side.STUDENT, 0, born=10), member(Side.STUDENT, 1), member(Side.STUDENT, 2)]
    ratings = {x.member_id: Rating(mu=25.0, sigma=8.0) for x in members}
    for order in (members, members[::-1]):
        assert [x.slot for x in worst_first(order, ratings, 3.0)] == [1, 2, 0]


@pytest.mark.parametrize(
    ("size", "fraction", "count"),
    [
        (4, 0.25, 1),
        (8, 0.25, 2),
        (7, 0.25, 1),
        (3, 0.25, 1),
        (2, 0.25, 1),
        (1, 0.25, 1),
        (1, 1.0, 1),
        (4, 1.0, 3),
        (4, 0.0, 0),
        (1, 0.0, 0),
        (0, 0.5, 0),
        (100, 0.29, 29),
        (64, 0.001, 1),
    ],
)
def test_how_many_go(size: int, fraction: float, count: int) -> None:
    assert count_victims(size, fraction) == count


@PURE
@given(st.integers(1, 8), st.integers(1, 8), st.floats(0, 1), st.integers(0, 99))
def test_victims_are_the_worst_and_parents_are_survivors_of_their_side(
    n: int, m: int, fraction: float, seed: int
) -> None:
    members, ratings = league(n, m, seed)
    replacements = plan(members, ratings, seed, fraction=fraction)
    victims = {x.victim.member_id for x in replacements}
    for side, size in ((Side.TEACHER, n), (Side.STUDENT, m)):
        order = worst_first([x for x in members if x.side is side], ratings, 1.0)
        mine = [x for x in replacements if x.victim.side is side]
        assert [x.victim for x in mine] == order[: count_victims(size, fraction)]
        for replacement in mine:
            assert all(parent.side is side for parent in replacement.parents)
            assert len(set(replacement.parents)) == ARITIES[replacement.operator] == len(replacement.parents)
            if size > 1:
                assert not {parent.member_id for parent in replacement.parents} & victims
            places = [order.index(parent) for parent in replacement.parents]
            assert places == sorted(places, reverse=True), "the better parent goes first"


def test_a_side_of_one_is_replaced_by_its_own_mutant() -> None:
    members, ratings = league(1, 1)
    for seed in range(20):
        for replacement in plan(members, ratings, seed, crossover_probability=1.0):
            assert replacement.parents == (replacement.victim,)
            assert ARITIES[replacement.operator] == 1


def test_one_survivor_mutates_only() -> None:
    members, ratings = league(2, 2)
    for seed in range(20):
        assert all(len(x.parents) == 1 for x in plan(members, ratings, seed, crossover_probability=1.0))


def test_crossover_happens_as_often_as_asked() -> None:
    members, ratings = league(4, 4)
    kinds = Counter(len(x.parents) for seed in range(400) for x in plan(members, ratings, seed))
    assert abs(kinds[2] / kinds.total() - 0.5) < 4 * (0.25 / kinds.total()) ** 0.5
    assert all(len(x.parents) == 1 for x in plan(members, ratings, crossover_probability=0.0))
    assert all(len(x.parents) == 2 for x in plan(members, ratings, crossover_probability=1.0))


def test_parents_and_operators_are_uniform() -> None:
    members, ratings = league(4, 4)
    plans = [x for seed in range(600) for x in plan(members, ratings, seed, crossover_probability=0.0)]
    for counts, ways in (
        (Counter(x.parents[0].member_id for x in plans if x.victim.side is Side.TEACHER), 3),
        (Counter(x.operator for x in plans), 2),
    ):
        assert len(counts) == ways
        share = 1 / ways
        assert all(
            abs(count / counts.total() - share) < 4 * (share * (1 - share) / counts.total()) ** 0.5
            for count in counts.values()
        )


def test_operators_are_drawn_as_often_as_their_weights_say() -> None:
    members, ratings = league(4, 4)
    weights = {"svd_perturb": 3.0, "full_gaussian": 1.0, "layer_select": 0.1}
    plans = [x for seed in range(400) for x in plan(members, ratings, seed, crossover_probability=0.5, weights=weights)]
    counts = Counter(x.operator for x in plans)
    mutants = counts["svd_perturb"] + counts["full_gaussian"]
    assert abs(counts["svd_perturb"] / mutants - 0.75) < 4 * (0.75 * 0.25 / mutants) ** 0.5
    assert abs(mutants / counts.total() - 0.5) < 4 * (0.25 / counts.total()) ** 0.5, "weights are among equal arity"
    for bad in ({"svd_perturb": 1.0}, weights | {"svd_perturb": 0.0}, weights | {"svd_perturb": math.inf}):
        with pytest.raises(ValueError, match="`weights`"):
            plan(members, ratings, weights=bad)


def test_operators_of_one_kind_are_always_used() -> None:
    members, ratings = league(4, 4)
    rng = np.random.default_rng(0)
    only_crossover = select(members, ratings, {"layer_select": 2}, generator=rng, step=100, crossover_probability=0.0)
    assert {x.operator for x in only_crossover} == {"layer_select"}
    only_mutation = select(members, ratings, {"svd_perturb": 1}, generator=rng, step=100, crossover_probability=1.0)
    assert {x.operator for x in only_mutation} == {"svd_perturb"}


def test_the_plan_depends_on_the_generator_alone() -> None:
    members, ratings = league(6, 6)
    assert plan(members, ratings, 5, fraction=0.5) == plan(members[::-1], ratings, 5, fraction=0.5)
    assert any(plan(members, ratings, 5) != plan(members, ratings, seed) for seed in range(6, 12))


def test_nobody_goes_at_fraction_zero() -> None:
    members, ratings = league(4, 1)
    assert plan(members, ratings, fraction=0.0) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fraction": 1.5}, "`fraction`"),
        ({"fraction": math.nan}, "`fraction`"),
        ({"c": -1.0}, "`c`"),
        ({"crossover_probability": 2.0}, "`crossover_probability`"),
    ],
)
def test_values_out_of_range_are_refused(options: dict[str, float], message: str) -> None:
    members, ratings = league(2, 2)
    with pytest.raises(ValueError, match=message):
        select(members, ratings, ARITIES, generator=np.random.default_rng(0), **({"step": 100} | options))


def test_unusable_operators_and_ratings_are_refused() -> None:
    members, ratings = league(2, 2)
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="`arities`"):
        select(members, ratings, {}, generator=rng, step=100)
    with pytest.raises(ValueError, match="`arities`"):
        select(members, ratings, {"triple": 3}, generator=rng, step=100)
    with pytest.raises(ValueError, match="needs a mutation"):
        select(members, ratings, {"layer_select": 2}, generator=rng, step=100)
    with pytest.raises(ValueError, match="teacher_0"):
        select(members, {}, ARITIES, generator=rng, step=100)
    with pytest.raises(ValueError, match="finite"):
        select(members, ratings | {"teacher_0": Rating(mu=math.nan, sigma=1.0)}, ARITIES, generator=rng, step=100)


def test_a_child_is_not_replaced_before_its_time() -> None:
    members = [member(Side.STUDENT, 0, born=10), member(Side.STUDENT, 1, born=5), member(Side.STUDENT, 2)]
    ratings = {
        "student_0": Rating(mu=25.0, sigma=8.0),
        "student_1": Rating(mu=25.0, sigma=6.0),
        "student_2": Rating(mu=25.0, sigma=1.0),
    }
    victims = [[r.victim.slot for r in plan(members, ratings, step=15, min_age=age)] for age in (0, 6, 11, 16)]
    assert victims == [[0], [1], [2], []]


def test_too_young_members_may_be_parents() -> None:
    members = [member(Side.STUDENT, 0, born=10), member(Side.STUDENT, 1)]
    ratings = {x.member_id: Rating(mu=25.0, sigma=8.0) for x in members}
    (replacement,) = plan(members, ratings, step=10, min_age=5)
    assert (replacement.victim.slot, [x.slot for x in replacement.parents]) == (1, [0])


def test_elites_never_go_even_when_they_alone_are_old_enough() -> None:
    members = [member(Side.STUDENT, 0), member(Side.STUDENT, 1, born=99), member(Side.STUDENT, 2, born=99)]
    ratings = {x.member_id: Rating(mu=30.0 - x.slot, sigma=1.0) for x in members}
    assert [x.victim.slot for x in plan(members, ratings, min_age=5)] == [0]
    assert plan(members, ratings, min_age=5, elites=1) == []
    assert plan(members, ratings, fraction=1.0, elites=3) == []
    assert plan(members, ratings, elites=9) == []
    with pytest.raises(ValueError, match="`elites`"):
        plan(members, ratings, elites=-1)


def test_parents_by_rank_are_drawn_by_their_place() -> None:
    """Three survivors weigh 1, 2 and 3: the best is the only parent in half of the mutations."""
    members = [member(Side.STUDENT, k) for k in range(4)]
    ratings = {x.member_id: Rating(mu=20.0 + x.slot, sigma=1.0) for x in members}
    rng = np.random.default_rng(0)
    options = {"generator": rng, "step": 9, "crossover_probability": 0.0}
    draws = 900
    seen = Counter(
        select(members, ratings, ARITIES, parents="rank", **options)[0].parents[0].slot for _ in range(draws)
    )
    for slot, share in ((1, 1 / 6), (2, 2 / 6), (3, 3 / 6)):
        assert abs(seen[slot] / draws - share) < 4 * (share * (1 - share) / draws) ** 0.5
