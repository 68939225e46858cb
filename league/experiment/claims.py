"""The paper's claims, and what was asked after them, each as a number a seed and what it should be.

Owns which series of which arms a claim is about. Pure. A claim whose arms have not run on a seed has no number of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from league import seeds
from league.experiment.arms import FOLLOW_UP_SEEDS
from league.experiment.statistics import Interval, Verdict, interval, late_growth, rise, slow_excess, swings, verdict
from league.experiment.summary import Record

Runs = Mapping[tuple[str, int], Record]
"""Records by arm and seed."""
Number = Callable[[Record], float | None]
"""One number of one run; None where the run does not have it."""

Where = Literal["above", "below"]
RATIO = "times"
"""Unit of claims that compare two arms by their quotient."""
POPULATION, PAIR, SINGLE, TOTAL = "4T+4S", "1T+1S", "single-agent", "single-agent-total"
RARE, LONG, LONG_POPULATION = "4T+4S-rare-evolution", "single-agent-total-long", "4T+4S-long"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Something that the paper says, or that it leaves open."""

    group: int
    """Of the list in docs/experiment.md, 1 to 9."""
    text: str
    arms: tuple[str, ...]
    """One arm, or two: then the number is that of the first less (`RATIO`: by) that of the second on the same seed."""
    number: Number
    unit: str
    """Of the number; `share` is shown in percent."""
    claimed: Where | None
    """Where the mean should lie, None where nothing is claimed."""
    than: float = 0.0
    follow_up: bool = False
    """Whether it is told by the seeds of the follow-ups, and by them alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A claim with its numbers."""

    claim: Claim
    by_seed: Mapping[int, float] = field(default_factory=dict)
    interval: Interval | None = None
    """None where no seed has a number."""
    verdict: Verdict | None = None
    """None where nothing is claimed, or nothing is known."""


def find(claim: Claim, records: Sequence[Record]) -> Finding:
    """Work a claim out over the seeds on which all its arms have run."""
    runs = {(record.arm, record.seed): record for record in records}
    by_seed: dict[int, float] = {}
    for seed in sorted({record.seed for record in records if (record.seed in FOLLOW_UP_SEEDS) is claim.follow_up}):
        numbers = [claim.number(runs[arm, seed]) if (arm, seed) in runs else None for arm in claim.arms]
        known = [number for number in numbers if number is not None]
        if len(known) == len(claim.arms):
            by_seed[seed] = known[0] / known[1] if claim.unit == RATIO else known[0] - sum(known[1:])
    if not by_seed:
        return Finding(claim=claim)
    found = interval(list(by_seed.values()))
    told = None if claim.claimed is None else verdict(found, claimed=claim.claimed, than=claim.than)
    return Finding(claim=claim, by_seed=by_seed, interval=found, verdict=told)


def rise_of(name: str) -> Number:
    """Return how much a series rises from the first quarter of a run to the last."""

    def number(record: Record) -> float | None:
        try:
            return rise(record.numbers(name))
        except (KeyError, ValueError):
            return None

    return number


def late(name: str) -> Number:
    """Return the mean of a series over the last quarter of a run."""

    def number(record: Record) -> float | None:
        if name not in record.series:
            return None
        values = record.numbers(name)[-max(1, record.steps // 4) :]
        return None if np.isnan(values).all() else float(np.nanmean(values))

    return number


def swing_count(record: Record) -> float:
    """Return the number of swings of the solve rate."""
    return float(len(swings(record.numbers("solve_rate"))))


def swing_size(record: Record) -> float:
    """Return the mean size of the solve rate's swings, 0 where it has none."""
    sizes = swings(record.numbers("solve_rate"))
    return sum(sizes) / len(sizes) if sizes else 0.0


def slow_waves(record: Record) -> float | None:
    """Return how much more of its power the solve rate has in slow waves than its permutations have."""
    try:
        return slow_excess(record.numbers("solve_rate"), seeds.generator(record.seed, 0, "permutations", record.arm))
    except ValueError:
        return None


def growth(record: Record) -> float | None:
    """Return the share of the final coverage that came in the second half."""
    try:
        return late_growth(record.numbers("coverage"))
    except (KeyError, ValueError):
        return None


def seconds_a_step(record: Record) -> float:
    """Return the median seconds of a step."""
    return float(np.nanmedian(record.numbers("seconds")))


def mean_score(record: Record) -> float:
    """Return the mean over members of what they solve of the held-out suite, greedily."""
    scores = record.scores()
    return sum(scores) / len(scores)


def student_score(record: Record) -> float:
    """Return the mean over the members that attempt problems: students, or the single agent."""
    scores = record.scores(teachers=False)
    return sum(scores) / len(scores)


def taught_score(record: Record) -> float | None:
    """Return the mean over the same members, without those born after the last step; None where nobody is left."""
    scores = record.scores(teachers=False, newborn=False)
    return sum(scores) / len(scores) if scores else None


def least_score(record: Record) -> float:
    """Return the weakest member's."""
    return min(record.scores())


def _versus(
    group: int,
    text: str,
    arm: str,
    other: str,
    number: Number,
    unit: str,
    claimed: Where | None,
    *,
    follow_up: bool = False,
) -> Claim:
    arms = (arm, other)
    return Claim(group=group, text=text, arms=arms, number=number, unit=unit, claimed=claimed, follow_up=follow_up)


def _rises(group: int, text: str, arm: str, name: str, unit: str, claimed: Where, *, follow_up: bool = False) -> Claim:
    number = rise_of(name)
    return Claim(group=group, text=text, arms=(arm,), number=number, unit=unit, claimed=claimed, follow_up=follow_up)


def _nearly_all(group: int, text: str, arm: str, *, follow_up: bool = False) -> Claim:
    return Claim(
        group=group,
        text=text,
        arms=(arm,),
        number=late("solve_rate"),
        unit="share",
        claimed="above",
        than=0.9,
        follow_up=follow_up,
    )


CLAIMS: tuple[Claim, ...] = (
    _rises(1, "The single agent's solve rate climbs", SINGLE, "solve_rate", "share", "above"),
    _nearly_all(1, "towards 1: above 0.9 in the last quarter", SINGLE),
    _rises(1, "Its problems get simpler: depth of the syntax tree", SINGLE, "ast_depth", "levels", "below"),
    _rises(1, "cyclomatic complexity", SINGLE, "cyclomatic", "paths", "below"),
    _rises(1, "lines", SINGLE, "lines", "lines", "below"),
    _rises(1, "variables", SINGLE, "variables", "variables", "below"),
    _rises(1, "the frozen base solves more of them", SINGLE, "base_solve_rate", "share", "above"),
    _rises(1, "with all the population's compute its solve rate climbs", TOTAL, "solve_rate", "share", "above"),
    _rises(1, "and the frozen base solves more of its problems", TOTAL, "base_solve_rate", "share", "above"),
    _versus(2, "The population's solve rate swings more often", POPULATION, SINGLE, swing_count, "swings", "above"),
    _versus(2, "and further", POPULATION, SINGLE, swing_size, "share", "above"),
    _versus(2, "more often than with as many problems a step", POPULATION, TOTAL, swing_count, "swings", "above"),
    _versus(2, "and further than with as many", POPULATION, TOTAL, swing_size, "share", "above"),
    Claim(
        group=2,
        text="It oscillates: the share of its power in slow waves less that of its permutations",
        arms=(POPULATION,),
        number=slow_waves,
        unit="share",
        claimed="above",
    ),
    _versus(2, "more than the single agent's", POPULATION, TOTAL, slow_waves, "share", "above"),
    _rises(2, "Its problems get harder: depth of the syntax tree", POPULATION, "ast_depth", "levels", "above"),
    _rises(2, "cyclomatic complexity", POPULATION, "cyclomatic", "paths", "above"),
    _rises(2, "lines", POPULATION, "lines", "lines", "above"),
    _rises(2, "variables", POPULATION, "variables", "variables", "above"),
    _rises(2, "the frozen base solves fewer of them", POPULATION, "base_solve_rate", "share", "below"),
    _versus(3, "Coverage keeps growing for the population", POPULATION, SINGLE, growth, "share", "above"),
    _versus(3, "also against the agent with all its compute", POPULATION, TOTAL, growth, "share", "above"),
    _versus(4, "Members solve more than the single agent", POPULATION, SINGLE, mean_score, "share", "above"),
    _versus(4, "also than the one with all their compute", POPULATION, TOTAL, mean_score, "share", "above"),
    _versus(4, "the weakest member, too", POPULATION, SINGLE, least_score, "share", "above"),
    _versus(4, "its students alone", POPULATION, SINGLE, student_score, "share", "above"),
    _versus(4, "its students alone, against all their compute", POPULATION, TOTAL, student_score, "share", "above"),
    _versus(4, "without the student born after the last step", POPULATION, SINGLE, taught_score, "share", "above"),
    _versus(4, "without that one, against all", POPULATION, TOTAL, taught_score, "share", "above"),
    _versus(4, "Members of 4T+4S solve more than those of 1T+1S", POPULATION, PAIR, mean_score, "share", "above"),
    _versus(4, "and than those of 8T+8S", POPULATION, "8T+8S", mean_score, "share", "above"),
    _versus(5, "Students are paid less all the same", POPULATION, SINGLE, late("student_reward"), "reward", "below"),
    _versus(6, "A step of eight adapters by one of the single agent", POPULATION, SINGLE, seconds_a_step, RATIO, None),
    _versus(6, "by one with the same compute in one adapter", POPULATION, TOTAL, seconds_a_step, RATIO, None),
    _versus(7, "Evolution helps", POPULATION, "4T+4S-no-evolution", mean_score, "share", "above"),
    _versus(7, "by its students alone", POPULATION, "4T+4S-no-evolution", student_score, "share", "above"),
    _versus(7, "without the one born last", POPULATION, "4T+4S-no-evolution", taught_score, "share", "above"),
    _versus(7, "more than copies of survivors", POPULATION, "4T+4S-copy-parent", mean_score, "share", "above"),
    _versus(7, "more than means of survivors", POPULATION, "4T+4S-linear", mean_score, "share", "above"),
    _versus(8, "The variance reward against the paper's", "4T+4S-variance", POPULATION, mean_score, "share", None),
    _versus(8, "its solve rate at the end", "4T+4S-variance", POPULATION, late("solve_rate"), "share", None),
    _versus(
        9,
        "Evolution five times as rare: students solve more than the single agent",
        RARE,
        SINGLE,
        student_score,
        "share",
        "above",
        follow_up=True,
    ),
    _rises(9, "One pair: its solve rate falls", PAIR, "solve_rate", "share", "below", follow_up=True),
    _rises(9, "and the base solves fewer of its problems", PAIR, "base_solve_rate", "share", "below", follow_up=True),
    _versus(
        9,
        "which gets on further than with the single agent",
        PAIR,
        SINGLE,
        rise_of("base_solve_rate"),
        "share",
        "below",
        follow_up=True,
    ),
    _rises(9, "Four times the steps: the solve rate climbs", LONG, "solve_rate", "share", "above", follow_up=True),
    _nearly_all(9, "and is above 0.9 in the last quarter", LONG, follow_up=True),
    _rises(9, "and problems get simpler: depth", LONG, "ast_depth", "levels", "below", follow_up=True),
    _rises(9, "and the base solves more of them", LONG, "base_solve_rate", "share", "above", follow_up=True),
    _rises(
        9,
        "The population's problems get harder: depth",
        LONG_POPULATION,
        "ast_depth",
        "levels",
        "above",
        follow_up=True,
    ),
    _rises(
        9, "and the base solves fewer of them", LONG_POPULATION, "base_solve_rate", "share", "below", follow_up=True
    ),
    *(
        _versus(9, text, LONG_POPULATION, LONG, number, unit, "above", follow_up=True)
        for text, number, unit in (
            ("Its solve rate swings more often than that of the agent with all its compute", swing_count, "swings"),
            ("and further", swing_size, "share"),
            ("Its coverage keeps growing for longer", growth, "share"),
            ("More of its templates are distinct in the last quarter", late("distinct_templates"), "share"),
            ("More of its problems are valid in the last quarter", late("validity"), "share"),
            ("Its members solve more", mean_score, "share"),
            ("its students without those born after the last step", taught_score, "share"),
        )
    ),
)
