"""How programs of benchmarks are run and compared: calls of a function, a benchmark's own test, whole programs.

Owns the jobs and the comparison, which is made here, on values decoded from canonical bytes: no candidate sees an
expected output, and no object of a candidate is ever compared. Owns no benchmark and no data. All jobs run where numpy
is loaded (`Flavour.NUMPY`), each candidate in a process of its own.

A benchmark's own test never shares a process with a candidate. It runs once on the canonical solution, which gives the
arguments of its calls; the candidate is called with these in one child; what it returned is handed to the test in
another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Final

from populora_env.sandbox.jobs import CallResult, Job, Outcome
from populora_env.sandbox.spelling import stand_in, stripped
from populora_env.types import Status, Verdict
from populora_env.values import DecodeError, Value, decode, encode

__all__ = [
    "ProgramLimits",
    "call_job",
    "canonical_job",
    "close",
    "method_job",
    "program_job",
    "record_job",
    "replay_job",
    "same_text",
    "verdict_on",
]

RTOL: Final = 1e-7
"""Relative tolerance beside a problem's absolute one, as `numpy.testing.assert_allclose` has it."""
_FLOAT_ATOL: Final = 1e-6
"""Absolute tolerance where floats are expected and the data name none (EvalPlus' rule)."""
_TRUSTED_CPU_S: Final = 60.0
"""CPU time of a benchmark's own test, and of each call of a canonical solution."""
_SLOWER: Final = 4.0
"""How many times slower than the canonical solution on all inputs a single call may be (EvalPlus' factor)."""
_HARNESS = "\n\nimport populora_env.sandbox.harness as _harness\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramLimits:
    """What a benchmark's program may take."""

    cpu_s: float = 2.0
    """CPU time of one call, or of one run of a whole program, in seconds; in (0, 60]."""
    most_cpu_s: float = 20.0
    """What `cpu_s` grows to at most for a problem whose canonical solution is slow; in [cpu_s, 60]."""
    wall_s: float = 120.0
    """Wall clock of the same, in seconds; generous, since scores must not depend on the machine's load."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not 0 < self.cpu_s <= self.most_cpu_s <= 60 or self.wall_s < self.most_cpu_s:
            raise ValueError(
                f"expected 0 < `cpu_s` <= `most_cpu_s` <= 60 and `wall_s` at least that, "
                f"got {self.cpu_s!r}, {self.most_cpu_s!r} and {self.wall_s!r}"
            )

    def beside(self, canonical: Outcome) -> ProgramLimits:
        """Return the limits of candidates at a problem: a slow canonical solution earns them more time."""
        return replace(self, cpu_s=min(self.most_cpu_s, max(self.cpu_s, _SLOWER * canonical.cpu_ms / 1000)))


TRUSTED: Final = ProgramLimits(cpu_s=_TRUSTED_CPU_S, most_cpu_s=_TRUSTED_CPU_S)
"""Limits of what belongs to a benchmark."""


def call_job(source: str, entry: str, inputs: Sequence[bytes], limits: ProgramLimits, *, finds: bool = False) -> Job:
    """Return the job that calls a function of a program, with fresh globals for each input.

    Args:
        source: The program.
        entry: Name of the function, or an expression that gives one (`Solution().solve`).
        inputs: As `encode_arguments` gives them.
        limits: For each call.
        finds: Whether all that counts is that something was found: a bool as it is, else whether it is not None.
    """
    function = f"_harness.{'finds' if finds else 'returns'}({entry})"
    return _numbered(f"{source}{_HARNESS}f = _harness.takes({function}, {tuple(inputs)!r})\n", len(inputs), limits)


def canonical_job(job: Job) -> Job:
    """Return the job with which a canonical solution runs on all inputs, also after one on which it died."""
    return replace(job, ends_at_death=False)


def program_job(source: str, texts: Sequence[str], limits: ProgramLimits) -> Job:
    """Return the job that runs a whole program once for each text at its standard input; it gives what was printed."""
    program = f"{_HARNESS}f = _harness.runs({source!r}, {tuple(texts)!r})\n"
    return _numbered(program, len(texts), limits)


def method_job(source: str, entry: str, texts: Sequence[str], limits: ProgramLimits) -> Job:
    """Return the job that calls a function once for each text, which holds one argument a line, in JSON."""
    program = f"{source}{_HARNESS}f = _harness.reads({entry}, {tuple(texts)!r})\n"
    return _numbered(program, len(texts), limits)


def record_job(source: str, entry: str, test: str) -> Job:
    """Return the job that runs a test (which defines `check`) on the right solution, to learn how it calls it."""
    program = f"{test}{_HARNESS}f = _harness.record(check, {source!r}, {entry!r})\n"
    return _job(program, [encode(())], TRUSTED)


def replay_job(test: str, entry: str, arguments: Sequence[bytes], results: Sequence[bytes]) -> Job:
    """Return the job that runs a test on what a candidate returned; no code of the candidate's is in it."""
    known = [encode((tuple(arguments), tuple(results)))]
    return _job(f"{test}{_HARNESS}f = _harness.replay(check, {entry!r})\n", known, TRUSTED)


def _numbered(program: str, count: int, limits: ProgramLimits) -> Job:
    """Return the job of a program that has its inputs in it and is called with their numbers: they may be longer so."""
    return _job(program, [encode((number,)) for number in range(count)], limits)


def _job(program: str, inputs: Sequence[bytes], limits: ProgramLimits) -> Job:
    return Job(
        program=program,
        inputs=tuple(inputs),
        cpu_s=limits.cpu_s,
        wall_s=limits.wall_s,
        numpy=True,
        ends_at_death=True,
    )


def verdict_on(outcome: Outcome) -> Verdict | None:
    """Return the verdict on the first call that gave no value, None where all did."""
    failed = next((result for result in outcome.results if result.status is not Status.OK), None)
    return None if failed is None else Verdict(status=failed.status, detail=failed.detail)


def read_value(result: CallResult) -> Value:
    """Return the value that a call gave.

    Raises:
        DecodeError: It gave none, or bytes that encode none.
    """
    if result.status is not Status.OK:
        raise DecodeError(f"expected a value, got {result.status}")
    return decode(result.payload)


def close(value: Value, expected: Value, *, atol: float) -> bool:
    """Return whether a value is right: equal by ==, or floats within the tolerance.

    Args:
        value: What a candidate returned, of exact builtin types.
        expected: What the canonical solution returned.
        atol: Absolute tolerance. Where it is 0 and a float is expected, or a list or tuple of floats, it is 1e-6.
    """
    if value == expected:
        return True
    if atol == 0 and not _is_floats(expected):
        return False
    if type(value) is not type(expected):
        return False
    try:
        return _near(value, expected, atol or _FLOAT_ATOL)
    except (TypeError, OverflowError):
        return False


def _is_floats(value: Value) -> bool:
    if type(value) in (list, tuple):
        return bool(value) and all(type(item) is float for item in value)
    return type(value) is float


def _near(value: Value, expected: Value, atol: float) -> bool:
    """Return whether numbers, alone or in lists and tuples of one shape, lie within the tolerance.

    Raises:
        TypeError: Something else is in them.
    """
    boxes = (list, tuple)
    if type(expected) in boxes or type(value) in boxes:
        if type(value) not in boxes or type(expected) not in boxes or len(value) != len(expected):
            return False
        return all(_near(one, other, atol) for one, other in zip(value, expected, strict=True))
    return bool(value == expected or abs(value - expected) <= atol + RTOL * abs(expected))


def same_text(printed: Value, expected: str) -> bool:
    """Return whether what a program printed is right: line by line, apart from spaces at the ends.

    Lines that differ are compared word by word as numbers, where every word of both is one.

    Args:
        printed: As a program job gave it; for a long text that is what stands for it, and then only equal lines count.
        expected: The text that is right.
    """
    if type(printed) is not str:
        return bool(printed == stand_in(stripped(expected)))
    lines, wanted = stripped(printed).split("\n"), stripped(expected).split("\n")
    return len(lines) == len(wanted) and all(map(_same_line, lines, wanted))


def _same_line(line: str, wanted: str) -> bool:
    if line == wanted:
        return True
    words, wanted_words = line.split(), wanted.split()
    if len(words) != len(wanted_words):
        return False
    try:
        return all(Decimal(word) == Decimal(other) for word, other in zip(words, wanted_words, strict=True))
    except InvalidOperation:
        return False
