"""Payoffs: circles and lines, equilibria, alpha-rank."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rock_paper_scissors import PAYOFF

from league.payoff import Meeting, alpha_rank, cyclic_share, filled_in, payoff_matrix, payoff_metrics, solve_zero_sum

PURE = settings(deadline=None, max_examples=50)
TEACHERS, STUDENTS = ("teacher_0", "teacher_1", "teacher_2"), ("student_0", "student_1", "student_2")
CIRCLE = (PAYOFF + 1) / 2
SKILL = np.array([-2.0, 0.0, 2.0])
LINE = 1 / (1 + np.exp(-(SKILL[:, None] - SKILL[None])))


def meetings(chances: np.ndarray, n: int) -> list[Meeting]:
    return [
        Meeting(teacher_id=teacher, student_id=student, observed=float(chances[row, column]), n_problems=n)
        for row, student in enumerate(STUDENTS)
        for column, teacher in enumerate(TEACHERS)
    ]


def test_a_cyclic_pool_is_reported_as_cyclic() -> None:
    metrics = payoff_metrics(meetings(CIRCLE, 100), TEACHERS, STUDENTS)
    assert metrics["league/pairs_met"] == 1.0
    assert metrics["league/cyclic_share"] == pytest.approx(1.0)
    assert metrics["league/cyclic_noise"] < 0.1
    assert metrics["league/nash_value"] == pytest.approx(0.5)
    assert metrics["league/nash_support/teacher"] == metrics["league/nash_support/student"] == 3
    assert all(metrics[f"league/alpha_rank/{name}"] == pytest.approx(1 / 3) for name in (*TEACHERS, *STUDENTS))


def test_a_transitive_pool_is_not() -> None:
    metrics = payoff_metrics(meetings(LINE, 10_000), TEACHERS, STUDENTS)
    assert metrics["league/cyclic_share"] < 1e-4
    assert metrics["league/nash_support/teacher"] == metrics["league/nash_support/student"] == 1
    assert metrics["league/alpha_rank/student_2"] > 0.9
    assert metrics["league/alpha_rank/teacher_2"] > 0.9


def test_chance_alone_makes_about_the_share_that_is_told_beside_it() -> None:
    rng = np.random.default_rng(0)
    shares = [cyclic_share(rng.binomial(40, LINE).astype(float), np.full((3, 3), 40.0)) for _ in range(300)]
    told = [share for share in shares if share is not None]
    rest, noise = np.mean(told, axis=0)
    assert 0.5 < rest / noise < 1.5


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sharpness", [5.0, 20.0, 100.0])
def test_tables_of_many_strategies_that_are_nearly_alike_are_solved(seed: int, sharpness: float) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = np.exp(rng.normal(size=(2, 60, 3)) * sharpness)
    game = (rows / rows.sum(axis=1, keepdims=True)) @ PAYOFF @ (columns / columns.sum(axis=1, keepdims=True)).T
    solution = solve_zero_sum(game)
    assert np.max(game @ solution.column) - np.min(solution.row @ game) < 1e-5


def test_what_cannot_be_told_is_left_out() -> None:
    assert payoff_metrics([], TEACHERS, STUDENTS) == {}
    line = meetings(CIRCLE, 10)[:5]
    assert "league/cyclic_share" not in payoff_metrics(line[:3], TEACHERS, STUDENTS), "a tree has no circle"
    alone = payoff_metrics(meetings(CIRCLE, 10), TEACHERS[:1], STUDENTS[:1])
    assert "league/cyclic_share" not in alone
    assert alone["league/alpha_rank/teacher_0"] == 1.0
    assert cyclic_share(np.full((2, 2), 5.0), np.full((2, 2), 10.0)) is None, "all alike"


def test_meetings_add_up_and_strangers_are_passed_over() -> None:
    one = Meeting(teacher_id="t", student_id="s", observed=0.5, n_problems=4)
    more = Meeting(teacher_id="t", student_id="s", observed=1.0, n_problems=2)
    gone = Meeting(teacher_id="dead", student_id="s", observed=1.0, n_problems=2)
    wins, played = payoff_matrix([one, more, gone], ["t"], ["s"])
    assert (wins.item(), played.item()) == (4.0, 6.0)


def test_pairs_that_never_met_are_filled_in_by_skill() -> None:
    played = np.full((3, 3), 1e6)
    played[2, 0] = 0
    assert filled_in(LINE * played, played) == pytest.approx(LINE, abs=1e-4)


def test_equilibria_known_by_hand() -> None:
    # 2 x 2 without a saddle: v = (ad - bc) / (a + d - b - c) = (3 * 4 - 1 * 2) / 4
    nash = solve_zero_sum(np.array([[3.0, 1.0], [2.0, 4.0]]))
    assert nash.value == pytest.approx(2.5)
    assert nash.row == pytest.approx([0.5, 0.5])
    assert nash.column == pytest.approx([0.75, 0.25])
    saddle = solve_zero_sum(np.array([[1.0, 2.0], [0.0, 5.0]]))
    assert saddle.value == pytest.approx(1.0)
    assert saddle.row == pytest.approx([1, 0])
    with pytest.raises(ValueError, match="finite"):
        solve_zero_sum(np.array([[np.nan]]))


@PURE
@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 10**6), st.booleans())
def test_neither_player_can_do_better(m: int, n: int, seed: int, ties: bool) -> None:
    game = np.random.default_rng(seed).random((m, n))
    game = np.round(2 * game) / 2 if ties else game
    nash = solve_zero_sum(game)
    assert (nash.row @ game).min() == pytest.approx(nash.value)
    assert (game @ nash.column).max() == pytest.approx(nash.value)


def test_alpha_rank_of_known_games() -> None:
    pennies = np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert alpha_rank(pennies, -pennies) == pytest.approx(np.full((2, 2), 0.25))
    sexes = alpha_rank(np.array([[3.0, 0.0], [0.0, 2.0]]), np.array([[2.0, 0.0], [0.0, 3.0]]))
    assert sexes == pytest.approx(np.array([[0.5, 0.0], [0.0, 0.5]]), abs=1e-3)
    dilemma = np.array([[3.0, 0.0], [5.0, 1.0]])
    assert alpha_rank(dilemma, dilemma.T)[1, 1] > 0.999, "both defect"


def test_alpha_rank_of_two_kinds_by_hand() -> None:
    # One column: a chain of two states, left with rho(+d) and rho(-d); their ratio is e^(alpha d (population - 1)).
    ranks = alpha_rank(np.array([[0.0], [0.1]]), np.zeros((2, 1)), alpha=1.0, population=11)
    assert ranks[1, 0] / ranks[0, 0] == pytest.approx(np.exp(1.0))


def test_strong_selection_stays_finite() -> None:
    ranks = alpha_rank(CIRCLE * 1000, -CIRCLE * 1000, alpha=100.0)
    assert np.isfinite(ranks).all()
    assert ranks.sum() == pytest.approx(1.0)
