"""Files of the slots' states: what was put in comes out, old ones go, and one path is one state."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from league.executors.ledger import Ledger, RowShapes, write_moments
from league.storage import StorageError
from populora_agents.config import LoraConfig
from populora_agents.lora import Adapter, LoraFactors

LORA = LoraConfig(lora_rank=2, alpha=4.0, targets=("q_proj",))
SLOTS = 2
SHAPES: RowShapes = {"first": ((3,), torch.float32), "counts": ((), torch.int64)}


def adapter(value: float) -> Adapter:
    return {"model.layers.0.self_attn.q_proj": LoraFactors(A=torch.full((2, 4), value), B=torch.ones(4, 2))}


def make_ledger(folder: Path) -> Ledger:
    ledger = Ledger(folder / "exchange", LORA, "base", SLOTS)
    for slot in (0, 1):
        ledger.load(slot, adapter(float(slot)))
    return ledger


def test_what_was_loaded_comes_back_and_paths_are_never_used_again(tmp_path: Path) -> None:
    ledger = make_ledger(tmp_path)
    paths = {ledger.place(0).weights}
    for value in (5.0, 6.0):
        ledger.load(0, adapter(value))
        assert ledger.adapter(0)["model.layers.0.self_attn.q_proj"].A[0, 0] == value
        paths.add(ledger.place(0).weights)
    assert len(paths) == 3
    assert sorted(path.name for path in (tmp_path / "exchange" / "0").iterdir()) == [Path(ledger.place(0).weights).name]


def test_moments_are_rows_by_slot_zero_until_learnt_and_forgotten_at_a_birth(tmp_path: Path) -> None:
    ledger = make_ledger(tmp_path)
    target = ledger.fresh(1)
    write_moments(target, {"first": torch.tensor([1.0, 2.0, 3.0]), "counts": torch.tensor(4)})
    ledger.learnt({1: target})
    state = ledger.moments(SHAPES)
    assert state["first"].tolist() == [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]
    assert state["counts"].tolist() == [0, 4]
    (tmp_path / "other").mkdir()
    other = make_ledger(tmp_path / "other")
    other.set_moments(state, SHAPES)
    assert all(torch.equal(value, state[name]) for name, value in other.moments(SHAPES).items())
    other.load(1, adapter(9.0))
    assert other.moments(SHAPES)["counts"].tolist() == [0, 4], "weights alone were replaced"
    other.reset_moments(1)
    assert other.moments(SHAPES)["counts"].tolist() == [0, 0]


def test_a_slot_that_nothing_was_loaded_into_has_a_row_of_zeros_as_in_one_process(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "exchange", LORA, "base", 3)
    for slot in (0, 1):
        ledger.load(slot, adapter(float(slot)))
    state = {"first": torch.tensor([[1.0] * 3, [2.0] * 3, [0.0] * 3]), "counts": torch.tensor([4, 5, 0])}
    ledger.set_moments(state, SHAPES)
    assert all(torch.equal(value, state[name]) for name, value in ledger.moments(SHAPES).items())


def test_a_state_of_another_shape_or_without_a_part_is_refused(tmp_path: Path) -> None:
    ledger = make_ledger(tmp_path)
    with pytest.raises(ValueError, match="expected 'first' to be"):
        ledger.set_moments({"first": torch.zeros(2, 4), "counts": torch.zeros(2)}, SHAPES)
    with pytest.raises(ValueError, match="got 'nothing'"):
        ledger.set_moments({"counts": torch.zeros(2)}, SHAPES)
    with pytest.raises(ValueError, match="slot 7 is empty"):
        ledger.adapter(7)


def test_what_a_killed_process_left_goes_first_and_all_goes_at_the_end(tmp_path: Path) -> None:
    left = tmp_path / "exchange" / "0" / "1"
    left.mkdir(parents=True)
    (left / "moments.safetensors").write_text("torn")
    ledger = Ledger(tmp_path / "exchange", LORA, "base", SLOTS)
    assert left.exists(), "nothing is touched before the run folder is ours"
    ledger.load(0, adapter(1.0))
    assert not (left / "moments.safetensors").exists()
    ledger.close()
    assert list(tmp_path.iterdir()) == []


def test_a_lost_folder_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ledger = Ledger(tmp_path / "file" / "exchange", LORA, "base", SLOTS)
    with pytest.raises(StorageError, match="cannot keep adapters in"):
        ledger.load(0, adapter(1.0))
