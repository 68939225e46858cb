"""The plan of a run: counts worked by hand, the pace of an earlier run, and nothing written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from scripted import save_base

from league.config import RunConfig, resolve
from league.options import MachineOptions, MatchOptions, MeasureOptions, PlayOptions
from league.plan import Pace, Work, cross_work, find_pace, plan_lines, work
from league.run import main
from populora_agents.config import NANO

SMALL = RunConfig(
    teachers=3,
    students=2,
    steps=12,
    machine=MachineOptions(threads=2),
    play=PlayOptions(groups=2, proposals=4, attempts=5, proposal_tokens=100, answer_tokens=10),
)


def lines(pace: Pace | None) -> dict[str, str]:
    config = resolve(SMALL, NANO, {"svd_perturb": True})
    told = plan_lines(config, base="tiny", base_bytes=2_000_000, adapter_parameters=1000, pace=pace)
    return {line.split()[0]: line for line in told}


def test_a_step_is_counted_by_hand() -> None:
    # 3 matches, 3 tasks, 2 reference sets, 4 proposals each; 5 attempts at each
    config = resolve(SMALL, NANO, {"svd_perturb": True})
    assert work(config) == Work(matches=3, proposals=72, attempts=360, tokens=72 * 100 + (360 + 16) * 10)


def test_past_opponents_are_matches_on_top_and_take_slots() -> None:
    # a third of all matches: 1.5 beside 3, at most 2 in one step, each with a slot of its own
    config = resolve(replace(SMALL, match=MatchOptions(past_opponents=1 / 3)), NANO, {"svd_perturb": True})
    assert work(config).matches == 5
    told = list(plan_lines(config, base="tiny", base_bytes=2_000_000, adapter_parameters=1000, pace=None))
    assert any("5 matches (2 of them against past members), 120 proposals" in line for line in told)
    assert any("112 kB of adapters" in line for line in told)


def test_a_cross_table_is_counted_by_hand_and_takes_its_time() -> None:
    # 3 x 2 pairs, 4 proposals each, 5 attempts at each: a third of a step; every 4 of 12 steps: one step's time in all
    options = MeasureOptions(cross_eval_every=4, cross_eval_problems=4)
    config = resolve(replace(SMALL, measure=options), NANO, {"svd_perturb": True})
    assert cross_work(config) == Work(matches=6, proposals=24, attempts=120, tokens=24 * 100 + 120 * 10)
    pace = Pace(run=Path("runs/a"), steps=7, step_s=2.0, work=work(config), threads=2)
    told = plan_lines(config, base="tiny", base_bytes=2_000_000, adapter_parameters=1000, pace=pace)
    lines = {line.split()[0]: line for line in told}
    assert "every 4 steps: 6 matches, 24 proposals, at most 120 attempts, at most 3,600 sampled" in lines["cross"]
    assert lines["cross"].endswith("0.33 times a step's")
    assert "about 26 s, 2.00 s a step" in lines["time"]


def test_memory_and_disk_follow_from_the_members() -> None:
    told = lines(None)
    assert "at least 2.08 MB: the base and 80 kB of adapters" in told["memory"]
    assert "20 kB a saving, 4 savings" in told["disk"]  # steps 0, 5, 10, 12
    assert "not known" in told["time"]


def test_time_is_that_of_an_earlier_run_and_says_what_was_scaled() -> None:
    same = work(resolve(SMALL, NANO, {"svd_perturb": True}))
    pace = Pace(run=Path("runs/a"), steps=7, step_s=2.0, work=same, threads=2)
    assert "about 24 s, 2.00 s a step: the median of 7 steps of runs/a" in lines(pace)["time"]
    assert "scaled" not in lines(pace)["time"]
    half = Work(matches=1, proposals=1, attempts=1, tokens=same.tokens // 2)
    other = lines(Pace(run=Path("runs/a"), steps=7, step_s=2.0, work=half, threads=1))["time"]
    assert "about 48 s, 4.00 s a step" in other
    assert "scaled by 2.00 (bounds on tokens), with 1 threads, not 2" in other


def test_the_command_tells_the_plan_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    base = save_base(tmp_path / "base")
    monkeypatch.chdir(tmp_path)
    flags = ["--base", str(base), "--teachers", "2", "--students", "1", "--proposals", "2", "--proposal-tokens", "24"]
    flags += ["--answer-tokens", "8", "--game.seed-problems", "16"]
    assert main([*flags, "--steps", "1000", "--dry-run"]) == 0
    assert "not known: no earlier run of this base" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["base"]
    assert main([*flags, "--steps", "2", "--out", "runs/first"]) == 0
    (tmp_path / "runs" / "junk").mkdir()
    (tmp_path / "runs" / "junk" / "config.yaml").write_text("[")
    before = sorted(tmp_path.rglob("*"))
    capsys.readouterr()
    assert main([*flags, "--steps", "1000", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "the median of 2 steps of runs/first" in out
    assert "scaled" not in out
    assert sorted(tmp_path.rglob("*")) == before
    assert find_pace(tmp_path / "runs", "another base") is None


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--resume", "{run}"), "--dry-run is for new runs"),
        (("--base", "{base}", "--lora-rank", "5000"), "`lora_rank` must be at most 32"),
        (("--base", "{run}"), "neither a model folder"),
    ],
)
def test_what_a_run_would_refuse_the_plan_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: tuple[str, ...], message: str
) -> None:
    base, run = save_base(tmp_path / "base"), tmp_path / "run"
    if "--resume" in flags:
        run.mkdir()
        (run / "config.yaml").write_text("")
    capsys.readouterr()
    assert main([*(flag.format(base=base, run=run) for flag in flags), "--dry-run"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
