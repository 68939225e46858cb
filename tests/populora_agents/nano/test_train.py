"""nano's training: resumable bit for bit, and what it writes loads anywhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from populora_agents.nano import train as train_module
from populora_agents.nano.recipe import Recipe
from populora_agents.nano.train import main, train

TINY = Recipe(hidden=32, layers=1, mlp=32, steps=6, decay=2, batch_tokens=256, chunk=48, warmup=2)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def test_an_interrupted_run_ends_in_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train(TINY, tmp_path / "whole")
    monkeypatch.setattr(train_module, "_SAVE_EVERY", 2)
    update = train_module._Run.update

    def dies_at_5(run: train_module._Run, batch: object) -> float:
        if run.step == 5:
            raise KeyboardInterrupt
        return update(run, batch)  # type: ignore[arg-type]

    monkeypatch.setattr(train_module._Run, "update", dies_at_5)
    with pytest.raises(KeyboardInterrupt):
        train(TINY, tmp_path / "cut")
    monkeypatch.setattr(train_module._Run, "update", update)
    train(TINY, tmp_path / "cut")
    whole, cut = weights(tmp_path / "whole"), weights(tmp_path / "cut")
    assert all(torch.equal(whole[name], cut[name]) for name in whole)


def test_the_folder_loads_in_transformers_and_its_weights_are_16_bit(tmp_path: Path) -> None:
    train(TINY, tmp_path)
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert model.config.eos_token_id == AutoTokenizer.from_pretrained(tmp_path).eos_token_id
    assert {tensor.dtype for tensor in weights(tmp_path).values()} == {torch.bfloat16}


def test_figures_are_logged_and_change_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    train(TINY, tmp_path / "silent")
    with caplog.at_level("INFO"):
        train(TINY, tmp_path / "measured", measure_every=3)
    assert len([line for line in caplog.messages if "worked_depth_4 " in line]) == 2
    silent, measured = weights(tmp_path / "silent"), weights(tmp_path / "measured")
    assert all(torch.equal(silent[name], measured[name]) for name in silent)


def test_another_recipe_does_not_go_on_from_this_checkpoint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(TINY, tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["--out", str(tmp_path), "--steps", "7", "--decay", "0", "--threads", "1"])
    assert stop.value.code == 2
    assert "another recipe" in capsys.readouterr().err


def test_a_copy_of_a_running_schedule_can_be_brought_to_its_end(tmp_path: Path) -> None:
    train(replace(TINY, steps=4, decay=0), tmp_path / "running")
    before = (tmp_path / "running" / "checkpoint.pt").read_bytes()
    train(TINY, tmp_path / "ended", start=tmp_path / "running" / "checkpoint.pt")
    train(TINY, tmp_path / "whole")
    ended, whole = weights(tmp_path / "ended"), weights(tmp_path / "whole")
    assert all(torch.equal(ended[name], whole[name]) for name in whole)
    assert (tmp_path / "running" / "checkpoint.pt").read_bytes() == before
