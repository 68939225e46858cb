"""Joining rounds and a judge: one call to the verifier for any number of rounds.

Owns who is asked when, and who closes the judge. Owns no rules (those are in `game`) and no judgement (that is
`verifier`). The faces and the league settle their rounds through it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import islice
from typing import Protocol

from populora_env.config import GameConfig, VerifierConfig
from populora_env.game import Phase, Round, RoundResult
from populora_env.types import Answer, Policy, Problem, Proposal, ProposalVerdict, Task, Verdict
from populora_env.verifier import Verifier


class Judge(Protocol):
    """What a round needs of a verifier; `verifier.Verifier` is one."""

    def check_proposals(
        self, proposals: Sequence[Proposal], *, owners: Sequence[Hashable] | None = None
    ) -> list[ProposalVerdict]:
        """Judge proposals, in their order; what `owners` are, `Verifier.check_proposals` says."""
        ...

    def check_answers(
        self, attempts: Sequence[tuple[Problem, Answer]], *, owners: Sequence[Hashable] | None = None
    ) -> list[Verdict]:
        """Judge answers, in their order; what `owners` are, `Verifier.check_answers` says."""
        ...


Review = Callable[[Round, ProposalVerdict], ProposalVerdict]
"""A last word on a judged proposal: sees the round, which still waits, and returns the verdict that counts."""


class HeldJudge:
    """The judge of one environment: its own, which ends with it, or one shared with others, which it leaves alone."""

    def __init__(self, shared: Judge | None, config: GameConfig) -> None:
        """Hold `shared`, or for None an own verifier for games of these rules; its processes start when needed."""
        self._own = None
        if shared is None:
            shared = self._own = Verifier(VerifierConfig(max_answer_chars=config.max_answer_chars))
        self.judge: Judge = shared

    def close(self) -> None:
        """End the processes of the own verifier; a later use starts new ones."""
        if self._own is not None:
            self._own.close()


def judge_proposals(
    rounds: Sequence[Round],
    judge: Judge,
    review: Review | None = None,
    *,
    proposers: Sequence[Hashable] | None = None,
) -> list[ProposalVerdict | None]:
    """Judge, in one call, the proposals of all `rounds` that wait for it; the others are left as they are.

    Args:
        rounds: The rounds.
        judge: Whom to ask.
        review: Has the last word on each.
        proposers: Who proposes in each round. A judge is then faster, with the same verdicts.

    Returns:
        The verdict that counted for each round, None where none was waited for.
    """
    waiting = {
        place: item.proposal
        for place, item in enumerate(rounds)
        if item.phase is Phase.JUDGE_PROPOSAL and item.proposal is not None
    }
    owners = None if proposers is None else [proposers[place] for place in waiting]
    verdicts = judge.check_proposals(list(waiting.values()), owners=owners) if waiting else []
    counted: list[ProposalVerdict | None] = [None] * len(rounds)
    for place, verdict in zip(waiting, verdicts, strict=True):
        final = verdict if review is None else review(rounds[place], verdict)
        rounds[place].judge_proposal(final)
        counted[place] = final
    return counted


def judge_attempts(
    rounds: Sequence[Round],
    judge: Judge,
    *,
    proposers: Sequence[Hashable] | None = None,
    solvers: Sequence[Hashable] | None = None,
) -> None:
    """Judge, in one call, the attempts of all `rounds` that wait for it; the others are left as they are.

    Args:
        rounds: The rounds.
        judge: Whom to ask.
        proposers: Who proposed in each round. A judge is then faster, with the same verdicts.
        solvers: Who has all solver seats of each round; the same.
    """
    nobody: Sequence[Hashable] = [None] * len(rounds)
    waiting: list[Round] = []
    jobs: list[tuple[Problem, Answer]] = []
    owners: list[Hashable] = []
    for item, proposer, solver in zip(rounds, proposers or nobody, solvers or nobody, strict=True):
        if item.phase is Phase.JUDGE_ATTEMPTS and item.problem is not None:
            waiting.append(item)
            jobs += [(item.problem, answer) for answer in item.answers]
            owners += [proposer if item.task is Task.ABDUCTION else solver] * len(item.answers)
    verdicts = iter(judge.check_answers(jobs, owners=owners) if jobs else ())
    for item in waiting:
        item.judge_attempts(tuple(islice(verdicts, len(item.answers))))


def play_round(item: Round, *, proposer: Policy, solvers: Sequence[Policy], judge: Judge) -> RoundResult:
    """Play a fresh round to its end with one policy a seat.

    Raises:
        ValueError: The number of solvers is not that of the seats.
    """
    if len(solvers) != item.config.solver_seats:
        raise ValueError(f"`solvers` must hold {item.config.solver_seats} policies, got {len(solvers)}")
    item.propose(proposer(item.proposer_observation()))
    judge_proposals([item], judge)
    if not item.settled:
        for solver in solvers:
            item.attempt(solver(item.solver_observation()))
        judge_attempts([item], judge)
    return item.result()
