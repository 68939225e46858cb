"""Loading bases: what is read, and one clear line for everything that cannot be."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub.errors import RepositoryNotFoundError
from tiny_bases import CHAT_TEMPLATE, make_model, make_tokenizer

from populora_agents import bases
from populora_agents.bases import BaseError, load_base
from populora_agents.config import LARGE, NANO, SMALL


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    make_model(dtype=torch.bfloat16).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "base"))


def edit_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def refusal(name: str | Path) -> str:
    with pytest.raises(BaseError) as caught:
        load_base(str(name))
    assert caught.value.__cause__ is None
    assert "\n" not in str(caught.value)
    assert repr(str(name)) in str(caught.value)
    return str(caught.value)


def test_a_folder_is_read_as_float32_on_a_cpu(folder: Path) -> None:
    base = load_base(str(folder))
    assert {parameter.dtype for parameter in base.model.parameters()} == {torch.float32}
    assert not any(parameter.requires_grad for parameter in base.model.parameters())
    assert not base.model.training
    expected = make_model(dtype=torch.bfloat16).float()
    assert torch.equal(base.model.lm_head.weight, expected.lm_head.weight)  # type: ignore[union-attr]
    assert base.preset is LARGE
    assert base.eos_ids == {256}
    assert base.context_tokens == 256
    assert load_base(str(folder), dtype=torch.bfloat16).model.dtype == torch.bfloat16


def test_the_preset_may_be_given_or_named_in_the_folder(folder: Path) -> None:
    assert load_base(str(folder), preset=NANO).preset is NANO
    edit_config(folder, populora_preset="nano")
    assert load_base(str(folder)).preset is NANO


@pytest.mark.parametrize("in_settings", [False, True])
def test_a_small_model_that_chats_gets_the_small_preset(
    folder: Path, monkeypatch: pytest.MonkeyPatch, in_settings: bool
) -> None:
    assert load_base(str(folder)).preset is LARGE
    if in_settings:
        path = folder / "tokenizer_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"chat_template": CHAT_TEMPLATE}))
    else:
        (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    assert load_base(str(folder)).preset is SMALL
    monkeypatch.setattr(bases, "_LARGE_FROM", 1000)
    assert load_base(str(folder)).preset is LARGE


def test_nano_resolves_to_its_newest_version(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(saved, tmp_path / bases.NANO_VERSIONS[-1])
    monkeypatch.setattr(bases, "_WEIGHTS", tmp_path)
    base = load_base("nano")
    assert base.name == bases.NANO_VERSIONS[-1]
    assert base.preset is NANO


@pytest.mark.parametrize("name", ["", "nothing-here", "/no/such/folder", "./gone", "a/b/c", "owner/../../etc"])
def test_names_that_mean_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = refusal(name)
    assert "neither" in said or "config.json" in said


def test_a_version_of_nano_that_does_not_exist() -> None:
    assert "there is nano-1, nano-2, nano-3" in refusal("nano-999")


@pytest.mark.parametrize("version", bases.NANO_VERSIONS)
def test_every_version_of_nano_stays_loadable_and_small(version: str) -> None:
    base = load_base(version)
    assert (base.name, base.preset) == (version, NANO)
    weights = Path(bases.__file__).parent / "nano" / "weights" / version / "model.safetensors"
    assert weights.stat().st_size <= 8 << 20


@pytest.mark.parametrize(
    ("pattern", "said"),
    [("config.json", "config.json is missing"), ("*.safetensors", "no weights"), ("tokenizer*", "no tokenizer")],
)
def test_missing_files(folder: Path, pattern: str, said: str) -> None:
    for path in folder.glob(pattern):
        path.unlink()
    assert said in refusal(folder)


def test_an_empty_folder(tmp_path: Path) -> None:
    assert "config.json is missing" in refusal(tmp_path)


@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", [b"", b"\x00\xffjunk", b"[1, 2]"])
def test_corrupted_files(folder: Path, file: str, content: bytes) -> None:
    (folder / file).write_bytes(content)
    assert ("its tokenizer cannot" if file.startswith("tokenizer") else "its model cannot") in refusal(folder)


def test_truncated_weights(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    refusal(folder)


def test_weights_of_another_shape(folder: Path) -> None:
    edit_config(folder, hidden_size=64)
    assert "mismatched: model" in refusal(folder)


def test_weights_that_lack_a_layer(folder: Path) -> None:
    edit_config(folder, num_hidden_layers=3)
    assert "missing: model.layers.2" in refusal(folder)


def test_a_tokenizer_that_is_too_large_for_the_model(folder: Path) -> None:
    tokenizer = make_tokenizer()
    tokenizer.add_tokens(["one", "two"])
    tokenizer.save_pretrained(folder)
    assert "261 tokens" in refusal(folder)


def test_code_in_the_folder_is_never_run(folder: Path) -> None:
    (folder / "evil.py").write_text("raise SystemExit('ran')\n")
    edit_config(folder, auto_map={"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}, model_type="evil")
    refusal(folder)


@pytest.fixture
def hub_cache(saved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the snapshot of `owner/model` in a cache of its own, with a hub that must not be asked."""
    repository = tmp_path / "hub" / "models--owner--model"
    snapshot = repository / "snapshots" / ("0" * 40)
    shutil.copytree(saved, snapshot)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    real = bases.snapshot_download

    def from_cache(*arguments: Any, **settings: Any) -> str:
        return real(*arguments, cache_dir=tmp_path / "hub", **settings)

    monkeypatch.setattr(bases, "snapshot_download", from_cache)
    return snapshot


def hub_says(monkeypatch: pytest.MonkeyPatch, error: Exception) -> list[str]:
    """Let every question to the hub end in `error`; return the list of the names that are asked for."""
    asked: list[str] = []

    def fail(_: object, name: str, **__: object) -> None:
        asked.append(name)
        raise error

    monkeypatch.setattr(bases.HfApi, "model_info", fail)
    return asked


def test_a_model_in_the_cache_is_read_without_asking_the_hub(hub_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = hub_says(monkeypatch, OSError("no network"))
    assert load_base("owner/model").context_tokens == 256
    assert asked == []
    assert hub_cache.is_dir()


@pytest.mark.parametrize("lost", ["model.safetensors", "tokenizer.json", "shard"])
def test_a_download_that_was_cut_short_is_not_taken_for_the_model(
    hub_cache: Path, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lost == "shard":
        index = {"weight_map": {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}}
        (hub_cache / "model.safetensors.index.json").write_text(json.dumps(index))
    else:
        for path in hub_cache.glob(lost.partition(".")[0] + "*"):
            path.unlink()
    asked = hub_says(monkeypatch, OSError("no network"))
    assert "the hub does not answer" in refusal("owner/model")
    assert asked == ["owner/model"]


def test_a_hub_that_is_out_of_reach(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    asked = hub_says(monkeypatch, OSError("no network"))
    assert "the hub does not answer" in refusal("nobody/no-such-model-of-ours")
    assert asked == ["nobody/no-such-model-of-ours"]
    assert capfd.readouterr() == ("", "")


def test_a_model_that_the_hub_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    hub_says(monkeypatch, RepositoryNotFoundError.__new__(RepositoryNotFoundError))
    assert "the hub has no such model" in refusal("nobody/no-such-model-of-ours")
