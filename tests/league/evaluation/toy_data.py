"""Two problems in the format of HumanEval(+), made up here: no benchmark's data are part of the project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROWS: tuple[dict[str, Any], ...] = (
    {
        "task_id": "Toy/0",
        "prompt": 'def double(x: int) -> int:\n    """Return twice x."""\n',
        "entry_point": "double",
        "canonical_solution": "    return 2 * x\n",
        "test": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(-1) == -2\n",
        "base_input": [[2], [-1]],
        "plus_input": [[0], [10**20]],
        "atol": 0,
    },
    {
        "task_id": "Toy/1",
        "prompt": 'import math\n\ndef area(r: float) -> float:\n    """Return the area of a circle."""\n',
        "entry_point": "area",
        "canonical_solution": "    return math.pi * r**2\n",
        "test": "def check(candidate):\n    assert abs(candidate(1.0) - 3.141592653589793) < 1e-6\n",
        "base_input": [[1.0]],
        "plus_input": [[2.5]],
        "atol": 0,
    },
)


def write_rows(folder: Path, stem: str, rows: tuple[dict[str, Any], ...] = ROWS) -> Path:
    """Write rows as a set's file; return the folder."""
    folder.mkdir(exist_ok=True)
    (folder / f"{stem}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder
