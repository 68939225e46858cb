"""Which runs are made, in which order, and that league.run takes their flags."""

from __future__ import annotations

import pytest

from league.experiment.arms import ARMS, FOLLOW_UP_SEEDS, FOLLOW_UPS, MAIN, VARIATIONS, Job, jobs
from league.run import parse


def test_main_arms_on_all_seeds_and_variations_on_the_first() -> None:
    made = jobs(5)
    assert len(made) == len(set(made)) == 5 * len(MAIN) + 3 * len(VARIATIONS) + 5 * len(FOLLOW_UPS)
    assert made[:4] == [Job(seed=1, arm=arm) for arm in MAIN]
    assert {job.seed for job in made if job.arm in VARIATIONS} == {1, 2, 3}
    assert {job.seed for job in made if job.arm == "4T+4S-rare-evolution"} == set(FOLLOW_UP_SEEDS)
    assert jobs(1, ["8T+8S"]) == [Job(seed=1, arm="8T+8S")]
    with pytest.raises(ValueError, match=r"\[1, 10\], got 11"):
        jobs(11)
    with pytest.raises(ValueError, match="'nobody'"):
        jobs(1, ["nobody"])


@pytest.mark.parametrize("name", ARMS)
def test_the_flags_of_every_arm_are_those_of_a_league(name: str) -> None:
    config = parse(ARMS[name].flags)
    sizes = {"1T+1S": 2, "8T+8S": 16, "single-agent": 1, "single-agent-total": 1, "single-agent-total-long": 1}
    assert config.members == sizes.get(name, 8)
    assert config.matches == {"single-agent": 1, "1T+1S": 1, "8T+8S": 8}.get(name, 4)
