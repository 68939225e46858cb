"""Fixtures of this package's tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tiny_bases import make_model, make_tokenizer

from populora_agents.bases import Base
from populora_agents.config import NANO, LoraConfig


@pytest.fixture
def base() -> Base:
    return Base(model=make_model(), tokenizer=make_tokenizer(), preset=NANO, name="tiny")


@pytest.fixture
def lora_config() -> LoraConfig:
    return LoraConfig(lora_rank=4, alpha=8.0)


@pytest.fixture
def make_base() -> Callable[..., Base]:
    def make(*, chat: bool = False, split: bool = True, seed: int = 0) -> Base:
        return Base(
            model=make_model(seed=seed), tokenizer=make_tokenizer(chat=chat, split=split), preset=NANO, name="tiny"
        )

    return make
