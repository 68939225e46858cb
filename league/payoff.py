"""What a table of win rates says that ratings cannot: who beats whom, in circles or in a line.

Owns the payoff matrix of students against teachers and what is computed of it. Owns no matches and no ratings.

Symbols: S students, T teachers; P float64 [S, T], p(student wins), the mean solve rate, with a sigmoid between it and
log-odds. The game read off P is zero-sum: the student is paid P, the teacher 1 - P. That is the game of the ratings,
not of the rewards (a teacher is rewarded for problems that are neither too hard nor too easy).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]

MAX_PROFILES = 1024
"""Alpha-rank is left out where S x T is larger: its chain has as many states, and takes the cube of it."""

_SUPPORT = 1e-6
"""Smallest share of a mixed strategy that counts as played."""
_PIVOT, _TIE = 1e-9, 1e-12
"""Numbers below the first count as 0 in the simplex method, ratios closer than the second as equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """What one match says."""

    teacher_id: str
    student_id: str
    observed: float
    """Mean solve rate, in [0, 1]."""
    n_problems: int
    """How many problems it is the mean of, >= 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Equilibrium:
    """A solution of a zero-sum game."""

    value: float
    """What the row player gets."""
    row: Matrix
    """Mixed strategy of the row player, who maximises."""
    column: Matrix
    """Mixed strategy of the column player, who minimises."""


def payoff_metrics(meetings: Iterable[Meeting], teachers: Sequence[str], students: Sequence[str]) -> dict[str, float]:
    """Return what the meetings of the present members say, by name; what cannot be told is left out.

    - `league/pairs_met`: share of the pairs that met;
    - `league/cyclic_share`, `league/cyclic_noise`: see `cyclic_share`;
    - `league/nash_value`, `league/nash_support/SIDE`: of the equilibrium, see `solve_zero_sum`;
    - `league/alpha_rank/MEMBER`: share of time in which the evolutionary chain has the member, 1 in all on each side.
    """
    wins, played = payoff_matrix(meetings, teachers, students)
    if not played.any():
        return {}
    metrics = {"league/pairs_met": float(np.mean(played > 0))}
    # A pair that never met may be the one that closes a circle: no share rather than one that says there is none.
    share = cyclic_share(wins, played) if played.all() else None
    if share is not None:
        metrics |= {"league/cyclic_share": share[0], "league/cyclic_noise": share[1]}
    filled = filled_in(wins, played)
    nash = solve_zero_sum(filled)
    metrics["league/nash_value"] = nash.value
    metrics["league/nash_support/student"] = float(np.sum(nash.row > _SUPPORT))
    metrics["league/nash_support/teacher"] = float(np.sum(nash.column > _SUPPORT))
    if filled.size <= MAX_PROFILES:
        profiles = alpha_rank(filled, 1 - filled)
        for names, shares in ((students, profiles.sum(axis=1)), (teachers, profiles.sum(axis=0))):
            metrics |= {f"league/alpha_rank/{name}": float(one) for name, one in zip(names, shares, strict=True)}
    return metrics


def payoff_matrix(
    meetings: Iterable[Meeting], teachers: Sequence[str], students: Sequence[str]
) -> tuple[Matrix, Matrix]:
    """Return problems solved and problems played, float64 [S, T] each; meetings of others are passed over."""
    rows = {name: place for place, name in enumerate(students)}
    columns = {name: place for place, name in enumerate(teachers)}
    wins, played = np.zeros((len(rows), len(columns))), np.zeros((len(rows), len(columns)))
    for one in meetings:
        if one.student_id in rows and one.teacher_id in columns:
            place = rows[one.student_id], columns[one.teacher_id]
            wins[place] += one.observed * one.n_problems
            played[place] += one.n_problems
    return wins, played


def cyclic_share(wins: Matrix, played: Matrix) -> tuple[float, float] | None:
    """Return how much of what sets the pairs apart no order of the members explains, and how much chance alone would.

    A league of two sides is a bipartite graph; the flow on an edge is the log-odds that the student wins. Its Hodge
    decomposition is a gradient (skill of the student less skill of the teacher, the model of the ratings) and a rest,
    which turns in circles: a bipartite graph has no triangles, so all of the rest is harmonic. The share is |rest|^2
    over |flow less its mean|^2, weighted by problems played: 0 in a pool that skill explains, 1 in one where every
    member is as good as every other on average.

    Args:
        wins: Problems solved, [S, T]; parts count.
        played: Problems played, [S, T]; 0 where the two never met.

    Returns:
        The share, and what it would be on average if the gradient were the truth and each problem a fair draw from it
        (at most 1). None where there is nothing to explain, or no circle among the pairs that met.

    Source: Jiang, Lim, Yao, Ye, "Statistical ranking and combinatorial Hodge theory", 2011; log-odds as in Balduzzi et
    al., "Open-ended learning in symmetric zero-sum games", 2019.
    """
    met = played > 0
    flow, weight = _log_odds(wins, played)[met], played[met]
    design = _design(met)
    root = np.sqrt(weight)
    fit, _, place, _ = np.linalg.lstsq(design * root[:, None], flow * root, rcond=None)
    freedom = len(flow) - int(place)
    total = float(np.sum(weight * np.square(flow - np.average(flow, weights=weight))))
    if freedom < 1 or total < 1e-12:
        return None
    gradient = design @ fit
    rest = float(np.sum(weight * np.square(flow - gradient)))
    chance = 1 / (1 + np.exp(-gradient))
    # By the delta method the log-odds of n draws vary by 1 / (n p (1 - p)): n times that is left in a weighted square.
    noise = freedom * float(np.mean(1 / (chance * (1 - chance))))
    return rest / total, min(1.0, noise / total)


def filled_in(wins: Matrix, played: Matrix) -> Matrix:
    """Return P, [S, T]: the observed mean where two met, else what the gradient (see `cyclic_share`) says."""
    met = played > 0
    root = np.sqrt(played[met])
    flow = _log_odds(wins, played)[met]
    fit = np.linalg.lstsq(_design(met) * root[:, None], flow * root, rcond=None)[0]
    guess = 1 / (1 + np.exp(-(_design(np.ones_like(met)) @ fit).reshape(met.shape)))
    filled: Matrix = np.where(met, wins / np.maximum(played, 1), guess)
    return filled


def solve_zero_sum(payoff: Matrix) -> Equilibrium:
    """Return an equilibrium of a zero-sum game by the simplex method.

    Args:
        payoff: float64 [m, n], finite; what the row player gets of the column player.

    Raises:
        ValueError: Empty or not finite.

    With the payoffs raised to be positive, the linear program max sum(y), A y <= 1, y >= 0 has value 1 / v; y v is the
    column player's strategy and the dual's solution times v the row player's. Source: von Neumann; Dantzig 1951.
    Numbers stay sound by Dantzig's rule and, among equal rows, the largest pivot; should that turn in circles, Bland's
    rule takes over, which cannot.
    """
    if payoff.ndim != 2 or not payoff.size or not np.isfinite(payoff).all():
        raise ValueError(f"`payoff` must be a finite matrix that is not empty, got shape {payoff.shape}")
    m, n = payoff.shape
    lift = 1.0 - float(payoff.min())
    tableau = np.zeros((m + 1, n + m + 1))
    tableau[:m, :n], tableau[:m, n : n + m], tableau[:m, -1] = payoff + lift, np.eye(m), 1.0
    tableau[m, :n] = -1.0
    basis = np.arange(n, n + m)
    pivots = 0
    while len(entering := np.flatnonzero(tableau[m, :-1] < -_PIVOT)):
        pivots += 1
        dantzig = pivots < 20 * (m + n)
        chosen = entering[np.argmin(tableau[m, entering])] if dantzig else entering[0]
        column = tableau[:m, chosen]
        able = np.flatnonzero(column > _PIVOT)
        ratios = tableau[able, -1] / column[able]
        best = able[ratios <= ratios.min() + _TIE]
        pivot = best[np.argmax(column[best])] if dantzig else best[np.argmin(basis[best])]
        tableau[pivot] /= tableau[pivot, chosen]
        others = tableau[:, chosen].copy()
        others[pivot] = 0.0
        tableau -= others[:, None] * tableau[pivot]
        tableau[:m, -1] = np.maximum(tableau[:m, -1], 0.0)
        basis[pivot] = chosen
    solution = np.zeros(n + m)
    solution[basis] = tableau[:m, -1]
    row, column = np.maximum(tableau[m, n : n + m], 0.0), np.maximum(solution[:n], 0.0)
    return Equilibrium(value=1 / float(tableau[m, -1]) - lift, row=row / row.sum(), column=column / column.sum())


def alpha_rank(row_payoff: Matrix, column_payoff: Matrix, *, alpha: float = 10.0, population: int = 50) -> Matrix:
    """Return the stationary distribution over the pairs of a two-population game, float64 [m, n].

    Each population is of one kind; a mutant of another kind appears in one of them and takes over with the probability
    rho = (1 - e^(-alpha d)) / (1 - e^(-alpha population d)), d its gain over the residents, 1 / population for d = 0.

    Args:
        row_payoff: float64 [m, n], the row population's.
        column_payoff: float64 [m, n], the column population's.
        alpha: Strength of selection, > 0.
        population: Members of each population, >= 2.

    Source: Omidshafiei et al., "alpha-Rank: multi-agent evaluation by evolution", 2019, eqs. 9-13.
    """
    m, n = row_payoff.shape
    chain = np.zeros((m, n, m, n))
    for i in range(m):
        for j in range(n):
            chain[i, j, :, j] += _fixation(row_payoff[:, j] - row_payoff[i, j], alpha, population)
            chain[i, j, i, :] += _fixation(column_payoff[i] - column_payoff[i, j], alpha, population)
    moves = chain.reshape(m * n, m * n)
    np.fill_diagonal(moves, 0.0)
    return _stationary(moves / max(1, m + n - 2)).reshape(m, n)


def _fixation(gain: Matrix, alpha: float, population: int) -> Matrix:
    # e^-500 is far from 0 in float64: every state can still be left, and there is one stationary distribution.
    power = np.clip(-alpha * gain, -500 / population, 500 / population)
    even = np.abs(power) < 1e-9
    safe = np.where(even, 1.0, power)
    chances: Matrix = np.where(even, 1 / population, np.expm1(safe) / np.expm1(population * safe))
    return chances


def _stationary(chain: Matrix) -> Matrix:
    """Return the stationary distribution by the GTH algorithm: no subtraction, so tiny chances keep their digits."""
    work = chain.copy()
    for last in range(len(work) - 1, 0, -1):
        work[:last, last] /= work[last, :last].sum()
        work[:last, :last] += work[:last, last, None] * work[None, last, :last]
    shares = np.zeros(len(work))
    shares[0] = 1.0
    for state in range(1, len(work)):
        shares[state] = np.sum(shares[:state] * work[:state, state])
        shares /= shares.sum()
    return shares


def _log_odds(wins: Matrix, played: Matrix) -> Matrix:
    """Return empirical log-odds, finite even where all or none was solved."""
    odds: Matrix = np.log((wins + 0.5) / (played - wins + 0.5))
    return odds


def _design(met: npt.NDArray[np.bool_]) -> Matrix:
    """Return the gradient's matrix: +1 for the student and -1 for the teacher of each pair that met."""
    student, teacher = np.nonzero(met)
    design = np.zeros((len(student), sum(met.shape)))
    design[np.arange(len(student)), student] = 1.0
    design[np.arange(len(student)), met.shape[0] + teacher] = -1.0
    return design
