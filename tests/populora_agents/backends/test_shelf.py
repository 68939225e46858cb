"""Names and numbers that are used once, and files that PEFT's loader takes."""

from __future__ import annotations

from pathlib import Path

import torch
from tiny_bases import make_model, random_adapter

from populora_agents.backends.shelf import Shelf
from populora_agents.config import LoraConfig
from populora_agents.lora import load_adapter
from populora_agents.types import AdapterVersion

CONFIG = LoraConfig(lora_rank=4, alpha=8.0)
VERSION = AdapterVersion(member_id="m", version=3)


def test_even_the_same_version_gets_another_name_and_number_on_any_shelf(tmp_path: Path) -> None:
    adapter = random_adapter(make_model(), CONFIG, 0)
    shelves = [Shelf(CONFIG, "tiny", parent=tmp_path) for _ in range(2)]
    published = [shelf.publish(VERSION, adapter) for shelf in shelves for _ in range(3)]
    assert len({one.number for one in published}) == len({one.name for one in published}) == 6
    shelves[0].withdraw(published[0])
    again = shelves[0].publish(VERSION, adapter)
    assert again.number > max(one.number for one in published)
    for shelf in shelves:
        shelf.close()
    assert list(tmp_path.iterdir()) == []


def test_what_is_published_is_the_adapter(tmp_path: Path) -> None:
    adapter = random_adapter(make_model(), CONFIG, 0)
    shelf = Shelf(CONFIG, "tiny", parent=tmp_path)
    published = shelf.publish(VERSION, adapter)
    loaded, config = load_adapter(published.folder)
    assert published.modules == len(adapter) == len(loaded)
    assert config.scaling == CONFIG.scaling
    assert all(torch.equal(loaded[path].B, pair.B) for path, pair in adapter.items())
    shelf.close()
