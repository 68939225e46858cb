"""What is judged of a proposal before anything runs: its program, its inputs, and how it has to be run.

Owns the order in which that is looked at. Most programs are seen to be harmless from their words (`glance`); the others
are parsed, and each check goes through the nodes of the one tree. How a proposal is run is the affair of `proposals`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from populora_env.admission import defines_f, refusal_of
from populora_env.config import VerifierConfig
from populora_env.glance import needs_no_tree
from populora_env.restatement import hangs_on_interpreter, restate
from populora_env.sandbox.kinds import HASH_SEEDS
from populora_env.sensitivity import depends_on_addresses, depends_on_hashes, may_hold_sets, may_leave_traces
from populora_env.sharing import leaves_nothing
from populora_env.source import SourceError, read_program
from populora_env.types import Proposal, Status, Task, Verdict
from populora_env.values import DecodeError, LiteralError, format_payload, read_literal

_BYTES_PER_CHAR = 4
"""No literal is shorter than its encoding by more than this factor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """A proposal that may be run."""

    inputs: tuple[bytes, ...]
    literals: tuple[str, ...]
    hash_seeds: tuple[int, ...]
    """Under which it must give the same."""
    traces: bool = False
    """Whether a call may leave something behind for the next input."""
    plain: bool = True
    """Whether nothing of it can be left in its process."""
    restated: str | None = None
    """The program as a Python would run it that decides otherwise what the language leaves open; None: the same."""


class _RefusedError(Exception):
    """The verdict is known."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(str(verdict))
        self.verdict = verdict


def glance(proposal: Proposal, config: VerifierConfig) -> Screened | None:
    """Screen a proposal by the words of its program; None where that is not enough.

    The text may still be no program. Whoever runs it and sees it fail has to `screen` it.
    """
    if not needs_no_tree(proposal.program):
        return None
    try:
        inputs = _read_inputs(proposal, config)
        literals = _write_inputs(proposal, inputs, config)
    except _RefusedError:
        return None
    seeds = _seeds(proposal.program, sensitive=_name_sets(literals))
    return Screened(inputs=inputs, literals=literals, hash_seeds=seeds)


def screen(proposal: Proposal, config: VerifierConfig) -> Screened | Verdict:
    """Judge what can be judged without running anything."""
    try:
        return _screen(proposal, config)
    except _RefusedError as refused:
        return refused.verdict


def _screen(proposal: Proposal, config: VerifierConfig) -> Screened:
    try:
        _, nodes = read_program(proposal.program)
    except SourceError:
        raise _RefusedError(Verdict(status=Status.FORMAT, detail="program")) from None
    if not defines_f(nodes):
        raise _RefusedError(Verdict(status=Status.FORMAT, detail="no f"))
    inputs = _read_inputs(proposal, config)
    refusal = refusal_of(proposal.program, nodes)
    if refusal is not None:
        raise _RefusedError(inadmissible(refusal.rule))
    literals = _write_inputs(proposal, inputs, config)
    sensitive = depends_on_hashes(nodes) or depends_on_addresses(nodes) or _name_sets(literals)
    try:
        restated = restate(proposal.program) if hangs_on_interpreter(nodes) else None
    except ValueError:
        raise _RefusedError(Verdict(status=Status.FORMAT, detail="program")) from None
    return Screened(
        inputs=inputs,
        literals=literals,
        hash_seeds=_seeds(proposal.program, sensitive=sensitive),
        traces=may_leave_traces(nodes),
        plain=leaves_nothing(nodes),
        restated=restated,
    )


def _read_inputs(proposal: Proposal, config: VerifierConfig) -> tuple[bytes, ...]:
    """Return the canonical bytes of the inputs.

    Raises:
        _RefusedError: One cannot be read.
    """
    inputs = [read_arguments(text, config) for text in proposal.inputs]
    known = tuple(data for data in inputs if data is not None)
    if len(known) < len(inputs):
        raise _RefusedError(Verdict(status=Status.FORMAT, detail="input"))
    return known


def _write_inputs(proposal: Proposal, inputs: tuple[bytes, ...], config: VerifierConfig) -> tuple[str, ...]:
    """Return the canonical literals of the inputs.

    Raises:
        _RefusedError: One cannot be written, there is none, or two of an induction problem are the same.
    """
    literals: list[str] = []
    for data, text in zip(inputs, proposal.inputs, strict=True):
        literal = written(data, config, known=text)
        if isinstance(literal, Verdict):
            raise _RefusedError(literal)
        literals.append(literal)
    if not inputs:
        raise _RefusedError(Verdict(status=Status.FORMAT, detail="input"))
    if proposal.task is Task.INDUCTION and len(set(inputs)) < len(inputs):
        raise _RefusedError(inadmissible("duplicate_inputs"))
    return tuple(literals)


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


def written(payload: bytes, config: VerifierConfig, *, known: str = "") -> str | Verdict:
    """Return the literal of a value, or the verdict that a solver could not write it.

    Args:
        payload: The value in bytes that anybody may have made.
        config: Says how long an answer may be.
        known: A text that was read as this value; if it is the literal, it need not be read again.
    """
    longest = config.max_answer_chars // 2
    if len(payload) > _BYTES_PER_CHAR * longest:
        return inadmissible("unanswerable")
    try:
        literal = format_payload(payload)
        readable = len(literal) <= longest and (
            literal == known or read_literal(literal, max_chars=longest)[1] == payload
        )
    except DecodeError:
        return Verdict(status=Status.BAD_FRAME)
    except LiteralError:
        readable = False
    return literal if readable else inadmissible("unanswerable")


def _name_sets(literals: Sequence[str]) -> bool:
    """Return whether a set may be among the values, whose order depends on the hash seed."""
    return any(map(may_hold_sets, literals))


def _seeds(program: str, *, sensitive: bool) -> tuple[int, ...]:
    """Return the hash seeds under which a proposal must give the same.

    Two, in an order that its text decides (so that both kinds of zygote have work); all of them where sets are
    about, or addresses as text, since two seeds agree on half of the orders of two elements, and two zygotes on half of
    the bits of an address.
    """
    if sensitive:
        return HASH_SEEDS
    pair = HASH_SEEDS[:2]
    return pair if hashlib.blake2b(program.encode(), digest_size=1).digest()[0] % 2 else pair[::-1]
