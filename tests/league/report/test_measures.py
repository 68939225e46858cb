"""Numbers behind the curves, worked out again from the rows of a run's tables by plain loops."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_run import write_run

from league.report import maps, measures
from league.report.source import RunTables, read_run
from league.storage import read_metrics, read_rows
from league.types import Row, Side


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunTables:
    return read_run(write_run(tmp_path_factory.mktemp("runs") / "run", steps=6, members=3))


def means(rows: list[Row], key: Callable[[Row], object], value: Callable[[Row], float]) -> dict[object, float]:
    found = defaultdict(list)
    for row in rows:
        found[key(row)].append(value(row))
    return {name: statistics.fmean(values) for name, values in found.items()}


def problems_of(path: Path) -> list[Row]:
    return [row for row in read_rows(path, "problems") if row["valid"]]


def test_solve_rates_count_each_valid_problem_once(run: RunTables) -> None:
    rows, found = problems_of(run.path), measures.solve_rates(run)
    again = means(rows, lambda row: row["step"], lambda row: row["solve_rate"])
    assert dict(zip(found["step"], found["all"], strict=True)) == pytest.approx(again)
    again = means(
        [row for row in rows if row["task"] == "abduction"], lambda row: row["step"], lambda row: row["solve_rate"]
    )
    assert dict(zip(found["step"], found["abduction"], strict=True)) == pytest.approx(again)


def test_members_solve_rates_are_of_their_problems_and_their_attempts(run: RunTables) -> None:
    by_teacher = measures.teacher_solve_rates(run)
    again = means(problems_of(run.path), lambda row: (row["step"], row["teacher_id"]), lambda row: row["solve_rate"])
    found = dict(zip(zip(by_teacher["step"], by_teacher["member"], strict=True), by_teacher["solve_rate"], strict=True))
    assert found == pytest.approx(again)
    by_student = measures.student_solve_rates(run)
    attempts = [row for row in read_rows(run.path, "rollouts") if row["role"] == "solver"]
    again = means(attempts, lambda row: (row["step"], row["member_id"]), lambda row: row["verdict"] == "ok")
    found = dict(zip(zip(by_student["step"], by_student["member"], strict=True), by_student["solve_rate"], strict=True))
    assert found == pytest.approx(again)
    assert sum(by_student["count"]) == len(attempts)


def test_ratings_are_those_at_the_end_of_each_step(run: RunTables) -> None:
    for side in Side:
        found = measures.ratings(run, side)
        last = {
            (row["step"], row["member_id"]): (row["mu"], row["mu"] - row["sigma"])
            for row in read_rows(run.path, "ratings")
            if row["member_id"].startswith(side.value)
        }
        who = zip(found["step"], found["member"], strict=True)
        assert dict(zip(who, zip(found["mu"], found["low"], strict=True), strict=True)) == last


def test_structure_is_of_the_teachers_own_programs(run: RunTables) -> None:
    own = [row for row in problems_of(run.path) if row["task"] != "induction"]
    for name in measures.STRUCTURE:
        found = measures.structure(run, name)
        for place, step in enumerate(found["step"]):
            values = [row[name] for row in own if row["step"] == step]
            assert found[measures.MEAN][place] == pytest.approx(statistics.fmean(values))
            assert found[measures.LOW][place] == pytest.approx(np.percentile(values, 10))
            assert found[measures.HIGH][place] == pytest.approx(np.percentile(values, 90))


def test_coverage_counts_the_cells_since_the_beginning(run: RunTables) -> None:
    found = measures.coverage(run, 1024)
    for place, step in enumerate(found["step"]):
        cells = {
            row["cell_id"]
            for row in problems_of(run.path)
            if row["step"] <= step and row["task"] != "induction" and row["cell_id"] is not None
        }
        assert found["all"][place] == len(cells) / 1024
    assert found["all"] == sorted(found["all"])


def test_rewards_and_validity(run: RunTables) -> None:
    found = measures.rewards(run)
    rollouts = read_rows(run.path, "rollouts")
    again = means(
        [row for row in rollouts if row["role"] == "proposer"], lambda row: row["step"], lambda row: row["reward"]
    )
    assert dict(zip(found["step"], found["teacher"], strict=True)) == pytest.approx(again)
    share = means(read_rows(run.path, "problems"), lambda row: row["step"], lambda row: row["valid"])
    found = measures.validity(run)
    assert dict(zip(found["step"], found["proposals"], strict=True)) == pytest.approx(share)
    assert set(found["attempts"]) == {1.0}


def test_metrics_and_seconds_are_those_of_the_lines(run: RunTables) -> None:
    lines = [line for line in read_metrics(run.path) if line["step"]]
    assert measures.metric(run, ("teacher/entropy", "teacher/none")) == {
        "step": [line["step"] for line in lines],
        "teacher/entropy": [line["teacher/entropy"] for line in lines],
    }
    assert measures.seconds(run)["solve"] == [1.0] * len(lines)
    assert measures.metric_names([run]) == ["student/entropy", "teacher/entropy"]


def test_lives_end_where_a_child_takes_the_slot(run: RunTables) -> None:
    found = maps.lives(run)
    births = {row["child_id"]: row for row in read_rows(run.path, "lineage")}
    assert list(found["member"]) == list(births)
    for place, name in enumerate(found["member"]):
        after = [
            row["step"]
            for other, row in births.items()
            if row["slot"] == births[name]["slot"]
            and other.split("_")[0] == found["side"][place]
            and row["step"] > births[name]["step"]
        ]
        assert found["retired"][place] == min(after, default=None)
    kin = {name for name, ancestor in zip(found["member"], found["ancestor"], strict=True) if ancestor}
    living = {name for name, end in zip(found["member"], found["retired"], strict=True) if end is None}
    assert living <= kin
    assert {parent for name in kin for parent in births[name]["parents"]} <= kin


def test_retention_counts_every_child_once(run: RunTables) -> None:
    found = maps.retention(run)
    assert sum(found["children"]) == sum(bool(row["parents"]) for row in read_rows(run.path, "lineage"))
    assert [a + b for a, b in zip(found["still_there"], found["replaced"], strict=True)] == found["children"]


def test_payoffs_are_the_latest_match_of_each_pair_of_the_living(run: RunTables) -> None:
    found = maps.payoffs(run)
    lives = maps.lives(run)
    living = [name for name, end in zip(lives["member"], lives["retired"], strict=True) if end is None]
    latest: dict[tuple[str, str], float] = {}
    for row in read_rows(run.path, "matches"):
        latest[row["teacher_id"], row["student_id"]] = row["observed"]
    pairs = zip(found["teacher"], found["student"], strict=True)
    assert dict(zip(pairs, found["solve_rate"], strict=True)) == {
        (teacher, student): latest.get((teacher, student))
        for teacher in living
        if teacher.startswith("teacher")
        for student in living
        if student.startswith("student")
    }


def test_the_archive_has_every_filled_cell(run: RunTables) -> None:
    found = maps.archive(run)
    own = [row for row in problems_of(run.path) if row["task"] != "induction"]
    assert found["cell"] == sorted({row["cell_id"] for row in own})
    assert sum(found["problems"]) == len(own)
    first = {cell: min(row["step"] for row in own if row["cell_id"] == cell) for cell in found["cell"]}
    assert found["first_step"] == list(first.values())


@given(st.lists(st.floats(-1e3, 1e3), max_size=30), st.integers(1, 40))
def test_a_trailing_mean_is_the_mean_of_the_last_values(values: list[float], window: int) -> None:
    found = measures.trailing_mean(values, window)
    assert found == pytest.approx(
        [statistics.fmean(values[max(0, end - window) : end]) for end in range(1, len(values) + 1)], abs=1e-6
    )
    assert measures.trailing_mean(values, 1) == pytest.approx(values, abs=1e-6)
