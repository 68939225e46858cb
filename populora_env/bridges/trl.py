"""TRL: one seat of the game as an environment for `GRPOTrainer(environment_factory=...)`.

A rollout is one round from one seat, the other seats are held by policies: TRL trains one policy a trainer. The model
hands in its proposal or answer by calling the tool `submit`, once; a rollout that never does is paid as malformed. All
rollouts of a group must meet the same problem, so each row of the data set has a `seed` and a `task`; see `rows`.

Owns that environment. It needs no import of TRL. Scores of plain completions over a fixed data set, without tools, are
`compute_score.trl_reward`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from populora_env.config import VerifierConfig
from populora_env.rules import Rules
from populora_env.solo_envs import ProposerEnv, SoloEnv, SolverEnv
from populora_env.types import Policy, Role, Task
from populora_env.verifier import Verifier


def environment_factory(
    role: str = "solver",
    *,
    proposer: Policy | None = None,
    solvers: Policy | Sequence[Policy] | None = None,
    **rules: Unpack[Rules],
) -> Callable[[], SeatEnvironment]:
    """Return what `GRPOTrainer` takes as `environment_factory`; its environments share one verifier.

    Args:
        role: Of the seat that is trained, `solver` or `proposer`.
        proposer: Who proposes to a solver; None is our generator.
        solvers: Who holds the other solver seats; None are players that guess.
        **rules: See `populora_env.rules.Rules`; the style is `chat` unless told otherwise, `tasks` and `rounds` are
            not to be given.

    Raises:
        ValueError: Another role, or a rule that the rows decide.
    """
    if fixed := sorted({"tasks", "rounds", "max_cycles"} & rules.keys()):
        raise ValueError(f"expected no {', '.join(fixed)}: a rollout is one round, its task stands in its row")
    seat = Role(role)
    chosen: dict[str, Any] = {"style": "chat", **rules}
    verifier = Verifier(VerifierConfig())

    def make(task: Task) -> SoloEnv:
        if seat is Role.PROPOSER:
            return ProposerEnv(solvers=solvers, verifier=verifier, tasks=(task,), rounds=1, **chosen)
        return SolverEnv(proposer=proposer, solvers=solvers, verifier=verifier, tasks=(task,), rounds=1, **chosen)

    return lambda: SeatEnvironment(make)


def rows(n: int, tasks: Sequence[str] = tuple(Task), *, seed: int = 0) -> list[dict[str, Any]]:
    """Return `n` rows for `datasets.Dataset.from_list`, going through the tasks in turn.

    Args:
        n: Rows.
        tasks: Task types, by name.
        seed: Of the first row; each further row has the next one.
    """
    empty = [{"role": "user", "content": ""}]
    return [{"prompt": empty, "seed": seed + i, "task": str(Task(tasks[i % len(tasks)]))} for i in range(n)]


class SeatEnvironment:
    """One seat of one round. TRL calls `reset` and `get_reward`; the model calls `submit`."""

    def __init__(self, make: Callable[[Task], SoloEnv]) -> None:
        """Keep the maker of games of a given task."""
        self._make = make
        self._games: dict[Task, SoloEnv] = {}
        self._reward: float | None = None

    def reset(self, seed: int | None = None, task: str | None = None, **row: Any) -> str:
        """Begin the round that `seed` and `task` fix; return what the seat is asked, which TRL adds to the prompt.

        Args:
            seed: Column of the row.
            task: Column of the row.
            **row: Other columns; not used.

        Raises:
            ValueError: A column is missing, or there is no such task.
        """
        del row
        if seed is None or task is None:
            raise ValueError("expected the columns `seed` and `task`, as `rows` makes them: a group shares its problem")
        kind = Task(task)
        if kind not in self._games:
            self._games[kind] = self._make(kind)
        self._game = self._games[kind]
        self._reward = None
        seen, _ = self._game.reset(seed=seed)
        return f"{seen['prompt']}\n\nGive what you were asked for, in its blocks, as the argument of the tool `submit`."

    def submit(self, text: str) -> str:
        """Hand in the proposal or answer. Only the first call counts.

        Args:
            text: The proposal or answer, in the blocks that were asked for.

        Returns:
            That it was taken.
        """
        if self._reward is not None:
            return "Something was handed in before; that counts."
        self._take(str(text))  # a model may call it with a number
        return "Handed in."

    def get_reward(self) -> float:
        """Return what the round paid the seat."""
        return self._take("") if self._reward is None else self._reward

    def _take(self, text: str) -> float:
        _, reward, *_ = self._game.step(text)
        self._reward = float(reward)
        return self._reward
