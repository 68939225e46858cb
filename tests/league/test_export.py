"""A member as a folder for the hub: PEFT loads it, it names no path, and what is wrong is one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from scripted import save_base

from league.export import ancestry, main
from league.run import main as run_league
from league.storage import read_rows
from populora_agents.bases import load_base
from populora_agents.lora import load_adapter

SETTINGS = (
    *("--teachers", "1", "--students", "2", "--steps", "2", "--evolve-every", "2", "--min-age", "0"),
    *("--proposals", "2", "--proposal-tokens", "24", "--answer-tokens", "8", "--game.seed-problems", "16"),
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    assert run_league([*SETTINGS, "--base", str(save_base(folder / "tiny-base")), "--out", str(folder / "run")]) == 0
    return folder / "run"


def test_peft_loads_the_folder_and_no_path_of_the_machine_is_in_it(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main([str(run), "teacher_0", str(out), "--base", "owner/tiny"]) == 0
    assert {path.name for path in out.iterdir()} == {"README.md", "adapter_config.json", "adapter_model.safetensors"}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    fields = json.loads((out / "adapter_config.json").read_text())
    assert fields["base_model_name_or_path"] == "owner/tiny"
    written = (out / "README.md").read_text() + json.dumps(fields)
    assert str(run.parent) not in written
    assert "base_model: owner/tiny" in written
    base = load_base(str(run.parent / "tiny-base")).model
    model = PeftModel.from_pretrained(base, str(out))
    adapter, _ = load_adapter(run / "adapters" / "teacher_0" / "2")
    for module, factors in adapter.items():
        layer = model.get_submodule(f"base_model.model.{module}")
        assert torch.equal(layer.lora_B["default"].weight, factors.B), module


def test_an_older_version_has_the_rating_of_its_time(run: Path, tmp_path: Path) -> None:
    assert main([str(run), "teacher_0", str(tmp_path / "first"), "--version", "0"]) == 0
    assert "| 25.00 | 8.33 | 16.67 | 0 | 0 | 0 | - |" in (tmp_path / "first" / "README.md").read_text()


def test_a_base_in_a_folder_is_named_without_it_and_the_user_is_told(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(run), "teacher_0", str(tmp_path / "out")]) == 0
    assert "the base 'tiny-base' is no hub id: say --base" in capsys.readouterr().out
    assert str(run.parent) not in (tmp_path / "out" / "README.md").read_text()


def test_members_that_were_replaced_can_be_exported_with_their_ancestors(run: Path, tmp_path: Path) -> None:
    lineage = read_rows(run, "lineage")
    (victim,) = {row["member_id"] for row in read_rows(run, "ratings") if row["event"] == "retire"} - {"teacher_0"}
    assert main([str(run), victim, str(tmp_path / "out")]) == 0
    child = next(row for row in lineage if row["parents"])
    assert [row["child_id"] for row in ancestry(lineage, child["child_id"])][-1] == child["child_id"]
    assert set(child["parents"]) <= {row["child_id"] for row in ancestry(lineage, child["child_id"])}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{run}", "student_99", "{out}"), "there is no member 'student_99'"),
        (("{run}", "teacher_0", "{out}", "--version", "1"), "teacher_0 has no version 1 in"),
        (("{run}", "teacher_0", "{out}", "--base", "no hub id"), "`base` must be a hub id"),
        (("{run}", "teacher_0", "{run}"), "exists already"),
        (("{out}", "teacher_0", "{out}"), "is no run folder"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    out = tmp_path / "out"
    assert main([argument.format(run=run, out=out) for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert message in error
    assert not out.exists()


def test_damaged_weights_are_not_exported(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    weights = copy / "adapters" / "teacher_0" / "2" / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    assert main([str(copy), "teacher_0", str(tmp_path / "out")]) == 2
    assert "is not the file that was committed" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
