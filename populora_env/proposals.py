"""How a proposal is judged: screened from its text, run twice, replayed under other hash seeds and restated.

Owns what makes a proposal valid. A check is a generator: it yields the jobs that it needs, is sent their outcomes, and
returns the verdict, so that the checks of a whole batch share the zygotes.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Generator, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from populora_env.admission import defines_f, refusal_of
from populora_env.config import VerifierConfig
from populora_env.restatement import hangs_on_interpreter, restate
from populora_env.sandbox.jobs import CallResult, Job, Outcome
from populora_env.sandbox.kinds import HASH_SEEDS
from populora_env.sensitivity import depends_on_addresses, depends_on_hashes, may_leave_traces
from populora_env.sharing import leaves_nothing
from populora_env.source import SourceError, parse_program
from populora_env.types import Proposal, ProposalVerdict, Status, Task, Verdict
from populora_env.values import DecodeError, LiteralError, format_payload, read_literal

_T = TypeVar("_T")
Check: TypeAlias = Generator[tuple[Job, ...], tuple[Outcome, ...], _T]

CPU_SHARE = 4
"""A proposal gets this part of an answer's CPU time, so that verdicts do not flip at the edge."""
CALLS = 2
"""Calls of `f` on each input in one process: both must give the same."""
_BYTES_PER_CHAR = 4
"""No literal is shorter than its encoding by more than this factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Screened:
    """A proposal that may be run."""

    inputs: tuple[bytes, ...]
    literals: tuple[str, ...]
    hash_seeds: tuple[int, ...]
    traces: bool
    """Whether a call may leave something behind for the next input."""
    plain: bool
    """Whether nothing of it can be left in its process."""
    restated: str | None
    """The program as a Python would run it that decides otherwise what the language leaves open; None: the same."""


def proposal_key(proposal: Proposal) -> Hashable:
    """Return the content on which the verdict on a proposal depends."""
    return proposal.task, proposal.program, proposal.inputs


def check_proposal(proposal: Proposal, config: VerifierConfig, *, owner: Hashable = None) -> Check[ProposalVerdict]:
    """Judge a proposal: valid if it is admitted, ends in time, and every run gives the same, writable values.

    The first runs of one owner's plain programs may share a process; each replay has its own, so that what one program
    did to another would show.
    """
    screened = _screen(proposal, config)
    if isinstance(screened, Verdict):
        return ProposalVerdict(verdict=screened)
    first, *others = screened.hash_seeds
    # The replays have the limits of answers: what comes out the same under tighter ones does not hang on either.
    shares = ("owner", owner) if owner is not None and screened.plain else None
    (outcome,) = yield (_job(proposal.program, screened.inputs, first, config, tight=True, shares=shares),)
    verdict = _verdict_on_run(outcome)
    exec_ms = outcome.cpu_ms
    if not verdict.ok:
        return ProposalVerdict(verdict=verdict, exec_ms=exec_ms)
    payloads = [result.payload for result in outcome.results[::CALLS]]
    outputs = [_written(payload, config) for payload in payloads]
    refusals = [output for output in outputs if isinstance(output, Verdict)]
    if refusals:
        return ProposalVerdict(verdict=refusals[0], exec_ms=exec_ms)
    # Where a call may leave traces, each input has a child of its own in one of the replays.
    step = 1 if screened.traces else len(payloads)
    parts = [(others[0], start, start + step) for start in range(0, len(payloads), step)]
    parts += [(seed, 0, len(payloads)) for seed in others[1:]]
    jobs = [_job(proposal.program, screened.inputs[start:end], seed, config) for seed, start, end in parts]
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
    )


def _screen(proposal: Proposal, config: VerifierConfig) -> _Screened | Verdict:
    """Judge what can be judged without running anything."""
    try:
        tree = parse_program(proposal.program)
    except SourceError:
        return Verdict(status=Status.FORMAT, detail="program")
    if not defines_f(tree):
        return Verdict(status=Status.FORMAT, detail="no f")
    inputs: list[bytes] = []
    literals: list[str] = []
    for text in proposal.inputs:
        data = read_arguments(text, config)
        if data is None:
            return Verdict(status=Status.FORMAT, detail="input")
        inputs.append(data)
    refusal = refusal_of(proposal.program, tree)
    if refusal is not None:
        return inadmissible(refusal.rule)
    for data in inputs:
        literal = _written(data, config)
        if isinstance(literal, Verdict):
            return literal
        literals.append(literal)
    if not inputs or (proposal.task is Task.INDUCTION and len(set(inputs)) < len(inputs)):
        return inadmissible("duplicate_inputs") if inputs else Verdict(status=Status.FORMAT, detail="input")
    seeds = seeds_for(proposal.program, tree, literals)
    try:
        restated = restate(proposal.program) if hangs_on_interpreter(tree) else None
    except ValueError:
        return Verdict(status=Status.FORMAT, detail="program")
    return _Screened(
        inputs=tuple(inputs),
        literals=tuple(literals),
        hash_seeds=seeds,
        traces=may_leave_traces(tree),
        plain=leaves_nothing(tree),
        restated=restated,
    )


def inadmissible(rule: str) -> Verdict:
    """Return the verdict that names a rule of `admission.RULES`."""
    return Verdict(status=Status.INADMISSIBLE, detail=rule)


def read_arguments(text: str, config: VerifierConfig) -> bytes | None:
    """Return the encoding of an argument tuple, None if `text` is no literal of one."""
    try:
        value, data = read_literal(text, max_chars=config.max_answer_chars)
    except LiteralError:
        return None
    return data if type(value) is tuple else None


def seeds_for(program: str, tree: ast.Module, literals: Sequence[str]) -> tuple[int, ...]:
    """Return the hash seeds under which a proposal must give the same.

    Two, in an order that its text decides (so that both kinds of zygote have work); all of them where sets are
    about, or addresses as text, since two seeds agree on half of the orders of two elements, and two zygotes on half of
    the bits of an address.
    """
    if (
        depends_on_hashes(tree)
        or depends_on_addresses(tree)
        or any("{" in literal or "set(" in literal for literal in literals)
    ):
        return HASH_SEEDS
    pair = HASH_SEEDS[:2]
    return pair if hashlib.blake2b(program.encode(), digest_size=1).digest()[0] % 2 else pair[::-1]


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


def _written(payload: bytes, config: VerifierConfig) -> str | Verdict:
    """Return the literal of a value, or the verdict that a solver could not write it."""
    longest = config.max_answer_chars // 2
    if len(payload) > _BYTES_PER_CHAR * longest:
        return inadmissible("unanswerable")
    try:
        literal = format_payload(payload)
        readable = len(literal) <= longest and read_literal(literal, max_chars=longest)[1] == payload
    except DecodeError:
        return Verdict(status=Status.BAD_FRAME)
    except LiteralError:
        readable = False
    return literal if readable else inadmissible("unanswerable")
