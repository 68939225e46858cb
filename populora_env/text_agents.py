"""What the agents of a text game are called, what each sees, and what it is told.

Owns observations and infos, which all text faces share: AEC, parallel and the single-seat views. Everything here is
read off a `Game` and changes nothing; what a solver is asked for is in none of it before the round is settled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from populora_env import features
from populora_env.config import GameConfig
from populora_env.game import Game, Phase, RoundResult
from populora_env.rewards import reward_parts
from populora_env.spaces import UnicodeText
from populora_env.types import Message, Observation, Role, Task, Verdict

PROPOSER = "proposer_0"
"""The proposer's agent name; solvers are `solver_0`, `solver_1`, ..."""

_ROLES, _TASKS = tuple(Role), tuple(Task)
VECTOR_SIZE = len(_ROLES) + len(_TASKS) + 2 + features.SIZE
"""Numbers in an observation: role and task one-hot, whether it is the agent's turn, the share of rounds played, and the
mean features of the programs that the agent is shown."""

TextObservation = dict[str, Any]
"""`observation`: float32 [VECTOR_SIZE] in [0, 1]; `prompt`: the text to act on, empty while there is nothing to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an agent is told of its part in a settled round."""

    role: Role
    round: int
    """Place of the round, 0-based."""
    task: Task
    verdict: Verdict
    reward: float
    solve_rate: float | None

    def facts(self) -> dict[str, Any]:
        """Return the outcome as plain data."""
        return {
            "round": self.round,
            "task": str(self.task),
            "solve_rate": self.solve_rate,
            "verdict": str(self.verdict),
            "reward": self.reward,
        }

    def parts(self) -> dict[str, float]:
        """Return the reward under the name of what it was paid for."""
        return reward_parts(self.role, self.verdict, self.reward)


def agent_names(config: GameConfig) -> list[str]:
    """Return all agents: the proposer, then the solvers in seat order."""
    return [PROPOSER, *(f"solver_{seat}" for seat in range(config.solver_seats))]


def role_of(agent: str) -> Role:
    """Return the role that an agent has in every round."""
    return Role.PROPOSER if agent == PROPOSER else Role.SOLVER


def seat_of(agent: str) -> int:
    """Return the seat of a solver."""
    return int(agent.removeprefix("solver_"))


def observation_space(config: GameConfig) -> spaces.Dict:
    """Return the space of what `observe` gives, alike for all agents."""
    vector = spaces.Box(low=0.0, high=1.0, shape=(VECTOR_SIZE,), dtype=np.float32)
    return spaces.Dict({"observation": vector, "prompt": UnicodeText(config)})


def seen_by(game: Game, agent: str) -> Observation | None:
    """Return what the agent has to act on in this round, or will once it is its turn; None if nothing."""
    current = game.round
    if game.over:
        return None
    if agent == PROPOSER:
        return current.proposer_observation() if current.phase is Phase.PROPOSE else None
    if current.phase is Phase.ATTEMPT and seat_of(agent) >= current.seat:
        return current.solver_observation()
    return None


def observe(game: Game, agent: str, *, acts: bool) -> TextObservation:
    """Return what the agent may know now; `acts`: whether it is its turn."""
    seen, role, current = seen_by(game, agent), role_of(agent), game.round
    progress = len(game.results) / game.config.rounds
    one_hot = [role is each for each in _ROLES] + [current.task is each for each in _TASKS]
    flags = [*one_hot, acts and seen is not None, progress]
    shown = () if seen is None else current.shown_programs(role)
    vector = np.concatenate([np.array(flags, dtype=np.float32), features.mean_scaled(shown)])
    return {"observation": vector, "prompt": "" if seen is None else seen.prompt}


def as_observation(seen: TextObservation, info: dict[str, Any]) -> Observation:
    """Return what an agent sees and its info as a `Policy` takes it, so that any policy can take any seat."""
    return Observation(
        role=Role(info["role"]),
        task=Task(info["task"]),
        prompt=seen["prompt"],
        messages=tuple(Message(**message) for message in info["messages"]),
    )


def describe(game: Game, agent: str, outcome: Outcome | None) -> dict[str, Any]:
    """Return the agent's info.

    `role`, `task` and `round` (0-based) say where the game stands; `messages` is the prompt as chat messages, empty
    where it is; `outcome` and `reward_parts` tell of the agent's last settled round and are empty where there is none.
    """
    seen = seen_by(game, agent)
    messages = () if seen is None else seen.messages
    return {
        "role": str(role_of(agent)),
        "task": str(game.round.task),
        "round": game.round_index,
        "messages": [{"role": message.role, "content": message.content} for message in messages],
        "outcome": {} if outcome is None else outcome.facts(),
        "reward_parts": {} if outcome is None else outcome.parts(),
    }


def outcomes(result: RoundResult, *, number: int) -> dict[str, Outcome]:
    """Return what each agent that acted is told of a settled round; `number` is the round's place, 0-based."""
    paid = [(PROPOSER, result.proposal_verdict, result.proposer_reward)]
    for seat, (verdict, reward) in enumerate(zip(result.attempt_verdicts, result.solver_rewards, strict=True)):
        paid.append((f"solver_{seat}", verdict, reward))
    return {
        agent: Outcome(
            role=role_of(agent),
            round=number,
            task=result.task,
            verdict=verdict,
            reward=reward,
            solve_rate=result.solve_rate,
        )
        for agent, verdict, reward in paid
    }


def state_space(config: GameConfig) -> spaces.Box:
    """Return the space of `state`: float32 [agents * VECTOR_SIZE] in [0, 1]."""
    return spaces.Box(low=0.0, high=1.0, shape=(len(agent_names(config)) * VECTOR_SIZE,), dtype=np.float32)


def state(game: Game, acting: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return the observation vectors of all agents one after the other; `acting`: those whose turn it is."""
    agents = agent_names(game.config)
    return np.concatenate([observe(game, agent, acts=agent in acting)["observation"] for agent in agents])
