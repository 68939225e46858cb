"""Records of the experiment as finished runs would leave them."""

from __future__ import annotations

from typing import Any

import numpy as np

from league.experiment.summary import Record

STEPS = 40


def make_record(
    arm: str, seed: int, *, start: float = 0.3, end: float = 0.3, score: float = 0.5, **changes: Any
) -> Record:
    """Return a record whose series all go from `start` to `end` in a straight line."""
    line: list[float | None] = list(map(float, np.linspace(start, end, STEPS)))
    names = ("solve_rate", "ast_depth", "cyclomatic", "lines", "variables", "coverage", "student_reward")
    series = {name: list(line) for name in names}
    series |= {"tokens": [1000.0] * STEPS, "seconds": [1.0] * STEPS, "distinct_templates": [None] * STEPS}
    values: dict[str, Any] = {
        "arm": arm,
        "seed": seed,
        "flags": ("--steps", "40"),
        "base": "nano-3",
        "settings": {
            "single_agent": False,
            "learn.lora_rank": 8,
            "game.rewards.scheme": "paper",
            "play.style": "compact",
            "evolve.evolution": False,
            "evolve.evolve_every": 5,
            "evolve.fraction": 0.25,
        },
        "steps": STEPS,
        "series": series,
        "heldout": {
            "student_0": {"deduction": score, "abduction": score},
            "teacher_0": {"deduction": 0.1, "abduction": 0.3},
        },
    }
    return Record(**(values | changes))
