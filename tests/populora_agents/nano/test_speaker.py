"""The speaker: texts begin as told, the same seed says the same, greedy texts are the backend's."""

from __future__ import annotations

import numpy as np
import pytest

from populora_agents.backends.torch import TorchBackend
from populora_agents.bases import Base, load_base
from populora_agents.nano.speaker import Speaker
from populora_agents.types import Request
from populora_env.generator import generate_problem
from populora_env.prompts import get_style
from populora_env.types import Observation, Role, Task


@pytest.fixture(scope="module")
def base() -> Base:
    return load_base("nano")


def observations(count: int) -> list[Observation]:
    rng, style = np.random.default_rng(0), get_style("compact")
    prompts = [style.solver_prompt(generate_problem(rng, task=Task.DEDUCTION)) for _ in range(count)]
    return [
        Observation(role=Role.SOLVER, task=Task.DEDUCTION, prompt=prompt, messages=style.messages(prompt))
        for prompt in prompts
    ]


def test_greedy_texts_are_those_of_the_backend(base: Base) -> None:
    asked = observations(12)
    requests = [
        Request(adapter=None, messages=one.messages, max_new_tokens=24, temperature=0.0, seed=0) for one in asked
    ]
    expected = [completion.text for completion in TorchBackend(base, None, {}).generate(requests)]
    assert Speaker(base, None, seed=0)(asked, 0.0, 24) == expected


def test_texts_begin_as_they_are_told(base: Base) -> None:
    texts = Speaker(base, None, seed=0)(observations(5), 1.0, 16, "a = ")
    assert all(text.startswith("a = ") for text in texts)


def test_the_seed_decides(base: Base) -> None:
    asked = observations(8)
    assert Speaker(base, None, seed=1)(asked, 1.0, 16) == Speaker(base, None, seed=1)(asked, 1.0, 16)
    assert Speaker(base, None, seed=1)(asked, 1.0, 16) != Speaker(base, None, seed=2)(asked, 1.0, 16)
