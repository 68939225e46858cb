"""`nano-heldout`: the suite of problems whose programs nano has never seen.

Owns the choice of problems: equal shares of the families and of depths 1-6, all of the generator's held-out split.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Final

import numpy as np

from populora_agents.nano.corpus import N_INPUTS
from populora_agents.suites import Item, Suite
from populora_env.generator import MAX_DEPTH, Generated, generate
from populora_env.generator_families import Family
from populora_env.types import Task

COUNT: Final = 500
"""Problems a task."""
_SEED: Final = 0x68656C64
_CELLS: Final = tuple(product(Family, range(1, MAX_DEPTH + 1)))


@lru_cache(maxsize=8)
def nano_heldout(count: int = COUNT) -> Suite:
    """Return the suite, always the same one for the same `count`.

    Args:
        count: Problems a task; families and depths come in turn, so their shares are as equal as it allows.

    Raises:
        ValueError: `count` is below 1.
    """
    if count < 1:
        raise ValueError(f"`count` must be at least 1, got {count!r}")
    name = "nano-heldout" if count == COUNT else f"nano-heldout-{count}"
    return Suite(name=name, items=tuple(item for task in Task for item in _of_task(task, count)))


def _of_task(task: Task, count: int) -> list[Item]:
    rng = np.random.default_rng([_SEED, list(Task).index(task)])
    order = rng.permutation(len(_CELLS))
    items: dict[str, Item] = {}
    for place in range(count):
        family, depth = _CELLS[order[place % len(_CELLS)]]
        made = _new(rng, task, family, depth, items)
        items[made.problem.problem_id] = Item(
            problem=made.problem, labels={"depth": str(made.depth), "family": str(made.family)}
        )
    return list(items.values())


def _new(rng: np.random.Generator, task: Task, family: Family, depth: int, known: dict[str, Item]) -> Generated:
    while True:
        made = generate(rng, task=task, n_inputs=N_INPUTS, depth=depth, family=family, split="held_out")
        if made.problem.problem_id not in known:
            return made
