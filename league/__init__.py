"""Populations of adapters that teach and solve, rate each other, and evolve. Modules are loaded when they are named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from populora_env.installation import require

if TYPE_CHECKING:
    from league.loading import load

__all__ = ["load"]

require(
    "league",
    (
        "jinja2",
        "peft",
        "plotly",
        "pyarrow",
        "pygments",
        "rich",
        "safetensors",
        "tokenizers",
        "torch",
        "transformers",
        "trueskill",
        "tyro",
        "yaml",
    ),
)


def __getattr__(name: str) -> Any:
    """Load what needs pyarrow when it is asked for."""
    if name != "load":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from league.loading import load

    return load
