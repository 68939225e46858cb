"""verifiers (v1): a round of the game as an episode, with a seat `proposer` and a seat `solver` that attempts G times.

An episode's task is the request to propose; its traces are the proposer's, then the solvers', each with the reward that
the game pays. One model may play both seats (`--env.proposer.model`, `--env.solver.model` tell them apart).

verifiers finds plugins by top-level module names, so that a module of your own has to name these:

    # populora_v1.py, on the path; then `eval populora-v1`
    from populora_env.bridges.verifiers import ProposalTaskset, RoundEnv
    __all__ = ["ProposalTaskset", "RoundEnv"]

Owns the taskset and the episode. Rules are in `game`, judgement in `verifier`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import numpy as np

from populora_env.config import GameConfig, StyleName
from populora_env.game import Round, seeded_buffer
from populora_env.judging import judge_attempts, judge_proposals
from populora_env.types import Observation, Task
from populora_env.verifier import Verifier

try:
    import verifiers.v1 as vf
except ImportError as error:
    raise ImportError("populora_env.bridges.verifiers needs verifiers: pip install verifiers") from error


class ProposalTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]  # imported only where it is installed
    """Which requests to propose are asked."""

    n: int = 64
    """Requests; they go through `tasks` in turn."""
    seed: int = 0
    """Root of the draws of references."""
    tasks: tuple[Task, ...] = tuple(Task)
    """Task types."""
    style: StyleName = "chat"
    """How prompts are written."""
    references: int = 2
    """Earlier problems shown to the proposer."""


class ProposalData(vf.TaskData):  # type: ignore[misc]  # as above
    """A request to propose: what opens its round again, beside the prompt."""

    kind: Task
    seed: int
    style: StyleName
    references: int

    def open(self, solver_seats: int) -> Round:
        """Open the round that asks this."""
        config = GameConfig(style=self.style, references=self.references, solver_seats=solver_seats)
        k = 1 if self.kind is Task.INDUCTION else self.references
        references = seeded_buffer(config).draw(self.kind, k, np.random.default_rng(self.seed))
        return Round(task=self.kind, references=references, config=config)


class ProposalTask(vf.Task[ProposalData, vf.State, vf.TaskConfig]):  # type: ignore[misc]  # as above
    """A request to propose; what a proposal is worth only its episode knows, which asks the solvers."""


class ProposalTaskset(vf.Taskset[ProposalTask, ProposalTasksetConfig]):  # type: ignore[misc]  # as above
    """Requests to propose, with references out of the problems with which games begin."""

    def load(self) -> Iterator[ProposalTask]:
        """Yield the requests."""
        given = self.config
        for i in range(given.n):
            kind = given.tasks[i % len(given.tasks)]
            data = ProposalData(kind=kind, seed=given.seed + i, style=given.style, references=given.references)
            observation = data.open(solver_seats=1).proposer_observation()
            yield ProposalTask(data.model_copy(update=_spoken(observation)), given.task)


class RoundEnvConfig(vf.EnvConfig):  # type: ignore[misc]  # as above
    """Who plays, and how often each problem is attempted. The default harness speaks with the model, without tools."""

    proposer: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"})
    """The proposer's seat."""
    solver: vf.AgentConfig = vf.AgentConfig(harness={"id": "null"})
    """The solvers' seats."""
    solver_seats: int = 4
    """Attempts at a problem (G), >= 1."""


class RoundEnv(vf.Env[RoundEnvConfig]):  # type: ignore[misc]  # as above
    """One round an episode; all episodes share one verifier."""

    async def start(self) -> None:
        """Make the verifier; its processes start with the first proposal."""
        self._verifier = Verifier()

    async def stop(self) -> None:
        """End the verifier's processes."""
        self._verifier.close()

    async def run(self, task: ProposalTask, agents: vf.Agents) -> None:
        """Play a round and pay its traces; where a model could not be reached nobody is paid."""
        current = task.data.open(self.config.solver_seats)
        proposal = await agents.proposer.run(task)
        if not proposal.ok:
            return
        current.propose(proposal.last_reply)
        await asyncio.to_thread(judge_proposals, [current], self._verifier)
        attempts: list[vf.Trace] = []
        if not current.settled:
            asked = vf.Task(vf.TaskData(idx=task.data.idx, **_spoken(current.solver_observation())))
            async with asyncio.TaskGroup() as group:
                runs = [group.create_task(agents.solver.run(asked)) for _ in range(self.config.solver_seats)]
            attempts = [run.result() for run in runs]
            if not all(trace.ok for trace in attempts):
                return
            for trace in attempts:
                current.attempt(trace.last_reply)
            await asyncio.to_thread(judge_attempts, [current], self._verifier)
        result = current.result()
        proposal.record_reward("proposer", result.proposer_reward)
        proposal.record_metric("valid", float(result.problem is not None))
        if result.solve_rate is not None:
            proposal.record_metric("solve_rate", result.solve_rate)
        for trace, reward, verdict in zip(attempts, result.solver_rewards, result.attempt_verdicts, strict=True):
            trace.record_reward("solver", reward)
            trace.record_metric("correct", float(verdict.ok))


def _spoken(observation: Observation) -> dict[str, str | None]:
    """Return an observation's messages as the fields of a `TaskData`."""
    said = {message.role: message.content for message in observation.messages}
    return {"prompt": said["user"], "system_prompt": said.get("system")}
