"""Names and numbers that are used once, and files that PEFT's loader takes."""

from __future__ import annotations

import os
import subprocess
import sys
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


def test_a_new_shelf_removes_those_of_killed_processes_and_no_others(tmp_path: Path) -> None:
    program = (
        "from test_shelf import *; shelf = Shelf(CONFIG, 'tiny', parent=Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", f"import os, sys; {program}", str(tmp_path)]
    paths = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    subprocess.run(command, env=os.environ | paths, check=False)
    (abandoned,) = tmp_path.iterdir()
    stranger = tmp_path / "populora-of-mine"
    stranger.mkdir()
    first = Shelf(CONFIG, "tiny", parent=tmp_path)
    assert not abandoned.exists()
    second = Shelf(CONFIG, "tiny", parent=tmp_path)
    assert len(list(tmp_path.iterdir())) == 3
    first.close()
    second.close()
    assert list(tmp_path.iterdir()) == [stranger]


def test_what_is_published_is_the_adapter(tmp_path: Path) -> None:
    adapter = random_adapter(make_model(), CONFIG, 0)
    shelf = Shelf(CONFIG, "tiny", parent=tmp_path)
    published = shelf.publish(VERSION, adapter)
    loaded, config = load_adapter(published.folder)
    assert published.modules == len(adapter) == len(loaded)
    assert config.scaling == CONFIG.scaling
    assert all(torch.equal(loaded[path].B, pair.B) for path, pair in adapter.items())
    shelf.close()
