"""The names of what is compared."""

from __future__ import annotations

from typing import Final

TEAM_ALGORITHMS: Final = ("vdn", "qmix")
"""Those that need one reward for all."""
ALGORITHMS: Final = ("ippo", "mappo", "iql", *TEAM_ALGORITHMS)
RANDOM, FIRST = "random", "first"
REFERENCES: Final = (RANDOM, FIRST)
"""Without learning: a legal action at random, and always the first legal action."""
