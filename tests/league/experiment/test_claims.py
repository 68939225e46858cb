"""Claims on made records: which number, of which arms, with which verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from finished_runs import make_record

from league.experiment.arms import ARMS, FOLLOW_UP_SEEDS
from league.experiment.claims import CLAIMS, POPULATION, RARE, SINGLE, Finding, find
from league.experiment.summary import Record


def of(text: str, records: Sequence[Record]) -> Finding:
    claim = next(claim for claim in CLAIMS if claim.text == text)
    return find(claim, records)


def test_every_claim_is_about_arms_that_there_are_and_comes_in_order() -> None:
    assert {arm for claim in CLAIMS for arm in claim.arms} <= ARMS.keys()
    groups = [claim.group for claim in CLAIMS]
    assert groups == sorted(groups)
    assert set(groups) == set(range(1, 10))


def test_a_rise_is_one_number_a_seed() -> None:
    records = [make_record(SINGLE, seed, start=0.2, end=0.6 + 0.01 * seed) for seed in (1, 2, 3)]
    found = of("The single agent's solve rate climbs", records)
    # From the middle of the first quarter to that of the last: 30 of 39 steps of the way.
    assert found.by_seed == pytest.approx({seed: (0.4 + 0.01 * seed) * 30 / 39 for seed in (1, 2, 3)})
    assert found.verdict == "seen"
    assert of("lines", records).verdict == "reversed"
    assert of("towards 1: above 0.9 in the last quarter", records).verdict == "reversed"


def test_comparisons_are_paired_by_seed() -> None:
    records = [make_record(POPULATION, seed, score=0.5 + 0.1 * seed) for seed in (1, 2, 4)]
    records += [make_record(SINGLE, seed, score=0.4 + 0.1 * seed) for seed in (1, 2, 3)]
    found = of("Members solve more than the single agent", records)
    assert found.by_seed == pytest.approx({1: 0.05, 2: 0.05})  # one member's mean rises by 0.1, the other's not at all
    assert found.verdict == "seen"
    assert of("the weakest member, too", records).by_seed == pytest.approx({1: 0.0, 2: 0.0})


def test_what_has_not_run_or_is_not_there_has_no_number() -> None:
    found = of("Evolution helps", [make_record(POPULATION, 1)])
    assert (found.by_seed, found.interval, found.verdict) == ({}, None, None)
    assert of("the frozen base solves more of them", [make_record(SINGLE, 1)]).interval is None
    one = of("The single agent's solve rate climbs", [make_record(SINGLE, 1)])
    assert one.verdict == "too few seeds"
    assert of("by one with the same compute in one adapter", []).verdict is None


def test_students_are_told_without_their_teachers_and_times_are_quotients() -> None:
    records = [make_record(POPULATION, 1, score=0.5), make_record(SINGLE, 1, score=0.4)]
    assert of("its students alone", records).by_seed == pytest.approx({1: 0.1})
    records[0].series["seconds"][:] = [3.0] * records[0].steps
    assert of("A step of eight adapters by one of the single agent", records).by_seed == {1: 3.0}


def test_students_born_after_the_last_step_can_be_left_out() -> None:
    settings = {"single_agent": False, "evolve.evolution": True, "evolve.evolve_every": 5, "evolve.fraction": 0.25}
    shares = {"student_0": {"deduction": 0.6}, "student_7": {"deduction": 0.2}, "teacher_0": {"deduction": 0.1}}
    records = [make_record(POPULATION, 1, heldout=shares, settings=settings), make_record(SINGLE, 1, score=0.4)]
    assert of("its students alone", records).by_seed == pytest.approx({1: 0.0})
    assert of("without the student born after the last step", records).by_seed == pytest.approx({1: 0.2})
    alone = replace(records[0], heldout={"student_7": {"deduction": 0.2}})
    assert of("without the student born after the last step", [alone, records[1]]).by_seed == {}


def test_follow_ups_are_told_by_their_seeds_and_no_other_claim_is() -> None:
    records = [make_record(SINGLE, seed, start=0.2, end=0.6) for seed in (1, *FOLLOW_UP_SEEDS)]
    records += [make_record(RARE, seed, score=0.7) for seed in (1, *FOLLOW_UP_SEEDS)]
    assert set(of("The single agent's solve rate climbs", records).by_seed) == {1}
    found = of("Evolution five times as rare: students solve more than the single agent", records)
    assert found.by_seed == pytest.approx(dict.fromkeys(FOLLOW_UP_SEEDS, 0.2))
