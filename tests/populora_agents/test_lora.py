"""Adapter files: ours in PEFT, PEFT's here, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig as PeftConfig
from peft import PeftModel, get_peft_model
from safetensors.torch import save_file
from tiny_bases import make_model, random_adapter

from populora_agents.config import LoraConfig
from populora_agents.lora import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    LoraFactors,
    adapter_sha256,
    fresh_adapter,
    load_adapter,
    save_adapter,
)
from populora_agents.stack import AdapterStack

CONFIG = LoraConfig(lora_rank=4, alpha=8.0)
IDS = torch.arange(24).view(2, 12)


def stacked_logits(adapter: Any) -> torch.Tensor:
    stack = AdapterStack(make_model(), CONFIG, 1)
    stack.load(0, adapter)
    with stack.route([0, 0]), torch.no_grad():
        return stack.model(input_ids=IDS).logits


def edit_config(folder: Path, **changes: Any) -> None:
    path = folder / CONFIG_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_adapter(tmp_path, random_adapter(make_model(), CONFIG, 0), CONFIG, "tiny")
    return tmp_path


def test_what_we_write_loads_in_peft_with_the_same_logits(tmp_path: Path) -> None:
    adapter = random_adapter(make_model(), CONFIG, 1)
    save_adapter(tmp_path, adapter, CONFIG, "tiny")
    with torch.no_grad():
        theirs = PeftModel.from_pretrained(make_model(), str(tmp_path)).eval()(input_ids=IDS).logits
    torch.testing.assert_close(stacked_logits(adapter), theirs, rtol=1e-5, atol=1e-5)


def test_what_peft_writes_loads_here_with_the_same_logits(tmp_path: Path) -> None:
    model = get_peft_model(make_model(), PeftConfig(r=4, lora_alpha=8, target_modules=list(CONFIG.targets)))
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.1)
        theirs = model.eval()(input_ids=IDS).logits
    model.save_pretrained(str(tmp_path))
    adapter, config = load_adapter(tmp_path)
    assert (config.lora_rank, config.alpha, set(config.targets)) == (4, 8.0, set(CONFIG.targets))
    torch.testing.assert_close(stacked_logits(adapter), theirs, rtol=1e-5, atol=1e-5)


def test_a_round_trip_keeps_every_bit(folder: Path) -> None:
    adapter, config = load_adapter(folder)
    expected = random_adapter(make_model(), CONFIG, 0)
    assert set(adapter) == set(expected)
    assert config.scaling == 2.0
    for path, pair in expected.items():
        assert torch.equal(adapter[path].A, pair.A)
        assert torch.equal(adapter[path].B, pair.B)


def test_equal_factors_give_equal_files_whatever_their_order(tmp_path: Path) -> None:
    adapter = random_adapter(make_model(), CONFIG, 0)
    backwards = dict(reversed(list(adapter.items())))
    first = save_adapter(tmp_path / "a", adapter, CONFIG, "tiny")
    second = save_adapter(tmp_path / "b", backwards, CONFIG, "tiny")
    assert adapter_sha256(adapter, CONFIG) == first
    assert first == second
    for file in (CONFIG_FILE, WEIGHTS_FILE):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_a_fresh_adapter_is_pefts_initialisation() -> None:
    adapter = fresh_adapter(make_model(), CONFIG, torch.Generator().manual_seed(0))
    again = fresh_adapter(make_model(), CONFIG, torch.Generator().manual_seed(0))
    for path, pair in adapter.items():
        bound = pair.A.shape[1] ** -0.5
        assert not pair.B.any()
        assert 0.8 * bound < pair.A.abs().max() <= bound
        assert torch.equal(pair.A, again[path].A)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"use_dora": True}, "DoRA"),
        ({"use_rslora": True}, "use_rslora"),
        ({"bias": "all"}, "bias 'all'"),
        ({"rank_pattern": {"q_proj": 2}}, "rank_pattern"),
        ({"alpha_pattern": {"q_proj": 2}}, "alpha_pattern"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save"),
        ({"init_lora_weights": "pissa_niter_4"}, "changes the base"),
        ({"peft_type": "IA3"}, "IA3"),
        ({"r": 2}, "has rank 4, the config says 2"),
        ({"r": "four"}, "`r` and `lora_alpha`"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(folder: Path, changes: dict[str, Any], said: str) -> None:
    edit_config(folder, **changes)
    with pytest.raises(ValueError, match=said):
        load_adapter(folder)


@pytest.mark.parametrize("file", [CONFIG_FILE, WEIGHTS_FILE])
@pytest.mark.parametrize("content", [None, b"", b"\x00\xff junk"])
def test_broken_files_are_named(folder: Path, file: str, content: bytes | None) -> None:
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(content)
    with pytest.raises(ValueError, match=file):
        load_adapter(folder)


def test_strange_tensors_are_refused(folder: Path) -> None:
    save_file({"base_model.model.x.lora_magnitude_vector.weight": torch.ones(2)}, folder / WEIGHTS_FILE)
    with pytest.raises(ValueError, match="magnitude"):
        load_adapter(folder)
    save_file({"base_model.model.x.lora_A.weight": torch.ones(4, 2)}, folder / WEIGHTS_FILE)
    with pytest.raises(ValueError, match="only lora_A"):
        load_adapter(folder)


def test_factors_that_are_not_finite_are_never_written(tmp_path: Path) -> None:
    adapter = random_adapter(make_model(), CONFIG, 0)
    next(iter(adapter.values())).A[0, 0] = float("nan")
    with pytest.raises(ValueError, match="not finite"):
        save_adapter(tmp_path, adapter, CONFIG, "tiny")
    assert not any(tmp_path.iterdir())


def test_factors_must_fit_each_other() -> None:
    with pytest.raises(ValueError, match=r"\[3, 4\] and \[5, 2\]"):
        LoraFactors(A=torch.zeros(3, 4), B=torch.zeros(5, 2))
