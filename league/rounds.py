"""The rounds of one step: who plays which, their ids, and the way through the two phases in batches.

Owns the plan (one group of proposals a reference set, one group of attempts a problem) and the driving of
`populora_env`'s rounds. Owns no learning and no tables. Everybody's requests of one phase go out as one batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from league import seeds
from league.config import known
from league.options import PlayOptions
from league.types import Match, Member
from populora_agents.types import Backend, Completion, Request
from populora_env.buffer import ProblemBuffer
from populora_env.config import GameConfig
from populora_env.game import Round
from populora_env.judging import Judge, judge_attempts
from populora_env.judging import judge_proposals as judge_in_one_call
from populora_env.types import (
    Message,
    Observation,
    Problem,
    ProposalVerdict,
    Role,
    Status,
    Task,
    Verdict,
)

TOO_LONG = Verdict(status=Status.INADMISSIBLE, detail="prompt_too_long")
"""Of a proposal whose problem, as shown to a solver, leaves no room for an answer in the base's context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How the members are asked."""

    seed: int
    """Root seed of the run."""
    proposal_tokens: int
    """Longest proposal, in tokens."""
    answer_tokens: int
    """Longest answer, in tokens."""
    temperature: float
    """> 0."""
    top_p: float = 1.0
    """In (0, 1]."""
    stop: tuple[str, ...] = ()
    """Strings behind which nothing is read; see `populora_env.prompts.PromptStyle.stop`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """One member's part of one round."""

    rollout_id: str
    group_id: str
    step: int
    match_id: int
    number: int
    """Solver seat, 0-based; 0 for the proposer."""
    member: Member
    completion: Completion


@dataclass(slots=True, kw_only=True)
class PlayedRound:
    """A round on its way: what was asked and said in it so far."""

    match: Match
    round: Round
    proposal_id: str
    group_id: str
    """Of the proposals from the same reference set."""
    exec_ms: float = 0.0
    """Time of the proposal in the sandbox, in milliseconds; 0 when it was malformed."""
    solvers: list[Seat] = field(default_factory=list)
    """Those who have attempted, in seat order."""
    _proposer: Seat | None = field(default=None, init=False)

    @property
    def proposer(self) -> Seat:
        """The proposer's part.

        Raises:
            ValueError: Nobody has proposed yet.
        """
        if self._proposer is None:
            raise ValueError(f"nobody has proposed in {self.proposal_id!r} yet")
        return self._proposer

    def take_proposal(self, completion: Completion) -> None:
        """Hand the proposer's text to the round."""
        self._proposer = self._seat(self.proposal_id, self.group_id, 0, self.match.teacher, completion)
        self.round.propose(completion.text)

    def take_attempt(self, completion: Completion) -> None:
        """Hand the next seat's text to the round."""
        seat = self.round.seat
        rollout_id = f"{self.proposal_id}/s{seat}"
        self.solvers.append(self._seat(rollout_id, self.proposal_id, seat, self.match.student, completion))
        self.round.attempt(completion.text)

    def _seat(self, rollout_id: str, group_id: str, number: int, member: Member, completion: Completion) -> Seat:
        return Seat(
            rollout_id=rollout_id,
            group_id=group_id,
            step=self.match.step,
            match_id=self.match.match_id,
            number=number,
            member=member,
            completion=completion,
        )


class Room:
    """Whether a prompt leaves room for what shall follow it in the base's context."""

    def __init__(
        self,
        context_tokens: int | None,
        prompt_ids: Callable[[Sequence[Message]], Sequence[int]],
        sampling: Sampling,
    ) -> None:
        """Measure by the context of a base (None: without bound) and its way from messages to tokens.

        Raises:
            ValueError: Proposals or answers of full length would take more than half of the context.
        """
        self._context = context_tokens
        self._prompt_ids = prompt_ids
        self._new = {Role.PROPOSER: sampling.proposal_tokens, Role.SOLVER: sampling.answer_tokens}
        for name in ("proposal_tokens", "answer_tokens"):
            if context_tokens is not None and getattr(sampling, name) > context_tokens // 2:
                raise ValueError(
                    f"`{name}` must be at most half of the base's context of {context_tokens} tokens, "
                    f"got {getattr(sampling, name)}"
                )

    def fits(self, observation: Observation) -> bool:
        """Return whether the seat could write an action of full length."""
        if self._context is None:
            return True
        return len(self._prompt_ids(observation.messages)) + self._new[observation.role] <= self._context


def open_rounds(
    matches: Sequence[Match],
    buffer: ProblemBuffer,
    config: GameConfig,
    play: PlayOptions,
    room: Room,
    seed: int,
    *,
    cross_eval_problems: int = 1,
) -> list[PlayedRound]:
    """Open the rounds of one step: in every match every task, `groups` reference sets a task, `proposals` a set.

    A match of kind `cross_eval` has `cross_eval_problems` proposals in all, dealt over the tasks, one set a task.
    """
    rounds: list[PlayedRound] = []
    for match in matches:
        for task, group, proposals in _groups(match, config, play, cross_eval_problems):
            group_id = f"m{match.match_id}/{task}/g{group}"
            rng = seeds.generator(seed, match.step, "references", group_id)
            references = _references(buffer, task, config, room, rng)
            rounds += [
                PlayedRound(
                    match=match,
                    round=Round(task=task, references=references, config=config),
                    proposal_id=f"{group_id}/p{number}",
                    group_id=group_id,
                )
                for number in range(proposals)
            ]
    return rounds


def _groups(
    match: Match, config: GameConfig, play: PlayOptions, cross_eval_problems: int
) -> Iterator[tuple[Task, int, int]]:
    """Yield task, number and count of proposals of each reference set of a match."""
    if match.kind != "cross_eval":
        yield from ((task, group, known(play.proposals)) for task in config.tasks for group in range(play.groups))
        return
    for place, task in enumerate(config.tasks):
        if proposals := len(range(place, cross_eval_problems, len(config.tasks))):
            yield task, 0, proposals


def _references(
    buffer: ProblemBuffer, task: Task, config: GameConfig, room: Room, rng: np.random.Generator
) -> tuple[Problem, ...]:
    """Draw references as a game does; the last ones go where the prompt would be too long for the base."""
    references = buffer.draw(task, 1 if task is Task.INDUCTION else config.references, rng)
    while len(references) > 1:
        opened = Round(task=task, references=references, config=config)
        if room.fits(opened.proposer_observation()):
            break
        references = references[:-1]
    return references


def propose(rounds: Sequence[PlayedRound], backend: Backend, sampling: Sampling) -> None:
    """Have every teacher propose, all in one batch."""
    requests = [
        _request(
            played.round.proposer_observation(),
            played.match.teacher,
            played.match.step,
            played.proposal_id,
            sampling,
            sampling.proposal_tokens,
        )
        for played in rounds
    ]
    for played, completion in zip(rounds, backend.generate(requests), strict=True):
        played.take_proposal(completion)


def judge_proposals(rounds: Sequence[PlayedRound], judge: Judge, room: Room) -> None:
    """Have the proposals that parsed judged, all in one batch; refuse those whose problem cannot be shown."""

    def review(opened: Round, verdict: ProposalVerdict) -> ProposalVerdict:
        if not verdict.verdict.ok or _can_be_shown(opened, verdict, room):
            return verdict
        return ProposalVerdict(verdict=TOO_LONG, exec_ms=verdict.exec_ms)

    teachers = [played.match.teacher.member_id for played in rounds]
    verdicts = judge_in_one_call([played.round for played in rounds], judge, review, proposers=teachers)
    for played, verdict in zip(rounds, verdicts, strict=True):
        if verdict is not None:
            played.exec_ms = verdict.exec_ms


def _can_be_shown(opened: Round, verdict: ProposalVerdict, room: Room) -> bool:
    """Ask a copy of the round, since a judged one cannot take its verdict back."""
    trial = copy(opened)
    return trial.judge_proposal(verdict) is not None and room.fits(trial.solver_observation())


def solve(rounds: Sequence[PlayedRound], backend: Backend, sampling: Sampling) -> None:
    """Have every matched student attempt every valid problem once a seat, all in one batch."""
    waiting: list[PlayedRound] = []
    requests: list[Request] = []
    for played in rounds:
        if played.round.settled:
            continue
        observation = played.round.solver_observation()
        for seat in range(played.round.config.solver_seats):
            waiting.append(played)
            purpose = f"{played.proposal_id}/s{seat}"
            student, step = played.match.student, played.match.step
            requests.append(_request(observation, student, step, purpose, sampling, sampling.answer_tokens))
    for played, completion in zip(waiting, backend.generate(requests), strict=True):
        played.take_attempt(completion)


def judge_answers(rounds: Sequence[PlayedRound], judge: Judge) -> None:
    """Have the answers that parsed judged, all in one batch; afterwards every round is settled."""
    judge_attempts(
        [played.round for played in rounds],
        judge,
        proposers=[played.match.teacher.member_id for played in rounds],
        solvers=[played.match.student.member_id for played in rounds],
    )


def recall_proposals(rounds: Sequence[PlayedRound], proposed: dict[str, set[str]]) -> None:
    """Tell which problems are repeats, in the order of the rounds; what each teacher proposed is added, by its id.

    Rounds from which the teacher does not learn are neither compared nor remembered.
    """
    for played in rounds:
        if played.match.teacher in played.match.learners:
            played.round.recall(proposed.setdefault(played.match.teacher.member_id, set()))


def _request(
    observation: Observation, member: Member, step: int, purpose: str, sampling: Sampling, max_new_tokens: int
) -> Request:
    return Request(
        adapter=member.adapter,
        messages=observation.messages,
        max_new_tokens=max_new_tokens,
        temperature=sampling.temperature * member.temperature_scale,
        top_p=sampling.top_p,
        stop=sampling.stop,
        seed=seeds.seed(sampling.seed, step, "sampling", purpose),
    )
