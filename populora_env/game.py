"""The game as a pure state machine: a round (one proposal and its attempts) and an episode of rounds.

Owns turn order, what each seat may see, and settlement. Owns no I/O and no verifier: verdicts are handed in. Every
face of the environment and the league drive this same object; given seed, actions and verdicts it is deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np

from populora_env.buffer import ProblemBuffer
from populora_env.config import GameConfig
from populora_env.parsing import parse_answer, parse_proposal
from populora_env.problems import make_problem
from populora_env.prompts import get_style
from populora_env.rewards import proposer_reward, repeat_key, solve_rate, solver_reward
from populora_env.types import (
    Answer,
    Malformed,
    Observation,
    Problem,
    Proposal,
    ProposalVerdict,
    Role,
    Status,
    Task,
    Verdict,
)

_DETAIL_CHARS = 80


class PhaseError(RuntimeError):
    """A round was driven out of order; a fault of the driver, never of a player."""


class Phase(StrEnum):
    """What a round waits for."""

    PROPOSE = "propose"
    JUDGE_PROPOSAL = "judge_proposal"
    ATTEMPT = "attempt"
    JUDGE_ATTEMPTS = "judge_attempts"
    SETTLED = "settled"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundResult:
    """How a round ended. After an invalid proposal nobody attempts: no verdicts, no solver rewards, no solve rate."""

    task: Task
    problem: Problem | None
    proposal: Proposal | None
    """None when malformed."""
    proposal_verdict: Verdict
    answers: tuple[Answer | None, ...]
    """One a seat; None when malformed."""
    attempt_verdicts: tuple[Verdict, ...]
    solve_rate: float | None
    proposer_reward: float
    solver_rewards: tuple[float, ...]
    repeated: bool | None = None
    """Whether the problem's program had been proposed before; None where that was not asked (`Round.recall`)."""


class Round:
    """One proposal and the attempts at it.

    The order is `propose`, `judge_proposal`, `attempt` once a seat, `judge_attempts`; a malformed or invalid proposal
    settles the round at once. Every `str` is a legal action.
    """

    def __init__(self, *, task: Task, references: Sequence[Problem], config: GameConfig) -> None:
        """Open a round.

        Args:
            task: What the solvers will be asked for.
            references: Earlier problems that the proposer sees; an induction proposal is about the first one's program.
            config: Rules of the game.

        Raises:
            ValueError: An induction round without a reference.
        """
        if task is Task.INDUCTION and not references:
            raise ValueError("`references` must hold at least one problem in an induction round, got none")
        self.task = task
        self.references = tuple(references)
        self.config = config
        self.phase = Phase.PROPOSE
        self.proposal: Proposal | None = None
        self.problem: Problem | None = None
        self._proposal_verdict: Verdict | None = None
        self._attempts: list[Answer | Malformed] = []
        self._attempt_verdicts: tuple[Verdict, ...] = ()
        self._repeated: bool | None = None

    @property
    def settled(self) -> bool:
        """Whether the round is over."""
        return self.phase is Phase.SETTLED

    @property
    def seat(self) -> int:
        """The solver seat that attempts next, 0-based; equals the number of attempts made."""
        return len(self._attempts)

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The attempts that parsed, in seat order: what the verifier has to judge."""
        return tuple(attempt for attempt in self._attempts if isinstance(attempt, Answer))

    def proposer_observation(self) -> Observation:
        """Return what the proposer may know; the same in every phase."""
        style = get_style(self.config.style)
        prompt = style.proposer_prompt(self.task, self.references, self.config.induction_inputs)
        return Observation(role=Role.PROPOSER, task=self.task, prompt=prompt, messages=style.messages(prompt))

    def solver_observation(self) -> Observation:
        """Return what every solver may know: the same for all seats, nothing of what is asked for.

        Raises:
            PhaseError: There is no valid problem yet.
        """
        if self.problem is None:
            raise PhaseError(f"there is no problem to solve in phase `{self.phase}`")
        style = get_style(self.config.style)
        prompt = style.solver_prompt(self.problem)
        return Observation(role=Role.SOLVER, task=self.task, prompt=prompt, messages=style.messages(prompt))

    def shown_programs(self, role: Role) -> tuple[str, ...]:
        """Return the programs in that role's prompt; an induction solver sees none."""
        if role is Role.PROPOSER:
            shown = self.references[:1] if self.task is Task.INDUCTION else self.references
            return tuple(reference.program for reference in shown)
        if self.problem is None or self.task is Task.INDUCTION:
            return ()
        return (self.problem.program,)

    def propose(self, text: str) -> Proposal | None:
        """Take the proposer's action; None means malformed, and the round is settled."""
        self._expect(Phase.PROPOSE)
        parsed = parse_proposal(_text(text), task=self.task, references=self.references, config=self.config)
        if isinstance(parsed, Malformed):
            self._proposal_verdict = _format_verdict(parsed)
            self.phase = Phase.SETTLED
            return None
        self.proposal = parsed
        self.phase = Phase.JUDGE_PROPOSAL
        return parsed

    def judge_proposal(self, verdict: ProposalVerdict) -> Problem | None:
        """Take the verifier's word on the proposal; None means invalid, and the round is settled."""
        self._expect(Phase.JUDGE_PROPOSAL)
        if self.proposal is None:
            raise PhaseError("there is no proposal to judge")
        self._proposal_verdict = verdict.verdict
        if not verdict.verdict.ok:
            self.phase = Phase.SETTLED
            return None
        self.problem = make_problem(self.proposal, verdict, self.config)
        self.phase = Phase.ATTEMPT
        return self.problem

    def attempt(self, text: str) -> Answer | None:
        """Take the next seat's action; None means malformed."""
        self._expect(Phase.ATTEMPT)
        parsed = parse_answer(_text(text), task=self.task, config=self.config)
        self._attempts.append(parsed)
        if len(self._attempts) == self.config.solver_seats:
            self.phase = Phase.JUDGE_ATTEMPTS
        return None if isinstance(parsed, Malformed) else parsed

    def judge_attempts(self, verdicts: Sequence[Verdict]) -> None:
        """Take the verifier's word on each of `answers`, in their order (none if all were malformed); settle.

        Raises:
            ValueError: The number of verdicts is not that of `answers`.
        """
        self._expect(Phase.JUDGE_ATTEMPTS)
        if len(verdicts) != len(self.answers):
            raise ValueError(f"`verdicts` must be {len(self.answers)}, one an answer, got {len(verdicts)}")
        judged = iter(verdicts)
        self._attempt_verdicts = tuple(
            _format_verdict(attempt) if isinstance(attempt, Malformed) else next(judged) for attempt in self._attempts
        )
        self.phase = Phase.SETTLED

    def recall(self, proposed: set[str]) -> None:
        """Find out whether the program of a valid problem is a repeat, and remember it; once, before `result`.

        Does nothing where repeats cost nothing, and of induction problems (`populora_env.rewards.proposer_reward`).

        Args:
            proposed: Of the proposer's earlier valid problems, their `repeat_key`s; this one's is added.
        """
        rewards = self.config.rewards
        if rewards.repeat_penalty and self.problem is not None and self.task is not Task.INDUCTION:
            key = repeat_key(self.problem.program, rewards.repeat_form)
            self._repeated = key in proposed
            proposed.add(key)

    def result(self) -> RoundResult:
        """Return how the round ended.

        Raises:
            PhaseError: It is not settled.
        """
        self._expect(Phase.SETTLED)
        if self._proposal_verdict is None:
            raise PhaseError("a settled round must have a verdict on its proposal")
        rewards = self.config.rewards
        rho = None if self.problem is None else solve_rate(self._attempt_verdicts)
        return RoundResult(
            task=self.task,
            problem=self.problem,
            proposal=self.proposal,
            proposal_verdict=self._proposal_verdict,
            answers=tuple(attempt if isinstance(attempt, Answer) else None for attempt in self._attempts),
            attempt_verdicts=self._attempt_verdicts,
            solve_rate=rho,
            proposer_reward=proposer_reward(rho, rewards, repeated=bool(self._repeated)),
            solver_rewards=tuple(solver_reward(verdict, rewards) for verdict in self._attempt_verdicts),
            repeated=self._repeated,
        )

    def _expect(self, phase: Phase) -> None:
        if self.phase is not phase:
            raise PhaseError(f"expected phase `{phase}`, but the round is in phase `{self.phase}`")


class Game:
    """An episode: rounds one after the other, tasks in turn, with a buffer and a generator of its own."""

    def __init__(
        self,
        config: GameConfig,
        seed: int,
        *,
        buffer: ProblemBuffer | None = None,
        on_settled: Callable[[RoundResult], None] | None = None,
    ) -> None:
        """Open the first round.

        Args:
            config: Rules of the game.
            seed: Root of all draws of this episode, >= 0.
            buffer: Earlier problems; taken over and grown. None begins with `config.seed_problems` generated ones a
                task, the same for every seed: the seed chooses which of them are shown.
            on_settled: Called with the result of each round as it ends.
        """
        self.config = config
        self.buffer = seeded_buffer(config).copy() if buffer is None else buffer
        self.results: list[RoundResult] = []
        self._on_settled = on_settled
        self._proposed: set[str] = set()
        self._rng = np.random.default_rng(seed)
        self.round = self._open()

    @property
    def round_index(self) -> int:
        """Place of the current round, 0-based; of the last one when the game is over."""
        return min(len(self.results), self.config.rounds - 1)

    @property
    def over(self) -> bool:
        """Whether all rounds are settled and counted."""
        return len(self.results) == self.config.rounds

    def advance(self) -> RoundResult:
        """Count the settled round, keep its problem if it was valid, and open the next round if there is one.

        Raises:
            PhaseError: The round is not settled, or the game is over.
        """
        if self.over:
            raise PhaseError("the game is over; make a new one")
        self.round.recall(self._proposed)
        result = self.round.result()
        self.results.append(result)
        if result.problem is not None:
            self.buffer.add(result.problem)
        if self._on_settled is not None:
            self._on_settled(result)
        if not self.over:
            self.round = self._open()
        return result

    def _open(self) -> Round:
        task = self.config.tasks[len(self.results) % len(self.config.tasks)]
        k = 1 if task is Task.INDUCTION else self.config.references
        return Round(task=task, references=self.buffer.draw(task, k, self._rng), config=self.config)


_SEED_BUFFER_SEED = 0
"""The seed problems are part of the rules: every game begins with the same ones."""


def seeded_buffer(config: GameConfig) -> ProblemBuffer:
    """Return the buffer with which games begin, made once a process; copy it before you add to it."""
    return _seeded_buffer(config.tasks, config.buffer_size, config.seed_problems, config.induction_inputs)


@lru_cache(maxsize=16)
def _seeded_buffer(tasks: tuple[Task, ...], size: int, n: int, n_inputs: int) -> ProblemBuffer:
    buffer = ProblemBuffer(tasks, size)
    buffer.seed(np.random.default_rng(_SEED_BUFFER_SEED), n, n_inputs)
    return buffer


def _text(action: str) -> str:
    if not isinstance(action, str):
        raise ValueError(f"an action must be a str, got {type(action).__name__}")
    return action


def _format_verdict(malformed: Malformed) -> Verdict:
    detail = malformed.reason.encode("ascii", "backslashreplace").decode("ascii")
    printable = "".join(char if char.isprintable() else " " for char in detail)
    return Verdict(status=Status.FORMAT, detail=printable[:_DETAIL_CHARS])
