"""Joining rounds and a judge: one call to the verifier for any number of rounds.

Owns no rules (those are in `game`) and no judgement. The faces and the league settle their rounds through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from populora_env.game import Phase, Round, RoundResult
from populora_env.types import Answer, Policy, Problem, Proposal, ProposalVerdict, Verdict


class Judge(Protocol):
    """What a round needs of a verifier; `verifier.Verifier` is one."""

    def check_proposals(self, proposals: Sequence[Proposal]) -> list[ProposalVerdict]:
        """Judge proposals, in their order."""
        ...

    def check_answers(self, attempts: Sequence[tuple[Problem, Answer]]) -> list[Verdict]:
        """Judge answers, in their order."""
        ...


def judge_proposals(rounds: Sequence[Round], judge: Judge) -> None:
    """Judge, in one call, the proposals of all `rounds` that wait for it; the others are left as they are."""
    waiting = [(item, item.proposal) for item in rounds if item.phase is Phase.JUDGE_PROPOSAL]
    proposals = [proposal for _, proposal in waiting if proposal is not None]
    verdicts = judge.check_proposals(proposals) if proposals else []
    for (item, _), verdict in zip(waiting, verdicts, strict=True):
        item.judge_proposal(verdict)


def judge_attempts(rounds: Sequence[Round], judge: Judge) -> None:
    """Judge, in one call, the attempts of all `rounds` that wait for it; the others are left as they are."""
    waiting = [(item, item.problem) for item in rounds if item.phase is Phase.JUDGE_ATTEMPTS]
    jobs = [(problem, answer) for item, problem in waiting if problem is not None for answer in item.answers]
    verdicts = iter(judge.check_answers(jobs) if jobs else ())
    for item, _ in waiting:
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
