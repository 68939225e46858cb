"""The yardstick: what the frozen base solves of the same problems, so that difficulty compares from step to step.

Owns the draw of the problems, the base's attempts and their measures. What is measured here rates nobody, trains nobody
and pays nobody: it draws from a generator of its own, asks the backend in a call of its own, and changes no round.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from league import seeds
from league.metric_table import Metric
from league.rounds import PlayedRound, Sampling
from league.types import Side
from populora_agents.types import Backend, Request
from populora_env.judging import Judge
from populora_env.parsing import parse_answer
from populora_env.types import Answer, Problem, Task

BASE = "base"
"""Scope of what the frozen base did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A problem that the base attempted once."""

    played: PlayedRound
    solved: bool


def try_base(
    rounds: Sequence[PlayedRound], count: int, backend: Backend, judge: Judge, sampling: Sampling, *, step: int
) -> list[Tried]:
    """Have the bare base attempt some of the valid problems of a step, once each.

    Args:
        rounds: Settled.
        count: Problems drawn, evenly and without repetition; all if there are fewer.
        backend: Asked without an adapter, as members are asked but for temperatures of their own.
        judge: Judges the answers.
        sampling: Of the run.
        step: The step.
    """
    valid = [played for played in rounds if played.round.problem is not None]
    order = seeds.generator(sampling.seed, step, "yardstick").permutation(len(valid))
    drawn = [valid[place] for place in sorted(order[:count].tolist())]
    completions = backend.generate([_request(played, sampling, step) for played in drawn]) if drawn else []
    jobs: dict[int, tuple[Problem, Answer]] = {}
    for place, (played, completion) in enumerate(zip(drawn, completions, strict=True)):
        problem, config = played.round.problem, played.round.config
        answer = parse_answer(completion.text, task=played.round.task, config=config)
        if isinstance(answer, Answer) and problem is not None:
            jobs[place] = (problem, answer)
    owners = [_author(drawn[place]) for place in jobs]
    verdicts = dict(zip(jobs, judge.check_answers(list(jobs.values()), owners=owners) if jobs else (), strict=True))
    return [Tried(played=played, solved=place in verdicts and verdicts[place].ok) for place, played in enumerate(drawn)]


def yardstick_metrics(tried: Sequence[Tried]) -> Iterator[Metric]:
    """Yield what the base solved, and what the students solved of the same problems: of all, by task, by member."""
    for task in (None, *Task):
        part = [one for one in tried if task in (None, one.played.round.task)]
        if part:
            rates = [one.played.round.result().solve_rate or 0.0 for one in part]
            yield Metric(BASE, "problems", float(len(part)), task=task)
            yield Metric(BASE, "solve_rate", _share(part), task=task)
            yield Metric(BASE, "student_solve_rate", sum(rates) / len(rates), task=task)
    for side in (Side.TEACHER, Side.STUDENT):
        met: dict[str, list[Tried]] = {}
        for one in tried:
            match = one.played.match
            member = match.teacher if side is Side.TEACHER else match.student
            met.setdefault(member.member_id, []).append(one)
        for member_id, part in sorted(met.items()):
            yield Metric(side.value, "base_solve_rate", _share(part), member_id=member_id)


def _request(played: PlayedRound, sampling: Sampling, step: int) -> Request:
    return Request(
        adapter=None,
        messages=played.round.solver_observation().messages,
        max_new_tokens=sampling.answer_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
        stop=sampling.stop,
        seed=seeds.seed(sampling.seed, step, "sampling", f"{played.proposal_id}/{BASE}"),
    )


def _author(played: PlayedRound) -> str:
    """Return whose program the judge runs: an answer to an abduction is an input to the teacher's."""
    return played.match.teacher.member_id if played.round.task is Task.ABDUCTION else BASE


def _share(tried: Sequence[Tried]) -> float:
    return sum(one.solved for one in tried) / len(tried)
