"""The self-play game of programs: proposers invent problems, solvers answer, a sandboxed verifier judges.

Types and settings are loaded at once, all else on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from populora_env.config import GameConfig, RewardConfig, VerifierConfig
from populora_env.types import (
    Answer,
    Malformed,
    Message,
    Observation,
    Policy,
    Problem,
    Proposal,
    ProposalVerdict,
    Role,
    Status,
    Task,
    Verdict,
)

if TYPE_CHECKING:
    from populora_env.buffer import ProblemBuffer
    from populora_env.game import Game, Round, RoundResult
    from populora_env.generator import generate_problem
    from populora_env.text_v0 import env, raw_env
    from populora_env.verifier import Verifier

_LAZY = {
    "Game": "game",
    "ProblemBuffer": "buffer",
    "Round": "game",
    "RoundResult": "game",
    "Verifier": "verifier",
    "env": "text_v0",
    "generate_problem": "generator",
    "raw_env": "text_v0",
}

__all__ = [
    "Answer",
    "Game",
    "GameConfig",
    "Malformed",
    "Message",
    "Observation",
    "Policy",
    "Problem",
    "ProblemBuffer",
    "Proposal",
    "ProposalVerdict",
    "RewardConfig",
    "Role",
    "Round",
    "RoundResult",
    "Status",
    "Task",
    "Verdict",
    "Verifier",
    "VerifierConfig",
    "env",
    "generate_problem",
    "raw_env",
]


def __getattr__(name: str) -> Any:
    """Load what was asked for from its module."""
    if name not in _LAZY:
        raise AttributeError(f"module 'populora_env' has no attribute {name!r}")
    return getattr(import_module(f"populora_env.{_LAZY[name]}"), name)
