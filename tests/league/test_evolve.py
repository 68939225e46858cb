"""The command that breeds PEFT folders without a league."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig as PeftConfig
from peft import PeftModel, get_peft_model
from transformers import Qwen2Config, Qwen2ForCausalLM

from league.evolve import evolve, main
from league.operators import OPERATORS

TARGETS = ["q_proj", "down_proj"]
Make = Callable[..., str]


def model() -> Qwen2ForCausalLM:
    torch.manual_seed(0)
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=31,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
        )
    )


@pytest.fixture
def adapter(tmp_path: Path) -> Make:
    """Return a function that has PEFT write an adapter and returns its folder."""

    def make(name: str, seed: int = 0, base: str | None = "some/base", **settings: Any) -> str:
        options = {"r": 4, "lora_alpha": 8, "target_modules": TARGETS, "lora_dropout": 0.1} | settings
        peft = get_peft_model(model(), PeftConfig(task_type="CAUSAL_LM", **options))
        draw = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for key, parameter in peft.named_parameters():
                if "lora_" in key:
                    parameter.copy_(0.2 * torch.randn(parameter.shape, generator=draw))
        peft.save_pretrained(str(tmp_path / name))
        edit(tmp_path / name, base_model_name_or_path=base)
        return str(tmp_path / name)

    return make


def edit(folder: Path, **fields: Any) -> None:
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_peft_loads_the_child_of_every_operator_and_it_does_something(name: str, adapter: Make, tmp_path: Path) -> None:
    parents = [adapter(f"p{seed}", seed) for seed in range(OPERATORS[name].arity)]
    evolve(name, parents, tmp_path / "child", seed=5)
    tokens = torch.arange(6)[None]
    with torch.no_grad():
        bare = model()(tokens).logits
        logits = PeftModel.from_pretrained(model(), str(tmp_path / "child"))(tokens).logits
        parent = PeftModel.from_pretrained(model(), parents[0])(tokens).logits
    assert (logits - bare).abs().max() > 1e-3
    assert torch.equal(logits, parent) is (name == "copy_parent")


def test_the_command_writes_an_adapter_its_settings_and_its_lineage(adapter: Make, tmp_path: Path) -> None:
    parents = [adapter("a", 0), adapter("b", 1)]
    out = tmp_path / "deep" / "child"
    arguments = [sys.executable, "-m", "league.evolve", "dare", *parents, "--out", str(out), "--seed", "7"]
    arguments += ["--drop", "0.5", "--json"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    record = json.loads(done.stdout)
    assert record == json.loads((out / "lineage.json").read_text())
    assert record["adapter_sha256"] == hashlib.sha256((out / "adapter_model.safetensors").read_bytes()).hexdigest()
    hashes = [hashlib.sha256((Path(p) / "adapter_model.safetensors").read_bytes()).hexdigest() for p in parents]
    assert [parent["folder"] for parent in record["parents"]] == parents
    assert [parent["adapter_sha256"] for parent in record["parents"]] == hashes
    assert (record["operator"], record["seed"]) == ("dare", 7)
    assert record["parameters"] == {"drop": 0.5, "weight": 0.5}
    settings = json.loads((out / "adapter_config.json").read_text())
    theirs = json.loads((Path(parents[0]) / "adapter_config.json").read_text())
    assert settings == theirs | {"inference_mode": True}
    assert sorted(path.name for path in out.parent.iterdir()) == ["child"], "nothing half-written is left"


def test_same_seed_same_bytes_and_another_seed_another_child(adapter: Make, tmp_path: Path) -> None:
    parent = adapter("a")
    first, same, other = (
        evolve("svd_perturb", [parent], tmp_path / name, seed=seed) for name, seed in (("x", 1), ("y", 1), ("z", 2))
    )
    assert files(tmp_path / "x") == files(tmp_path / "y")
    assert first["adapter_sha256"] == same["adapter_sha256"] != other["adapter_sha256"]


def test_parents_stay_as_they_are(adapter: Make, tmp_path: Path) -> None:
    parents = [adapter("a", 0), adapter("b", 1)]
    before = [files(Path(parent)) for parent in parents]
    evolve("ties", parents, tmp_path / "child", seed=0)
    assert [files(Path(parent)) for parent in parents] == before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"use_dora": True}, "DoRA"),
        ({"use_rslora": True}, "use_rslora"),
        ({"bias": "lora_only"}, "bias"),
        ({"rank_pattern": {"q_proj": 2}}, "rank_pattern"),
        ({"alpha_pattern": {"q_proj": 2}}, "alpha_pattern"),
        ({"base": "another/base"}, "parents differ in base: .*some/base.*another/base.*--base"),
        ({"r": 2}, "parents differ in rank: .* has 4, .* has 2"),
        ({"lora_alpha": 16}, "parents differ in alpha: .* has 8.0, .* has 16.0"),
        (
            {"target_modules": ["q_proj"]},
            "differs from parent 0 in modules, for example 'model.layers.0.mlp.down_proj'",
        ),
    ],
)
def test_adapters_that_cannot_be_crossed_are_refused_with_the_reason(
    settings: dict[str, Any], message: str, adapter: Make, tmp_path: Path
) -> None:
    good, bad = adapter("good"), adapter("bad", 1, **settings)
    with pytest.raises(ValueError, match=message) as refused:
        evolve("layer_select", [good, bad], tmp_path / "child", seed=0)
    assert bad in str(refused.value), "of two parents one has to know which"
    assert not (tmp_path / "child").exists()


def test_factors_that_are_not_finite_are_refused(adapter: Make, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    good, bad = adapter("good"), adapter("bad", 1)
    path = Path(bad) / "adapter_model.safetensors"
    tensors = load_file(path)
    next(iter(tensors.values()))[0, 0] = float("nan")
    save_file(tensors, path)
    with pytest.raises(ValueError, match=f"{bad}: 'model.layers.* not finite"):
        evolve("layer_select", [good, bad], tmp_path / "child", seed=0)


def test_bases_that_are_named_differently_are_taken_for_one_when_told(adapter: Make, tmp_path: Path) -> None:
    parents = [adapter("a", 0), adapter("b", 1, base="/elsewhere/base")]
    evolve("slerp", parents, tmp_path / "child", seed=0, base="some/base")
    assert (
        json.loads((tmp_path / "child" / "adapter_config.json").read_text())["base_model_name_or_path"] == "some/base"
    )


def test_what_cannot_be_done_is_one_line_and_exit_status_2(
    adapter: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parent, new = adapter("a"), str(tmp_path / "child")
    for arguments, message in (
        (["magic", parent, "--out", new, "--seed", "0"], "got 'magic'"),
        (["copy_parent", parent, parent, "--out", new, "--seed", "0"], "takes 1 parents, got 2"),
        (["copy_parent", str(tmp_path), "--out", new, "--seed", "0"], "has no adapter_config.json"),
        (["copy_parent", parent, "--out", new, "--seed", "-1"], "`seed`"),
        (["copy_parent", parent, "--out", new, "--seed", "one"], "invalid int value"),
        (["copy_parent", parent, "--out", new], "--seed"),
        (["svd_perturb", parent, "--out", new, "--seed", "0", "--param", "eps=1"], "no parameter ['eps']"),
        (["svd_perturb", parent, "--out", new, "--seed", "0", "--param", "epsilon"], "NAME=VALUE"),
        (["svd_perturb", parent, "--out", new, "--seed", "0", "--param", "epsilon=nan"], "`epsilon`"),
        (["svd_perturb", parent, "--out", new, "--seed", "0", "--epsilon", "1", "--param", "epsilon=1"], "once"),
        (["svd_perturb", parent, "--out", new, "--seed", "0", "--share", "0.5"], "no parameter ['share']"),
        (["copy_parent", parent, "--out", parent, "--seed", "0"], "exists already"),
        (["no.such.module:f", parent, "--out", new, "--seed", "0"], "cannot import"),
    ):
        assert main(arguments) == 2, arguments
        captured = capsys.readouterr()
        assert captured.out == ""
        assert len(captured.err.splitlines()) == 1
        assert message in captured.err
        assert not Path(new).exists()


def test_only_an_adapter_is_ever_replaced_and_only_when_told(adapter: Make, tmp_path: Path) -> None:
    parent, out = adapter("a"), tmp_path / "child"
    out.mkdir()
    evolve("copy_parent", [parent], out, seed=0)
    before = files(out)
    with pytest.raises(ValueError, match="--overwrite"):
        evolve("svd_perturb", [parent], out, seed=0)
    assert files(out) == before
    evolve("svd_perturb", [parent], out, seed=0, overwrite=True)
    assert files(out).keys() == before.keys()
    assert files(out) != before
    (out / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"notes\.txt"):
        evolve("svd_perturb", [parent], out, seed=0, overwrite=True)
    assert (out / "notes.txt").read_text() == "mine"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="holds no adapter"):
        evolve("svd_perturb", [parent], tmp_path / "other", seed=0, overwrite=True)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="no folder of its own"):
        evolve("svd_perturb", [parent], tmp_path / "file", seed=0, overwrite=True)


def test_parameters_are_flags_or_pairs(adapter: Make, tmp_path: Path) -> None:
    parent = adapter("a")
    for name, given in (
        ("flags", ["--epsilon", "0.5", "--share", "0.25"]),
        ("pairs", ["--param", "epsilon=0.5", "share=0.25"]),
        ("mixed", ["--share", "0.25", "--param", "epsilon=0.5"]),
        ("apart", ["--param", "epsilon=0.5", "--param", "share=0.25"]),
    ):
        assert main(["layer_gaussian", *given, "--out", str(tmp_path / name), parent, "--seed", "0"]) == 0
        assert json.loads((tmp_path / name / "lineage.json").read_text())["parameters"] == {
            "epsilon": 0.5,
            "share": 0.25,
        }
        assert files(tmp_path / name) == files(tmp_path / "flags")


def test_the_child_of_bfloat16_parents_is_bfloat16(adapter: Make, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    parents = [adapter("a", 0), adapter("b", 1)]
    for parent in parents:
        path = Path(parent) / "adapter_model.safetensors"
        save_file({key: tensor.bfloat16() for key, tensor in load_file(path).items()}, path)
    evolve("svd_mix", parents, tmp_path / "child", seed=0)
    child = load_file(tmp_path / "child" / "adapter_model.safetensors")
    assert {tensor.dtype for tensor in child.values()} == {torch.bfloat16}


def test_list_names_every_operator_whatever_else_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--list"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert all(f"  {name} PARENT" in text for name in OPERATORS)


def test_help_names_every_operator_with_its_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for operator in OPERATORS.values():
        assert f"  {operator.name} PARENT" in text
        assert all(f"{name}=" in text and f"--{name} X" in text for name in operator.parameters)
