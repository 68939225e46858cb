"""Which programs may share a process: plain ones, and nothing that could be felt by the next."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from populora_env.generator import generate_problem
from populora_env.sharing import leaves_nothing
from populora_env.types import Task


def test_programs_of_our_generator_are_plain() -> None:
    rng = np.random.default_rng(3)
    programs = [generate_problem(rng, task=task).program for task in Task for _ in range(60)]
    assert all(leaves_nothing(list(ast.walk(ast.parse(program)))) for program in programs)


@pytest.mark.parametrize(
    "program",
    [
        "import math\ndef f(x):\n    return x",
        "def f(x):\n    try:\n        return x\n    except Exception:\n        return 0",
        "def f(x):\n    with x:\n        return 0",
        "class A: pass\ndef f(x):\n    return x",
        "def f(x):\n    return __import__('os')",
        "def f(x):\n    return getattr(x, 'a')",
        "def f(x):\n    return open(x)",
        "def f(x):\n    return exec(x)",
        "def f(x):\n    return x.__class__",
        "def f(x):\n    x.append = 1",
        "def f(x):\n    return '{0.a}'.format(x)",
        "def f(x):\n    return x.gi_frame",
        "def f(x):\n    global y\n    y = x",
        "@print\ndef f(x):\n    return x",
        "def f(x):\n    del x",
        "async def f(x):\n    return x",
        "def f(x):\n    yield x",
        "def f(x):\n    return __builtins__",
    ],
)
def test_what_might_be_felt_later_runs_alone(program: str) -> None:
    assert not leaves_nothing(list(ast.walk(ast.parse(program))))
