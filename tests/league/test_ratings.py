"""Ratings against published TrueSkill values, and the library's faults fenced."""

from __future__ import annotations

import math
import sys
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league import ratings
from league.ratings import STANDARD, RatingConstants, decide, expected, inflate, rate
from league.types import Rating

PURE = settings(deadline=None)

PRIOR = STANDARD.prior
CHESS = RatingConstants(mu=1200.0, sigma=400.0, beta=200.0, rating_tau=4.0, draw_probability=0.03)
RATINGS = st.builds(Rating, mu=st.floats(-1e4, 1e4), sigma=st.floats(0.01, 100))


def close(rating: Rating, mu: float, sigma: float) -> bool:
    return math.isclose(rating.mu, mu, abs_tol=1e-3) and math.isclose(rating.sigma, sigma, abs_tol=1e-3)


def test_one_decisive_win_from_the_defaults() -> None:
    teacher, student, outcome = rate(PRIOR, PRIOR, 0.5, 0.75)
    assert outcome == "student"
    assert close(student, 29.396, 7.171)
    assert close(teacher, 20.604, 7.171)


def test_one_draw_from_the_defaults() -> None:
    teacher, student, outcome = rate(PRIOR, PRIOR, 0.5, 0.5)
    assert outcome == "draw"
    assert close(student, 25.0, 6.458)
    assert close(teacher, 25.0, 6.458)


def test_moser_massive_upset_draw() -> None:
    """Published with J. Moser's Skills library."""
    teacher, student, _ = rate(PRIOR, Rating(mu=50.0, sigma=12.5), 0.5, 0.5)
    assert close(teacher, 31.662, 7.137)
    assert close(student, 35.010, 7.910)


def test_moser_chess() -> None:
    """Published with J. Moser's Skills library; other constants than the standard ones."""
    teacher, student, _ = rate(
        Rating(mu=1301.0007, sigma=42.9232), Rating(mu=1188.7560, sigma=42.5570), 0.3, 0.2, constants=CHESS
    )
    assert close(teacher, 1304.782, 42.8435)
    assert close(student, 1185.038, 42.4856)


@pytest.mark.parametrize(
    ("chance", "observed", "outcome"),
    [
        (0.5, 0.51, "student"),
        (0.5, 0.49, "teacher"),
        (0.5, 0.5, "draw"),
        (0.9, 0.8, "teacher"),
        (0.1, 0.2, "student"),
        (1.0, 1.0, "draw"),
        (0.99, None, "student"),
    ],
)
def test_outcome_is_observed_against_expected(chance: float, observed: float | None, outcome: str) -> None:
    assert decide(chance, observed) == outcome


def test_expected_is_phi_of_the_standardised_gap() -> None:
    assert expected(PRIOR, PRIOR) == 0.5
    spread = math.sqrt(2 * PRIOR.sigma**2 + 2 * STANDARD.beta**2)
    above = Rating(mu=PRIOR.mu + spread, sigma=PRIOR.sigma)
    assert expected(above, PRIOR) == pytest.approx(0.8413447460685429, abs=1e-12)
    assert expected(PRIOR, above) == pytest.approx(0.15865525393145707, abs=1e-12)


@PURE
@given(RATINGS, RATINGS)
def test_expectations_of_both_sides_add_up_to_one(one: Rating, other: Rating) -> None:
    assert expected(one, other) + expected(other, one) == pytest.approx(1.0, abs=1e-12)


@PURE
@given(RATINGS, RATINGS, st.floats(0, 1), st.none() | st.floats(0, 1), st.sampled_from([0.0, 0.1, 0.9]))
def test_every_match_moves_the_means_as_its_outcome_says(
    teacher: Rating, student: Rating, chance: float, observed: float | None, draws: float
) -> None:
    constants = RatingConstants(draw_probability=draws)
    after_t, after_s, outcome = rate(teacher, student, chance, observed, constants)
    for before, after in ((teacher, after_t), (student, after_s)):
        assert math.isfinite(after.mu)
        assert 0 < after.sigma <= math.hypot(before.sigma, constants.rating_tau) * (1 + 1e-9)
    slack = 1e-6
    if outcome == "student":
        assert after_s.mu >= student.mu - slack
        assert after_t.mu <= teacher.mu + slack
    elif outcome == "teacher":
        assert after_s.mu <= student.mu + slack
        assert after_t.mu >= teacher.mu - slack
    else:
        assert abs(after_s.mu - after_t.mu) <= abs(student.mu - teacher.mu) + slack


@PURE
@given(RATINGS, RATINGS, st.floats(0.01, 0.99))
def test_sides_are_treated_alike(one: Rating, other: Rating, chance: float) -> None:
    winner_t, loser_s, _ = rate(one, other, chance, 0.0)
    loser_t, winner_s, _ = rate(other, one, chance, 1.0)
    assert (winner_t, loser_s) == (winner_s, loser_t)


def test_a_draw_where_draws_cannot_happen_does_not_inflate_sigma() -> None:
    constants = RatingConstants(draw_probability=0.0)
    teacher, student, outcome = rate(PRIOR, PRIOR, 0.5, 0.5, constants)
    assert outcome == "draw"
    # The limit of a vanishing draw margin: both performances are known to be equal, s^2 <- s^2 (1 - s^2 / c^2).
    variance = PRIOR.sigma**2 + constants.rating_tau**2
    limit = math.sqrt(variance * (1 - variance / (2 * variance + 2 * constants.beta**2)))
    for rating in (teacher, student):
        assert rating.mu == pytest.approx(25.0)
        assert rating.sigma == pytest.approx(limit, rel=1e-4)


@pytest.mark.parametrize("gap", [100.0, 240.0, 260.0, 300.0, 1e3, 1e5])
@pytest.mark.parametrize("observed", [0.2, 0.5, 0.8])
def test_large_gaps_are_rated(gap: float, observed: float) -> None:
    teacher, student, _ = rate(Rating(mu=25 + gap, sigma=2.0), Rating(mu=25.0, sigma=2.0), 0.5, observed)
    if observed < 0.5:
        assert teacher.mu == pytest.approx(25 + gap)
        assert student.mu == pytest.approx(25.0)
    else:
        # An upset, or a draw that is one: in the limit sigma^2 (1 - sigma^2 / c^2), and the gap shrinks in proportion.
        c2 = 2 * (2.0**2 + STANDARD.rating_tau**2) + 2 * STANDARD.beta**2
        share = (2.0**2 + STANDARD.rating_tau**2) / c2
        assert teacher.sigma == pytest.approx(math.sqrt((4 + STANDARD.rating_tau**2) * (1 - share)), rel=5e-3)
        assert student.mu - 25.0 == pytest.approx(share * gap, rel=0.05)
        assert student.mu - 25.0 == pytest.approx(25 + gap - teacher.mu, rel=1e-6)


def test_without_mpmath_the_gap_is_clamped(monkeypatch: pytest.MonkeyPatch) -> None:
    far, near = Rating(mu=1e4, sigma=2.0), Rating(mu=25.0, sigma=2.0)
    ratings._environment.cache_clear()
    monkeypatch.setitem(sys.modules, "mpmath", None)
    teacher, student, _ = rate(far, near, 0.5, 1.0)
    ratings._environment.cache_clear()
    assert 25.0 < student.mu < teacher.mu < 1e4
    assert student.mu - 25.0 == pytest.approx(1e4 - teacher.mu)
    assert student.sigma < near.sigma


@pytest.mark.parametrize("bad", [Rating(mu=math.nan, sigma=1.0), Rating(mu=math.inf, sigma=1.0), Rating(mu=0, sigma=0)])
def test_ratings_that_are_none_are_refused(bad: Rating) -> None:
    with pytest.raises(ValueError, match="`teacher`"):
        rate(bad, PRIOR, 0.5, 0.5)
    with pytest.raises(ValueError, match="`student`"):
        expected(bad, PRIOR)


@pytest.mark.parametrize(("chance", "observed"), [(math.nan, 0.5), (1.1, 0.5), (0.5, math.nan), (0.5, -0.1)])
def test_shares_out_of_range_are_refused(chance: float, observed: float) -> None:
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        rate(PRIOR, PRIOR, chance, observed)


@pytest.mark.parametrize(
    "bad", [{"mu": math.nan}, {"sigma": 0.0}, {"beta": -1.0}, {"rating_tau": -1.0}, {"draw_probability": 1.0}]
)
def test_bad_constants_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"`{next(iter(bad))}`"):
        RatingConstants(**bad)


def test_a_transitive_pool_is_sorted_right() -> None:
    skills = [10.0, 20.0, 30.0, 40.0]
    students = [PRIOR] * 4
    teacher = PRIOR
    for _ in range(40):
        for place, skill in enumerate(skills):
            chance = expected(students[place], teacher)
            observed = 0.5 * math.erfc((25.0 - skill) / (STANDARD.beta * 2))
            teacher, students[place], _ = rate(teacher, students[place], chance, observed)
    means = [rating.mu for rating in students]
    assert means == sorted(means)


def test_attempts_are_games_that_drift_once() -> None:
    """Three of four solved: the games go teacher, student, student, student."""
    still = RatingConstants(rating_tau=0.0)
    teacher, student, outcome = rate(PRIOR, PRIOR, 0.9, 0.75, scheme="attempts", attempts=4)
    assert outcome == "student"
    after_t, after_s, _ = rate(PRIOR, PRIOR, 0.5, 0.0)
    for _ in range(3):
        after_t, after_s, _ = rate(after_t, after_s, 0.5, 1.0, still)
    assert (teacher, student) == (after_t, after_s)


@pytest.mark.parametrize(
    ("observed", "outcome"), [(0.0, "teacher"), (0.5, "draw"), (1.0, "student"), (None, "student")]
)
def test_attempts_go_to_the_majority(observed: float | None, outcome: str) -> None:
    assert rate(PRIOR, PRIOR, 0.9, observed, scheme="attempts", attempts=4)[2] == outcome


def test_attempts_without_a_valid_problem_are_one_game() -> None:
    assert rate(PRIOR, PRIOR, 0.5, None, scheme="attempts", attempts=1) == rate(PRIOR, PRIOR, 0.5, None)


def test_attempts_tell_more_than_one_game() -> None:
    _, one, _ = rate(PRIOR, PRIOR, 0.5, 1.0)
    _, many, _ = rate(PRIOR, PRIOR, 0.5, 1.0, scheme="attempts", attempts=8)
    assert many.mu > one.mu
    assert many.sigma < one.sigma


def test_no_attempts_are_refused() -> None:
    with pytest.raises(ValueError, match="`attempts`"):
        rate(PRIOR, PRIOR, 0.5, 0.5, scheme="attempts", attempts=0)


def test_inflation_adds_variances_up_to_the_prior() -> None:
    assert inflate(Rating(mu=30.0, sigma=3.0), 4.0) == Rating(mu=30.0, sigma=5.0)
    assert inflate(Rating(mu=30.0, sigma=3.0), 40.0) == Rating(mu=30.0, sigma=STANDARD.sigma)
    assert inflate(Rating(mu=30.0, sigma=20.0), 1.0).sigma == 20.0
    assert inflate(PRIOR, 0.0) == PRIOR
    with pytest.raises(ValueError, match="`amount`"):
        inflate(PRIOR, math.nan)


def test_openskill_follows_the_plackett_luce_update() -> None:
    """By hand, Weng and Lin (2011), algorithm 4: c^2 = 2 (s^2 + beta^2), s^2 = sigma^2 + tau^2, both chances 1/2.

    mu moves by s^2 / (2 c) = 2.635; sigma^2 <- s^2 (1 - (s / c) (s / c)^2 / 4), 1 - 0.0632.
    """
    pytest.importorskip("openskill")
    teacher, student, outcome = rate(PRIOR, PRIOR, 0.5, 1.0, engine="openskill")
    assert outcome == "student"
    assert close(student, 27.635, 8.066)
    assert close(teacher, 22.365, 8.066)


@PURE
@given(RATINGS, RATINGS, st.sampled_from([0.0, 0.5, 1.0]))
def test_openskill_stays_finite_and_moves_as_the_outcome_says(
    teacher: Rating, student: Rating, observed: float
) -> None:
    pytest.importorskip("openskill")
    after_t, after_s, outcome = rate(teacher, student, 0.5, observed, engine="openskill")
    for after in (after_t, after_s):
        assert math.isfinite(after.mu)
        assert 0 < after.sigma < math.inf
    if outcome == "student":
        assert after_s.mu >= student.mu - 1e-6
        assert after_t.mu <= teacher.mu + 1e-6


@pytest.mark.parametrize("scheme", ["expected", "attempts"])
def test_a_cyclic_pool_is_not_given_an_order(scheme: Literal["expected", "attempts"]) -> None:
    """Each of three teachers beats one student, loses to another and is even with the third."""
    observed = [[0.5, 1.0, 0.0], [0.0, 0.5, 1.0], [1.0, 0.0, 0.5]]
    teachers, students = [PRIOR] * 3, [PRIOR] * 3
    for turn in range(30):
        for t in range(3):
            s = (t + turn) % 3
            chance = expected(students[s], teachers[t])
            teachers[t], students[s], _ = rate(
                teachers[t], students[s], chance, observed[t][s], scheme=scheme, attempts=4
            )
    for side in (teachers, students):
        means = [rating.mu for rating in side]
        assert max(means) - min(means) < 2 * min(rating.sigma for rating in side)
