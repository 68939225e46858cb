"""The command: flags, exit statuses, one clear line for what the user has to change."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from run_contents import contents
from scripted import save_base

from league.arena import ProgramArena
from league.config import RunConfig, resolve
from league.integrity import check_run
from league.operators import OPERATORS, usable
from league.options import EvolveOptions
from league.rules import Breeding
from league.run import UsageError, main, make_rules, parse
from league.schemas import SCHEMAS
from league.standings import standings
from league.storage import RunFolder, committed_steps, read_rows, read_table
from league.types import Match, Play
from populora_agents.config import NANO
from populora_agents.types import DivergedError
from populora_env.types import Task

SMALL = (
    "--steps",
    "2",
    "--evolve-every",
    "1",
    "--min-age",
    "0",
    "--proposals",
    "2",
    "--proposal-tokens",
    "24",
    "--answer-tokens",
    "8",
)
SEEDS = ("--game.seed-problems", "16")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_base(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def run(base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a finished run folder and what was printed."""
    out = tmp_path_factory.mktemp("runs") / "run"
    done = command("--teachers", "2", "--students", "1", *SMALL, *SEEDS, "--base", str(base), "--out", str(out))
    assert done.returncode == 0, done.stderr
    return out, done.stdout


def command(*arguments: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "league.run", *arguments], capture_output=True, text=True, timeout=120, **settings
    )


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def metrics_of(run: Path) -> list[dict[str, Any]]:
    """Return the metrics of each step but the founding."""
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()][1:]


def test_flags_are_flat_for_what_people_change_and_every_field_is_reachable() -> None:
    flags = (
        "--teachers 2 --students 3 --steps 4 --seed 5 --out o --base b --tasks induction deduction --evolve-every 6 "
        "--operators copy_parent dare --no-evolution --references 7 --attempts 8 --lora-rank 9 --threads 1 --beta1 0.5 "
        "--game.rewards.scheme azr --ratings.rating-tau 0.5 --verifier.cpu-s 1"
    )
    config = parse(flags.split())
    assert (config.teachers, config.students, config.steps, config.seed) == (2, 3, 4, 5)
    assert (config.out, config.base, config.tasks) == ("o", "b", (Task.INDUCTION, Task.DEDUCTION))
    assert (config.evolve.evolve_every, config.evolve.operators, config.evolve.evolution) == (
        6,
        ("copy_parent", "dare"),
        False,
    )
    assert (config.play.references, config.play.attempts, config.learn.lora_rank) == (7, 8, 9)
    assert (config.machine.threads, config.learn.adam.beta1, config.game.rewards.scheme) == (1, 0.5, "azr")
    assert (config.ratings.rating_tau, config.verifier.cpu_s) == (0.5, 1.0)
    assert parse([]) == RunConfig()


def test_operators_of_ones_own_and_weights_reach_the_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "operators_of_ours.py").write_text("def halve(parent, *, generator, factor=0.5):\n    return parent\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    config = parse(["--operators", "operators_of_ours:halve", "svd_mix=2", "ties=0.5"])
    rules = make_rules(resolve(config, NANO, usable(config.evolve.weights)))
    assert rules.operators == {
        "operators_of_ours:halve": Breeding(arity=1, parameters={"factor": 0.5}),
        "svd_mix": Breeding(arity=2, weight=2.0),
        "ties": Breeding(arity=2, parameters={"density": 0.2}, weight=0.5),
    }
    plain = make_rules(resolve(RunConfig(), NANO, usable(())))
    assert set(plain.operators) == {name for name, operator in OPERATORS.items() if operator.kind == "paper"}


def test_help_explains_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parse(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for flag in ("--teachers", "--base", "--tasks", "--operators", "--no-evolution", "--config FILE", "--threads"):
        assert flag in text
    assert "None" not in text.replace("built from None", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--teachers 0", "`teachers` must be at least 1, got 0"),
        ("--students -3", "`students` must be at least 1, got -3"),
        ("--teacher 3", "Unrecognized options: --teacher"),
        ("--teachers x", "--teachers"),
        ("--tasks magic", "magic"),
        ("--tasks", "`tasks` must name at least one task"),
        ("--steps -1", "`steps`"),
        ("--temperature nan", "`temperature`"),
        ("--seed 99999999999999999999", "`seed`"),
        ("--config", "--config needs a file"),
        ("--config /does/not/exist", "No such file"),
        ("--config /", "Is a directory"),
        ("surprise", "surprise"),
    ],
)
def test_bad_flags_are_one_clear_line_and_exit_2(
    arguments: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: ")
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_a_finished_run_has_a_closing_table_that_follows_from_its_tables(run: tuple[Path, str]) -> None:
    out, printed = run
    assert committed_steps(out) == [0, 1, 2]
    assert printed.splitlines()[-2:] == [str(out), str(out / "report.html")]
    assert (out / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    tables = [read_rows(out, name) for name in ("ratings", "matches", "lineage")]
    found = standings(*tables, caution=EvolveOptions().caution)
    assert len(found) == 3
    for one in found:
        (line,) = [line for line in printed.splitlines() if re.search(rf"[│|] {one.member_id} ", line)]
        cells = [cell.strip() for cell in re.split("[│|]", line)[1:-1]]
        assert cells[1:4] == [f"{number:.2f}" for number in (one.rating.mu, one.rating.sigma, one.bound)]
        assert cells[4:7] == [str(count) for count in (one.won, one.drawn, one.lost)]
        assert cells[8] == str(one.born)
    problems = read_rows(out, "problems")
    for teacher in {row["teacher_id"] for row in problems}:
        assert {row["task"] for row in problems if row["teacher_id"] == teacher} == set(Task)


def test_the_reference_trainer_plays_the_same_run(run: tuple[Path, str], base: Path, tmp_path: Path) -> None:
    done = command(
        *("--teachers", "2", "--students", "1", *SMALL, *SEEDS, "--base", str(base)),
        *("--trainer", "peft", "--kl-coefficient", "0.01", "--estimator", "dr_grpo", "--out", str(tmp_path / "run")),
    )
    assert done.returncode == 0, done.stderr
    first, second = metrics_of(tmp_path / "run")
    fused, _ = metrics_of(run[0])
    # What is played in the first step does not depend on the trainer; what is measured in the update, on the options.
    assert first["teacher/reward"] == fused["teacher/reward"]
    assert first["teacher/tokens"] == fused["teacher/tokens"]
    assert first["teacher/kl"] == 0.0
    assert second["teacher/kl"] >= 0.0
    assert "teacher/kl" not in fused


def test_no_path_of_the_machine_is_in_the_run_id(run: tuple[Path, str]) -> None:
    (run_id,) = {row["run_id"] for row in read_rows(run[0], "ratings")}
    assert re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{6}", run_id)


def test_the_config_of_a_run_makes_the_same_tables_elsewhere(run: tuple[Path, str], tmp_path: Path) -> None:
    out, _ = run
    again = tmp_path / "again"
    assert main(["--config", str(out / "config.yaml"), "--out", str(again)]) == 0
    for name in SCHEMAS:
        dropped = ["run_id", "exec_ms"] if name == "problems" else ["run_id"]
        assert read_table(again, name).drop_columns(dropped) == read_table(out, name).drop_columns(dropped)


def test_what_is_wrong_with_base_out_or_settings_is_one_clear_line_and_nothing_is_overwritten(
    run: tuple[Path, str], base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, _ = run
    before = files(out)
    (tmp_path / "no-model").mkdir()
    never = str(tmp_path / "never")
    for arguments, message in (
        (("--base", str(base), "--out", str(out)), "exists already"),
        (("--base", str(tmp_path / "no-model"), "--out", never), "config.json is missing"),
        (("--base", str(tmp_path / "nothing"), "--out", never), "neither a model folder"),
        (("--base", str(base), "--operators", "magic", "--out", never), "'magic'"),
        (("--base", str(base), "--targets", "magic", "--out", never), "magic"),
        (("--base", str(base), "--answer-tokens", "2000", "--out", never), "half of the base's context"),
        (("--base", str(base), "--lora-rank", "100000", "--out", never), "`lora_rank` must be at most 32"),
        (("--base", str(base), "--threads", "1000", "--out", never), "`threads` must be at most"),
        (("--base", str(base), *SEEDS, "--out", "/proc/self/x"), "cannot make the run folder"),
    ):
        assert main(arguments) == 2
        printed, err = capsys.readouterr()
        assert (printed, err.count("\n")) == ("", 1), err
        assert err.startswith("error: ")
        assert message in err
    assert files(out) == before
    assert not Path(never).exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_an_output_that_cannot_be_written_is_one_clear_line(base: Path, tmp_path: Path) -> None:
    arguments = (*SMALL, *SEEDS, "--base", str(base), "--out", str(tmp_path / "run"))
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "league.run", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "error: cannot write to standard output: No space left on device; committed steps are kept\n"


def test_the_help_names_every_operator(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in OPERATORS)


def test_ctrl_c_keeps_the_committed_steps_and_exits_130(base: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ("--steps", "10000", *SMALL[2:], *SEEDS, "--base", str(base), "--out", str(out))
    with subprocess.Popen(
        [sys.executable, "-m", "league.run", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background job ignores it
    ) as process:
        deadline = time.monotonic() + 100
        while not (out / "commits" / "step=1.json").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == f"error: interrupted; committed steps are kept in {out}, go on with --resume {out}\n"
    steps = committed_steps(out)
    assert steps == list(range(len(steps)))
    assert {row["step"] for row in read_rows(out, "matches")} == set(steps[1:])


def test_a_diverged_member_is_one_clear_line_that_says_what_to_change(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    play, out = ProgramArena.play, tmp_path / "run"

    def diverge(arena: ProgramArena, matches: Sequence[Match], *, step: int) -> Play:
        if step == 2:
            raise DivergedError(["student_0"], "gradients are")
        return play(arena, matches, step=step)

    monkeypatch.setattr(ProgramArena, "play", diverge)
    arguments = (*SMALL, *SEEDS, "--student-learning-rate", "0.5", "--base", str(base), "--out", str(out))
    assert main(arguments) == 1
    assert capsys.readouterr().err == (
        f"error: student_0 diverged: gradients are not finite; committed steps are kept in {out}, "
        "lower --student-learning-rate (now 0.5) and run again\n"
    )
    assert committed_steps(out) == [0, 1]


@pytest.mark.slow
def test_on_nano_teachers_and_students_learn_and_another_seed_is_another_run(tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = command("--steps", "6", "--evolve-every", "4", "--min-age", "4", "--out", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    problems = read_rows(out, "problems")
    assert sum(row["valid"] for row in problems) > len(problems) / 2
    assert any(0 < row["solve_rate"] < 1 for row in problems if row["valid"])
    assert any(row["parents"] for row in read_rows(out, "lineage"))
    last = {row["member_id"]: row["event"] for row in read_rows(out, "ratings")}
    for member in (name for name, event in last.items() if event != "retire"):
        birth, *_, now = sorted((out / "adapters" / member).iterdir(), key=lambda path: int(path.name))
        weights = [(path / "adapter_model.safetensors").read_bytes() for path in (birth, now)]
        assert weights[0] != weights[1], member
    other = tmp_path / "other"
    assert command("--steps", "1", "--seed", "1", "--tasks", "deduction", "--out", str(other)).returncode == 0
    assert {row["task"] for row in read_rows(other, "problems")} == {"deduction"}
    first = [row["completion"] for row in read_rows(out, "rollouts") if row["task"] == "deduction"]
    assert [row["completion"] for row in read_rows(other, "rollouts")] != first[: len(first) // 6]


def test_parse_refuses_with_a_usage_error() -> None:
    with pytest.raises(UsageError):
        parse(["--teachers", "0"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--resume",), "--resume needs a run folder"),
        (("--resume", "/nowhere"), "'/nowhere' is no run folder"),
        (("--resume", "/nowhere/seed=1"), "'/nowhere/seed=1' is no run folder"),
        (
            ("--resume=/nowhere", "--seed", "1"),
            "beside --resume only --steps, --log, --executor, --ray-address, --worker-gpus may stand",
        ),
        (("--teachers", "3", "--resume", "/nowhere"), "a run keeps its settings; got '--teachers 3'"),
    ],
)
def test_resume_refuses_what_it_cannot_follow(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_run_can_be_made_longer_and_equals_the_one_that_was_asked_for_at_once(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ("--teachers", "2", "--students", "1", *SMALL[2:], *SEEDS, "--base", str(base), "--save-every", "2")
    short, whole = tmp_path / "short", tmp_path / "whole"
    assert main([*settings, "--steps", "3", "--out", str(short)]) == 0
    assert main(["--resume", str(short), "--steps", "4"]) == 0
    capsys.readouterr()
    assert main([*settings, "--steps", "4", "--out", str(whole), "--quiet"]) == 0
    assert capsys.readouterr().out == f"{whole / 'report.html'}\n"
    assert contents(short) == contents(whole)
    assert (short / "config.yaml").read_bytes() == (whole / "config.yaml").read_bytes()
    before = files(short)
    assert main(["--resume", str(short)]) == 0
    assert files(short) == before


def test_a_single_agent_learns_from_its_own_problems_and_can_be_gone_on_with(base: Path, tmp_path: Path) -> None:
    settings = (*("--teachers", "2", "--students", "1", "--single-agent", "--baseline-compute", "total"), *SMALL[2:])
    settings = (*settings, *SEEDS, "--base", str(base), "--save-every", "1", "--log", "tensorboard")
    short, whole = tmp_path / "short", tmp_path / "whole"
    assert main([*settings, "--steps", "1", "--out", str(short)]) == 0
    assert main(["--resume", str(short), "--steps", "2"]) == 0
    assert main([*settings, "--steps", "2", "--out", str(whole)]) == 0
    assert contents(short) == contents(whole)
    assert (short / "config.yaml").read_bytes() == (whole / "config.yaml").read_bytes()
    assert len(list((short / "tensorboard").glob("events.*"))) == 2
    rows = read_rows(whole, "rollouts")
    assert {row["member_id"] for row in rows} == {"agent_0"}
    assert len({row["match_id"] for row in rows if row["step"] == 1}) == 2  # as many as two teachers and a student
    assert {check.name: check.faults for check in check_run(whole) if check.faults} == {}


def test_a_damaged_state_is_one_line_and_nothing_is_changed(
    run: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path(shutil.copytree(run[0], tmp_path / "copy"))
    (copy / "state" / "step=2" / "optimiser.safetensors").write_bytes(b"junk")
    before = files(copy)
    assert main(["--resume", str(copy), "--steps", "3"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: cannot go on with '{copy}' after step 2: ")
    assert error.count("\n") == 1
    assert files(copy) == before


def test_the_weights_of_the_base_are_recorded_and_others_are_not_gone_on_with(
    base: Path, run: tuple[Path, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path(shutil.copytree(run[0], tmp_path / "copy"))
    versions = json.loads((copy / "versions.json").read_text())
    weights = hashlib.sha256((base / "model.safetensors").read_bytes()).hexdigest()
    assert versions["base_sha256"] == {"model.safetensors": weights}
    versions["base_sha256"]["model.safetensors"] = "0" * 64
    (copy / "versions.json").write_text(json.dumps(versions))
    assert main(["--resume", str(copy), "--steps", "3"]) == 2
    assert "was played on other weights of" in capsys.readouterr().err


def test_two_processes_never_write_one_run(run: tuple[Path, str], capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.closing(RunFolder.reopen(run[0])):
        assert main(["--resume", str(run[0])]) == 2
    assert "another process is writing" in capsys.readouterr().err
