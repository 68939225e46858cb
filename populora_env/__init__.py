"""The self-play game of programs: proposers invent problems, solvers answer, a sandboxed verifier judges.

Types and settings are loaded at once, and the environments' ids entered in the registries of gymnasium and PettingZoo;
all else is loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from populora_env.config import GameConfig, RewardConfig, VerifierConfig
from populora_env.registration import register_environments
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
    from populora_env.solo_envs import ProposerEnv, SolverEnv
    from populora_env.text_v0 import as_observation, env, parallel_env, raw_env
    from populora_env.vector import make_vec
    from populora_env.verifier import Verifier

_LAZY = {
    "Game": "game",
    "ProblemBuffer": "buffer",
    "ProposerEnv": "solo_envs",
    "Round": "game",
    "RoundResult": "game",
    "SolverEnv": "solo_envs",
    "Verifier": "verifier",
    "as_observation": "text_v0",
    "env": "text_v0",
    "generate_problem": "generator",
    "make_vec": "vector",
    "parallel_env": "text_v0",
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
    "ProposerEnv",
    "RewardConfig",
    "Role",
    "Round",
    "RoundResult",
    "SolverEnv",
    "Status",
    "Task",
    "Verdict",
    "Verifier",
    "VerifierConfig",
    "as_observation",
    "env",
    "generate_problem",
    "make_vec",
    "parallel_env",
    "raw_env",
    "register_environments",
]


def __getattr__(name: str) -> Any:
    """Load what was asked for from its module."""
    if name not in _LAZY:
        raise AttributeError(f"module 'populora_env' has no attribute {name!r}")
    return getattr(import_module(f"populora_env.{_LAZY[name]}"), name)


register_environments()
