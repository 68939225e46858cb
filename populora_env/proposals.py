"""How a proposal is judged: screened from its text, run twice, replayed under other hash seeds and restated.

Owns what makes a proposal valid; what its text alone says is the affair of `screening`. A check is a generator: it
yields the jobs that it needs, is sent their outcomes, and returns the verdict, so that the checks of a whole batch
share the zygotes.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Sequence
from typing import TypeAlias, TypeVar

from populora_env.config import VerifierConfig
from populora_env.sandbox.jobs import CallResult, Job, Outcome
from populora_env.screening import glance, inadmissible, screen, written
from populora_env.types import Proposal, ProposalVerdict, Status, Verdict

_T = TypeVar("_T")
Check: TypeAlias = Generator[tuple[Job, ...], tuple[Outcome, ...], _T]

CPU_SHARE = 4
"""A proposal gets this part of an answer's CPU time, so that verdicts do not flip at the edge."""
CALLS = 2
"""Calls of `f` on each input in one process: both must give the same."""


def proposal_key(proposal: Proposal) -> Hashable:
    """Return the content on which the verdict on a proposal depends."""
    return proposal.task, proposal.program, proposal.inputs


def check_proposal(proposal: Proposal, config: VerifierConfig, *, owner: Hashable = None) -> Check[ProposalVerdict]:
    """Judge a proposal: valid if it is admitted, ends in time, and every run gives the same, writable values.

    Runs of one owner's plain programs may share a process: first runs with first runs, replays with replays and in the
    reverse order, so that what one program did to the next would show.
    """
    glanced = glance(proposal, config)
    screened = glanced or screen(proposal, config)
    if isinstance(screened, Verdict):
        return ProposalVerdict(verdict=screened)
    first, *others = screened.hash_seeds
    # The replays have the limits of answers: what comes out the same under tighter ones does not hang on either.
    shares = ("owner", owner) if owner is not None and screened.plain else None
    (outcome,) = yield (_job(proposal.program, screened.inputs, first, config, tight=True, shares=shares),)
    verdict = _verdict_on_run(outcome)
    exec_ms = outcome.cpu_ms
    if not verdict.ok:
        refused = None if glanced is None else screen(proposal, config)
        if isinstance(refused, Verdict):
            return ProposalVerdict(verdict=refused)
        return ProposalVerdict(verdict=verdict, exec_ms=exec_ms)
    payloads = [result.payload for result in outcome.results[::CALLS]]
    outputs = [written(payload, config) for payload in payloads]
    refusals = [output for output in outputs if isinstance(output, Verdict)]
    if refusals:
        return ProposalVerdict(verdict=refusals[0], exec_ms=exec_ms)
    # Where a call may leave traces, each input has a child of its own in one of the replays.
    step = 1 if screened.traces else len(payloads)
    parts = [(others[0], start, start + step) for start in range(0, len(payloads), step)]
    parts += [(seed, 0, len(payloads)) for seed in others[1:]]
    jobs = [
        _job(proposal.program, screened.inputs[start:end], seed, config, shares=shares) for seed, start, end in parts
    ]
    if screened.restated is not None:
        jobs.append(_job(screened.restated, screened.inputs, first, config))
    replays = yield tuple(jobs)
    for replay, (_, start, end) in zip(replays, parts, strict=False):
        verdict = _verdict_on_replay(replay, payloads[start:end])
        if not verdict.ok:
            return ProposalVerdict(verdict=verdict, exec_ms=exec_ms)
    for replay in replays[len(parts) :]:
        verdict = _verdict_on_restatement(replay, payloads)
        if not verdict.ok:
            return ProposalVerdict(verdict=verdict, exec_ms=exec_ms)
    return ProposalVerdict(
        verdict=Verdict(status=Status.OK),
        inputs=screened.literals,
        outputs=tuple(output for output in outputs if isinstance(output, str)),
        exec_ms=exec_ms,
    )


def _job(
    program: str,
    inputs: tuple[bytes, ...],
    hash_seed: int,
    config: VerifierConfig,
    *,
    tight: bool = False,
    shares: Hashable = None,
) -> Job:
    return Job(
        program=program,
        inputs=inputs,
        calls=CALLS,
        cpu_s=config.cpu_s / CPU_SHARE,
        wall_s=config.wall_s,
        hash_seed=hash_seed,
        tight=tight,
        shares=shares,
        last_first=not tight,
    )


def _verdict_on_run(outcome: Outcome) -> Verdict:
    for first, second in zip(outcome.results[::CALLS], outcome.results[1::CALLS], strict=True):
        if first.status is not Status.OK:
            return verdict_of(first)
        if second != first:
            return verdict_on_difference(second)
    return Verdict(status=Status.OK)


def _verdict_on_replay(replay: Outcome, payloads: Sequence[bytes]) -> Verdict:
    for number, result in enumerate(replay.results):
        if result.status is not Status.OK or result.payload != payloads[number // CALLS]:
            return verdict_on_difference(result)
    return Verdict(status=Status.OK)


def _verdict_on_restatement(replay: Outcome, payloads: Sequence[bytes]) -> Verdict:
    verdict = _verdict_on_replay(replay, payloads)
    return inadmissible("unanswerable") if verdict.status is Status.NONDETERMINISTIC else verdict


def verdict_on_difference(result: CallResult) -> Verdict:
    """Return the verdict on a call that did not give what an earlier one gave."""
    if result.status in (Status.TIMEOUT, Status.MEMORY):
        return verdict_of(result)
    return Verdict(status=Status.NONDETERMINISTIC)


def verdict_of(result: CallResult) -> Verdict:
    """Return what came of a call as a verdict."""
    return Verdict(status=result.status, detail=result.detail)
