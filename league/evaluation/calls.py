"""Grading functions: by their results on inputs against the canonical solution's, or by a benchmark's own test.

Owns when a candidate is right. How it is run is `populora_env.scoring`'s affair; what a problem is, each suite's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from league.evaluation.types import Answer, EvaluationError, Grade
from populora_env.sandbox.jobs import CallResult, Job, Outcome
from populora_env.sandbox.spelling import decode_arguments
from populora_env.scoring import (
    TRUSTED,
    ProgramLimits,
    call_job,
    canonical_job,
    close,
    read_value,
    record_job,
    replay_job,
    verdict_on,
)
from populora_env.types import Status, Verdict
from populora_env.values import DecodeError, Value
from populora_env.verifier import Verifier

Oracle: TypeAlias = Callable[[tuple[Value, ...], Value, Value], bool]
"""Whether a result is right, by arguments, result, and the canonical result; may raise what arithmetic does.""" ""
_T = TypeVar("_T")
_LOG = logging.getLogger(__name__)
_CHUNK = 512
"""Jobs whose results are held at once."""
_OK, _WRONG = Grade(correct=True, detail="ok"), Grade(correct=False, detail="wrong")
_ARITHMETIC = (TypeError, ValueError, ArithmeticError, LookupError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A function to write, and what it is tested with."""

    problem_id: str
    entry: str
    canonical: str
    """The whole program of the canonical solution."""
    to_program: Callable[[Answer], str]
    inputs: tuple[bytes, ...] = ()
    """As `populora_env.scoring.encode_arguments` gives them."""
    atol: float = 0.0
    """Absolute tolerance of floats; 0 as `populora_env.scoring.close` says."""
    oracle: Oracle | None = None
    """Takes the place of the comparison."""
    finds: bool = False
    """Whether all that counts is that something was found."""
    test: str = ""
    """Source that defines `check(candidate)`, for the grader by tests."""


def describe(verdict: Verdict) -> Grade:
    """Return the grade of an answer that gave nothing to compare."""
    return Grade(correct=False, detail=f"{verdict.status}({verdict.detail})" if verdict.detail else str(verdict.status))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gold:
    """What the canonical solution of a problem said."""

    inputs: tuple[bytes, ...]
    """Those on which it gave a value."""
    results: tuple[CallResult, ...]
    limits: ProgramLimits
    """What candidates get."""


class CallGrader:
    """Grades by results on inputs; what is right comes from the canonical solutions, which run once."""

    def __init__(self, problems: Sequence[Problem], verifier: Verifier, limits: ProgramLimits) -> None:
        """Keep the problems; nothing runs yet."""
        self._problems = problems
        self._verifier = verifier
        self._limits = limits
        self._gold: dict[int, _Gold] = {}

    def grade(self, answers: Sequence[Answer]) -> list[Grade]:
        """See `Grader`.

        Raises:
            EvaluationError: A canonical solution runs on none of its inputs.
            SandboxError: The sandbox failed.
        """
        places = sorted({answer.place for answer in answers} - self._gold.keys())
        jobs = [canonical_job(self._job(place, self._problems[place].canonical, TRUSTED)) for place in places]
        for place, outcome in zip(places, run(self._verifier, jobs), strict=True):
            self._gold[place] = self._learn(self._problems[place], outcome)
        programs = [(answer.place, self._problems[answer.place].to_program(answer)) for answer in answers]
        return _once(programs, self._grade_programs)

    def _learn(self, problem: Problem, outcome: Outcome) -> _Gold:
        """Take the canonical solution's results; inputs on which it gave none within the limits are left out."""
        pairs = zip(problem.inputs, outcome.results, strict=True)
        kept = [(data, result) for data, result in pairs if result.status is Status.OK]
        if not kept:
            _require_canonical(problem, verdict_on(outcome))
        if len(kept) < len(problem.inputs):
            left_out = len(problem.inputs) - len(kept)
            _LOG.warning("%s: %d of %d inputs left out", problem.problem_id, left_out, len(problem.inputs))
        return _Gold(
            inputs=tuple(data for data, _ in kept),
            results=tuple(result for _, result in kept),
            limits=self._limits.beside(outcome),
        )

    def _grade_programs(self, programs: Sequence[tuple[int, str]]) -> list[Grade]:
        grades = []
        for start in range(0, len(programs), _CHUNK):
            chunk = programs[start : start + _CHUNK]
            jobs = [self._job(place, source, self._gold[place].limits) for place, source in chunk]
            outcomes = run(self._verifier, jobs)
            grades += [self._judge(place, outcome) for (place, _), outcome in zip(chunk, outcomes, strict=True)]
        return grades

    def _job(self, place: int, source: str, limits: ProgramLimits) -> Job:
        problem, gold = self._problems[place], self._gold.get(place)
        return call_job(source, problem.entry, gold.inputs if gold else problem.inputs, limits, finds=problem.finds)

    def _judge(self, place: int, outcome: Outcome) -> Grade:
        verdict = verdict_on(outcome)
        if verdict is not None:
            return describe(verdict)
        gold = self._gold[place]
        triples = zip(gold.inputs, outcome.results, gold.results, strict=True)
        return _OK if all(_right(self._problems[place], *triple) for triple in triples) else _WRONG


def _right(problem: Problem, arguments: bytes, result: CallResult, gold: CallResult) -> bool:
    if problem.oracle is None and result.payload == gold.payload:
        return True
    try:
        value = read_value(result)
    except DecodeError:
        return False
    expected = read_value(gold)
    if problem.oracle is None:
        return close(value, expected, atol=problem.atol)
    try:
        return problem.oracle(decode_arguments(arguments), value, expected)
    except _ARITHMETIC:
        return False


class TestGrader:
    """Grades by a benchmark's own test, which never shares a process with a candidate (see `populora_env.scoring`)."""

    __test__ = False  # nothing for pytest to collect

    def __init__(self, problems: Sequence[Problem], verifier: Verifier, limits: ProgramLimits) -> None:
        """Keep the problems; nothing runs yet."""
        self._problems = problems
        self._verifier = verifier
        self._limits = limits
        self._calls: dict[int, tuple[Outcome, tuple[bytes, ...]]] = {}
        """How the test went, and the arguments of its calls."""

    def grade(self, answers: Sequence[Answer]) -> list[Grade]:
        """See `Grader`.

        Raises:
            EvaluationError: A canonical solution does not pass its test.
            SandboxError: The sandbox failed.
        """
        places = sorted({answer.place for answer in answers} - self._calls.keys())
        jobs = [
            record_job(problem.canonical, problem.entry, problem.test)
            for problem in (self._problems[place] for place in places)
        ]
        for place, outcome in zip(places, run(self._verifier, jobs), strict=True):
            _require_canonical(self._problems[place], verdict_on(outcome))
            self._calls[place] = outcome, read_value(outcome.results[0])
        return _once(
            [(answer.place, self._problems[answer.place].to_program(answer)) for answer in answers],
            self._grade_programs,
        )

    def _grade_programs(self, programs: Sequence[tuple[int, str]]) -> list[Grade]:
        called = run(self._verifier, [self._job(place, source) for place, source in programs])
        grades: dict[int, Grade] = {}
        tests: dict[int, Job] = {}
        for number, ((place, _), outcome) in enumerate(zip(programs, called, strict=True)):
            problem, verdict = self._problems[place], verdict_on(outcome)
            if verdict is not None:
                grades[number] = describe(verdict)
            else:
                results = [result.payload for result in outcome.results]
                tests[number] = replay_job(problem.test, problem.entry, self._calls[place][1], results)
        for number, outcome in zip(tests, run(self._verifier, list(tests.values())), strict=True):
            passed = verdict_on(outcome) is None and read_value(outcome.results[0]) is True
            grades[number] = _OK if passed else _WRONG
        return [grades[number] for number in range(len(programs))]

    def _job(self, place: int, source: str) -> Job:
        problem, (canonical, inputs) = self._problems[place], self._calls[place]
        return call_job(source, problem.entry, inputs, self._limits.beside(canonical), finds=problem.finds)


def run(verifier: Verifier, jobs: Sequence[Job]) -> list[Outcome]:
    """Run jobs; one without inputs (a problem without calls) comes to nothing.

    Raises:
        SandboxError: The sandbox failed.
    """
    return verifier.run(jobs) if jobs else []


def _require_canonical(problem: Problem, verdict: Verdict | None) -> None:
    if verdict is not None:
        raise EvaluationError(
            f"{problem.problem_id}: expected the canonical solution to run, got {describe(verdict).detail}; "
            "is the data file whole?"
        )


def _once(programs: Sequence[_T], grade: Callable[[Sequence[_T]], list[Grade]]) -> list[Grade]:
    """Grade what occurs several times once."""
    distinct = list(dict.fromkeys(programs))
    grades = dict(zip(distinct, grade(distinct), strict=True))
    return [grades[program] for program in programs]
