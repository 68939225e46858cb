"""Which runs there are, and which are left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from marl_records import make_record

from benchmarks.marl.algorithms import ALGORITHMS
from benchmarks.marl.config import TrainingConfig
from benchmarks.marl.environments import ENVIRONMENTS
from benchmarks.marl.runs import Plan, jobs, run_all
from benchmarks.marl.summary import Job, append_record


def test_mixtures_are_for_teams_and_seeds_come_one_after_the_other() -> None:
    planned = jobs(3, list(ENVIRONMENTS), ALGORITHMS)
    assert len(planned) == len(set(planned)) == 3 * (2 * 5 + 3 * 7)
    assert [job.seed for job in planned] == sorted(job.seed for job in planned)
    mixed = {job.environment for job in planned if job.algorithm in ("vdn", "qmix")}
    assert mixed == {"token-team", "simple_spread", "simple_speaker_listener"}


def test_a_name_given_twice_is_run_once() -> None:
    assert jobs(1, ["token-team"] * 2, ["iql", "iql"]) == jobs(1, ["token-team"], ["iql"])


@pytest.mark.parametrize(("seeds", "names"), [(0, ["token-team"]), (1, ["token-none"])])
def test_what_cannot_be_run_is_refused(seeds: int, names: list[str]) -> None:
    with pytest.raises(ValueError, match="must be"):
        jobs(seeds, names, ALGORITHMS)


def test_what_is_left_is_what_the_summary_lacks(tmp_path: Path) -> None:
    plan = Plan(jobs=jobs(1, ["token-team"], ["iql", "mappo"]), summary=tmp_path / "marl.jsonl")
    assert plan.left() == list(plan.jobs)
    job = Job(seed=1, environment="token-team", algorithm="iql")
    record = make_record("token-team", "iql", 1, score=0.5)
    append_record(plan.summary, replace(record, settings=plan.settings(job)))
    assert plan.left() == [other for other in plan.jobs if other != job]
    plan.config = TrainingConfig(batches=7)
    with pytest.raises(ValueError, match="name another summary"):
        plan.left()
    plan.jobs = jobs(1, ["simple_spread"], ["iql"])
    with pytest.raises(ValueError, match="iql on token-team, seed 1 ran with"):
        plan.left()  # also what is not planned would stand in the same table


def test_settings_are_those_of_the_own_family() -> None:
    plan = Plan(jobs=(), summary=Path("none"))
    of = {
        name: plan.settings(Job(seed=1, environment="token-team", algorithm=name)) for name in ("random", "iql", "ippo")
    }
    assert of["random"].keys() == {"rules", "games", "episodes"}
    assert "buffer" in of["iql"].keys() - of["ippo"].keys()
    assert "clip" in of["ippo"].keys() - of["iql"].keys()


def test_references_are_run_kept_and_not_run_again(tmp_path: Path) -> None:
    pytest.importorskip("torchrl")
    said: list[str] = []
    config = TrainingConfig(games=4, episodes=8)
    plan = Plan(jobs=jobs(2, ["token-zero_sum"], ["iql"])[:2], summary=tmp_path / "marl.jsonl", config=config)
    run_all(plan, said.append)
    assert said[0] == "0 runs are done, 2 are left"
    assert said[-1].endswith("0 runs are left")
    run_all(plan, said.append)
    assert said[-1] == "2 runs are done, 0 are left"
