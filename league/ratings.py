"""TrueSkill ratings of members, with the library's numerical faults fenced; the only importer of trueskill.

Owns how one match changes two ratings. Owns no order of matches (the engine applies them by `match_id`) and no storage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import trueskill

from league.types import Rating

Outcome = Literal["student", "teacher", "draw"]
"""Who won a match."""

GAP_LIMIT = 30.0
"""Largest gap of the means, in standard deviations of the difference of performances, that double precision rates well.

Beyond about 37 the density underflows: trueskill raises, and shortly before that returns a wrong sigma in silence.
"""

DRAW_FLOOR = 1e-3
"""A draw is rated as if draws had at least this probability; at 0 trueskill inflates sigma instead of shrinking it.

The limit of small probabilities is to know both performances equal, which this is within 1e-4 of; its own erfc is too
coarse to come closer.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingConstants:
    """TrueSkill's constants; the defaults are the standard ones."""

    mu: float = 25.0
    """Prior mean, finite."""
    sigma: float = 25.0 / 3.0
    """Prior standard deviation, > 0."""
    beta: float = 25.0 / 6.0
    """Standard deviation of a performance around the skill, > 0."""
    rating_tau: float = 25.0 / 300.0
    """Standard deviation of the drift of a skill between two matches, >= 0."""
    draw_probability: float = 0.1
    """Share of draws between equals, in [0, 1)."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not math.isfinite(self.mu):
            raise ValueError(f"`mu` must be finite, got {self.mu!r}")
        for name in ("sigma", "beta"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"`{name}` must be finite and above 0, got {value!r}")
        if not (math.isfinite(self.rating_tau) and self.rating_tau >= 0):
            raise ValueError(f"`rating_tau` must be finite and at least 0, got {self.rating_tau!r}")
        if not 0 <= self.draw_probability < 1:
            raise ValueError(f"`draw_probability` must be in [0, 1), got {self.draw_probability!r}")

    @property
    def prior(self) -> Rating:
        """The rating of a founder and of a newborn child."""
        return Rating(mu=self.mu, sigma=self.sigma)


STANDARD = RatingConstants()


def expected(student: Rating, teacher: Rating, constants: RatingConstants = STANDARD) -> float:
    """Return the probability that the student wins.

    Formula: Phi((mu_s - mu_t) / sqrt(sigma_s^2 + sigma_t^2 + 2 beta^2)) (docs/paper.md, One training step, 1).

    Raises:
        ValueError: A rating is not finite, or its sigma not above 0.
    """
    _check(student, "student")
    _check(teacher, "teacher")
    return 0.5 * math.erfc((teacher.mu - student.mu) / (_spread(student, teacher, constants) * math.sqrt(2.0)))


def decide(expected: float, observed: float | None) -> Outcome:
    """Return who won under the `expected` scheme.

    Args:
        expected: p(student wins) at pairing, in [0, 1].
        observed: Mean solve rate over the valid problems, in [0, 1]; None when the teacher made none.

    Returns:
        The student when it solved more than expected or was given nothing to solve, the teacher when it solved
        less, else a draw.

    Raises:
        ValueError: A value is out of range, NaN included.
    """
    if not 0 <= expected <= 1:
        raise ValueError(f"`expected` must be in [0, 1], got {expected!r}")
    if observed is None:
        return "student"
    if not 0 <= observed <= 1:
        raise ValueError(f"`observed` must be in [0, 1] or None, got {observed!r}")
    if observed == expected:
        return "draw"
    return "student" if observed > expected else "teacher"


def rate(
    teacher: Rating,
    student: Rating,
    expected: float,
    observed: float | None,
    constants: RatingConstants = STANDARD,
) -> tuple[Rating, Rating, Outcome]:
    """Return the ratings of teacher and student after one match, and who won it.

    Args:
        teacher: Its rating before the match.
        student: Likewise.
        expected: p(student wins) at pairing; the outcome is judged against it, not against the present ratings.
        observed: Mean solve rate, None when no problem was valid.
        constants: TrueSkill's constants.

    Raises:
        ValueError: A rating is not finite, a sigma not above 0, or a share out of range.
    """
    outcome = decide(expected, observed)
    _check(teacher, "teacher")
    _check(student, "student")
    if outcome == "student":
        new_student, new_teacher = _rate_pair(student, teacher, drawn=False, constants=constants)
    else:
        new_teacher, new_student = _rate_pair(teacher, student, drawn=outcome == "draw", constants=constants)
    return new_teacher, new_student, outcome


def _check(rating: Rating, name: str) -> None:
    if not (math.isfinite(rating.mu) and math.isfinite(rating.sigma) and rating.sigma > 0):
        raise ValueError(f"`{name}` must have a finite mu and a finite sigma above 0, got {rating!r}")


def _spread(one: Rating, other: Rating, constants: RatingConstants) -> float:
    return math.sqrt(one.sigma**2 + other.sigma**2 + 2 * constants.beta**2)


def _rate_pair(winner: Rating, loser: Rating, *, drawn: bool, constants: RatingConstants) -> tuple[Rating, Rating]:
    """Rate in double precision; where that is not enough with mpmath; where that fails too, with the gap clamped."""
    limit = GAP_LIMIT * _spread(winner, loser, constants)
    if abs(winner.mu - loser.mu) <= limit:
        rated = _trueskill(winner, loser, drawn=drawn, constants=constants, backend=None)
    else:
        rated = _trueskill(winner, loser, drawn=drawn, constants=constants, backend="mpmath")
    return rated or _rate_clamped(winner, loser, drawn=drawn, constants=constants)


def _trueskill(
    winner: Rating, loser: Rating, *, drawn: bool, constants: RatingConstants, backend: str | None
) -> tuple[Rating, Rating] | None:
    """Return trueskill's ratings, or None when its arithmetic or the backend is not up to the pair."""
    try:
        environment = _environment(constants, drawn, backend)
        pair = environment.rate([(_foreign(winner),), (_foreign(loser),)], ranks=[0, 0 if drawn else 1])
    except (ImportError, ArithmeticError):
        return None
    first, second = (Rating(mu=group[0].mu, sigma=group[0].sigma) for group in pair)
    usable = all(math.isfinite(r.mu) and math.isfinite(r.sigma) and r.sigma > 0 for r in (first, second))
    return (first, second) if usable else None


def _rate_clamped(winner: Rating, loser: Rating, *, drawn: bool, constants: RatingConstants) -> tuple[Rating, Rating]:
    """Rate as if the means lay no further apart than the limit, and move the true means by as much."""
    half = 0.5 * GAP_LIMIT * _spread(winner, loser, constants)
    half = math.copysign(min(half, 0.5 * abs(winner.mu - loser.mu)), winner.mu - loser.mu)
    near = (Rating(mu=half, sigma=winner.sigma), Rating(mu=-half, sigma=loser.sigma))
    rated = _trueskill(*near, drawn=drawn, constants=constants, backend=None)
    if rated is None:
        raise ArithmeticError(f"trueskill cannot rate {winner!r} against {loser!r} with {constants!r}")
    return (
        Rating(mu=winner.mu + (rated[0].mu - half), sigma=rated[0].sigma),
        Rating(mu=loser.mu + (rated[1].mu + half), sigma=rated[1].sigma),
    )


def _foreign(rating: Rating) -> trueskill.Rating:
    return trueskill.Rating(mu=rating.mu, sigma=rating.sigma)


@lru_cache(maxsize=16)
def _environment(constants: RatingConstants, drawn: bool, backend: str | None) -> trueskill.TrueSkill:
    draw_probability = constants.draw_probability
    return trueskill.TrueSkill(
        mu=constants.mu,
        sigma=constants.sigma,
        beta=constants.beta,
        tau=constants.rating_tau,
        draw_probability=max(draw_probability, DRAW_FLOOR) if drawn else draw_probability,
        backend=backend,
    )
