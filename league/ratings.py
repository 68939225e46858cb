"""Ratings of members by TrueSkill, with its numerical faults fenced, or by OpenSkill; the only importer of either.

Owns how one match changes two ratings. Owns no order of matches (the engine applies them by `match_id`) and no storage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import trueskill

from league.types import Rating

Outcome = Literal["student", "teacher", "draw"]
"""Who won a match."""

OutcomeScheme = Literal["expected", "attempts"]
"""What a match is worth: one game won by whoever did better than expected, or one game an attempt."""

RatingEngine = Literal["trueskill", "openskill"]
"""What computes the ratings; openskill is its Plackett-Luce model."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingRules:
    """How a league makes ratings of its matches."""

    constants: RatingConstants = STANDARD
    """The prior is the rating of founders and children."""
    engine: RatingEngine = "trueskill"
    """What computes the ratings."""
    outcome: OutcomeScheme = "expected"
    """What a match is worth."""
    attempts: int = 1
    """Attempts at each valid problem, >= 1; counts where each is a game."""
    sigma_inflation: float = 0.0
    """Standard deviation that a rating gains before each step when its member has played, >= 0."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.attempts < 1:
            raise ValueError(f"`attempts` must be at least 1, got {self.attempts!r}")
        if not (math.isfinite(self.sigma_inflation) and self.sigma_inflation >= 0):
            raise ValueError(f"`sigma_inflation` must be finite and at least 0, got {self.sigma_inflation!r}")

    def rate(
        self, teacher: Rating, student: Rating, *, expected: float, observed: float | None, n_problems: int
    ) -> tuple[Rating, Rating, Outcome]:
        """Return the ratings after one match with that many valid problems, and who won it; see `rate`."""
        return rate(
            teacher,
            student,
            expected,
            observed,
            self.constants,
            scheme=self.outcome,
            attempts=max(1, n_problems * self.attempts),
            engine=self.engine,
        )

    def decide(self, expected: float, observed: float | None) -> Outcome:
        """Return who won one match, without any ratings; see `decide`."""
        return decide(expected if self.outcome == "expected" else 0.5, observed)

    def before_step(self, rating: Rating) -> Rating:
        """Return the rating that a member which has played takes into the next step; see `inflate`."""
        return inflate(rating, self.sigma_inflation, self.constants) if self.sigma_inflation else rating


def rate(
    teacher: Rating,
    student: Rating,
    expected: float,
    observed: float | None,
    constants: RatingConstants = STANDARD,
    *,
    scheme: OutcomeScheme = "expected",
    attempts: int = 1,
    engine: RatingEngine = "trueskill",
) -> tuple[Rating, Rating, Outcome]:
    """Return the ratings of teacher and student after one match, and who won it.

    Args:
        teacher: Its rating before the match.
        student: Likewise.
        expected: p(student wins) at pairing; the outcome is judged against it, not against the present ratings.
        observed: Mean solve rate, None when no problem was valid.
        constants: Constants of the ratings.
        scheme: `expected` makes the match one game (`decide`). `attempts` makes each attempt at a valid problem one
            game that the student wins when it solved it; wins are spread evenly over the games, so that the ratings
            follow from the counts alone, the drift (`rating_tau`) comes once a match, and the outcome is the
            majority's. A match without a valid problem is one game, won by the student, under both.
        attempts: Attempts in the match, at all valid problems together, >= 1; counts under `attempts` only.
        engine: What computes the ratings.

    Raises:
        ValueError: A rating is not finite, a sigma not above 0, `attempts` below 1, or a share out of range.
        ModuleNotFoundError: The engine is not installed.
    """
    outcome = decide(expected if scheme == "expected" else 0.5, observed)
    _check(teacher, "teacher")
    _check(student, "student")
    if scheme == "expected" or observed is None:
        return *_rate_game(teacher, student, outcome, constants, engine), outcome
    if attempts < 1:
        raise ValueError(f"`attempts` must be at least 1 in a match with valid problems, got {attempts!r}")
    wins = round(observed * attempts)
    for game in range(attempts):
        winner: Outcome = "student" if (game + 1) * wins // attempts > game * wins // attempts else "teacher"
        teacher, student = _rate_game(teacher, student, winner, constants, engine)
        constants = replace(constants, rating_tau=0.0) if game == 0 else constants
    return teacher, student, outcome


def inflate(rating: Rating, amount: float, constants: RatingConstants = STANDARD) -> Rating:
    """Return the rating of a member whose weights have changed since: less sure, but no less than the prior.

    Formula: sigma <- min(sqrt(sigma^2 + amount^2), max(sigma, prior's sigma)).

    Args:
        rating: Before.
        amount: Standard deviation of what an update may do to the skill, finite, >= 0.
        constants: Constants of the ratings.

    Raises:
        ValueError: `amount` is negative or not finite.
    """
    if not (math.isfinite(amount) and amount >= 0):
        raise ValueError(f"`amount` must be finite and at least 0, got {amount!r}")
    return replace(rating, sigma=min(math.hypot(rating.sigma, amount), max(rating.sigma, constants.sigma)))


def _rate_game(
    teacher: Rating, student: Rating, outcome: Outcome, constants: RatingConstants, engine: RatingEngine
) -> tuple[Rating, Rating]:
    rate_pair = _rate_pair if engine == "trueskill" else _openskill
    if outcome == "student":
        new_student, new_teacher = rate_pair(student, teacher, drawn=False, constants=constants)
    else:
        new_teacher, new_student = rate_pair(teacher, student, drawn=outcome == "draw", constants=constants)
    return new_teacher, new_student


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


def _openskill(winner: Rating, loser: Rating, *, drawn: bool, constants: RatingConstants) -> tuple[Rating, Rating]:
    """Rate with OpenSkill, the means clamped to the same gap: beyond it, its exponentials say nothing new."""
    half = 0.5 * (winner.mu - loser.mu)
    limit = 0.5 * GAP_LIMIT * _spread(winner, loser, constants)
    half = math.copysign(min(abs(half), limit), half)
    model = _openskill_model(constants)
    pair = [[model.rating(mu=half, sigma=winner.sigma)], [model.rating(mu=-half, sigma=loser.sigma)]]
    (first,), (second,) = model.rate(pair, ranks=[0, 0 if drawn else 1])
    return (
        Rating(mu=winner.mu + (first.mu - half), sigma=first.sigma),
        Rating(mu=loser.mu + (second.mu + half), sigma=second.sigma),
    )


@lru_cache(maxsize=16)
def _openskill_model(constants: RatingConstants) -> Any:
    try:
        from openskill.models import PlackettLuce
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "`engine` openskill needs the package openskill: pip install 'populora-league[openskill]'", name="openskill"
        ) from error
    return PlackettLuce(mu=constants.mu, sigma=constants.sigma, beta=constants.beta, tau=constants.rating_tau)


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
