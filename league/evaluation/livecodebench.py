"""LiveCodeBench: whole programs that read and print text, and methods of a class `Solution`.

Owns the meaning of the rows, the prompts and the grader. Expected outputs stay in this process. Source: Jain et al.
2024 (arXiv 2403.07974); file format of livecodebench/code_generation_lite.
"""

from __future__ import annotations

import base64
import json
import pickletools
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from league.evaluation.calls import describe, run
from league.evaluation.data import Fields, Source, limited, read_rows, required
from league.evaluation.programs import code_block
from league.evaluation.types import Answer, EvaluationError, Grade, Question, Suite
from populora_env.sandbox.jobs import Job, Outcome
from populora_env.scoring import ProgramLimits, method_job, program_job, read_value, same_text, verdict_on
from populora_env.types import Verdict
from populora_env.values import DecodeError, Value
from populora_env.verifier import Verifier

LIVECODEBENCH = Source(
    files=("livecodebench", "livecodebench_sample", "test"),
    hub=None,
    origin="huggingface.co/datasets/livecodebench/code_generation_lite",
)
_MAX_NEW_TOKENS = 2048
_STDIN, _FUNCTIONAL = "stdin", "functional"
_ASK_PROGRAM = (
    "Write a Python program that reads the input from stdin and prints the answer. Answer with one code block."
)
_ASK_METHOD = "Complete this Python class. Answer with one code block that holds all of it."
_LEAST_CPU_S: Final = 6.0
"""CPU time of one test, in seconds: LiveCodeBench's own limit."""
PRELUDE: Final = (
    "import bisect, collections, copy, functools, heapq, itertools, math, operator, random, re, string, sys\n"
    "from bisect import *\nfrom collections import *\nfrom functools import *\nfrom heapq import *\n"
    "from itertools import *\nfrom math import *\nfrom typing import *\n"
)
"""What programs of contests use without importing it; LiveCodeBench puts such lines before them too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """One problem with its tests."""

    method: str | None
    """Of class `Solution`; None where a whole program is asked for."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def livecodebench(folder: Path | None, verifier: Verifier, limits: ProgramLimits, limit: int | None = None) -> Suite:
    """Return LiveCodeBench; private tests count where the data have them.

    Raises:
        EvaluationError: The data are missing or malformed.
    """
    rows = limited(read_rows("livecodebench", LIVECODEBENCH, folder), limit)
    contests = [_contest(row) for row in rows]
    questions = tuple(_question(row, contest) for row, contest in zip(rows, contests, strict=True))
    return Suite(
        name="livecodebench",
        questions=questions,
        grader=ContestGrader(contests, verifier, limits),
        stop=("\n```",),
        max_new_tokens=_MAX_NEW_TOKENS,
        canonical=(),
    )


def _contest(row: Fields) -> Contest:
    name = row.get("question_id", "?")
    tests = [*_tests(name, required("livecodebench", row, "public_test_cases")), *_private(name, row)]
    metadata = json.loads(row["metadata"]) if row.get("metadata") else {}
    kinds = {str(test.get("testtype")) for test in tests}
    if len(kinds) != 1 or not kinds <= {_STDIN, _FUNCTIONAL}:
        raise EvaluationError(
            f"livecodebench/{name}: expected tests of one type, stdin or functional, got {sorted(kinds)}"
        )
    functional = kinds == {_FUNCTIONAL}
    if functional and not str(metadata.get("func_name", "")).isidentifier():
        raise EvaluationError(f"livecodebench/{name}: expected the name of a method in `metadata`, got {metadata!r}")
    return Contest(
        method=str(metadata["func_name"]) if functional else None,
        inputs=tuple(str(test["input"]) for test in tests),
        outputs=tuple(str(test["output"]) for test in tests),
    )


def _tests(name: str, text: Any) -> list[dict[str, Any]]:
    try:
        tests = json.loads(text)
    except (TypeError, ValueError) as error:
        raise EvaluationError(f"livecodebench/{name}: expected tests as JSON in a string, got {text!r:.80}") from error
    if not isinstance(tests, list) or not all(
        isinstance(test, dict) and {"input", "output"} <= test.keys() for test in tests
    ):
        raise EvaluationError(f"livecodebench/{name}: expected a list of tests with input and output, got {text!r:.80}")
    return tests


def _private(name: str, row: Fields) -> list[dict[str, Any]]:
    """Return the private tests; published as a zipped pickle of one string, which is read and never run."""
    text = row.get("private_test_cases")
    if not text:
        return []
    if text.lstrip().startswith("["):
        return _tests(name, text)
    try:
        data = zlib.decompress(base64.b64decode(text))
        (inner,) = (argument for _, argument, _ in pickletools.genops(data) if isinstance(argument, str))
    except (ValueError, zlib.error) as error:
        raise EvaluationError(f"livecodebench/{name}: `private_test_cases` cannot be read") from error
    return _tests(name, inner)


def _question(row: Fields, contest: Contest) -> Question:
    text = str(required("livecodebench", row, "question_content")).strip()
    starter = str(row.get("starter_code") or "").strip()
    ask = _ASK_PROGRAM if contest.method is None else _ASK_METHOD
    shown = f"\n\n```python\n{starter}\n```" if starter else ""
    return Question(
        question_id=f"livecodebench/{row.get('question_id', row.get('question_title'))}",
        base_prompt=f"# Problem\n{text}{shown}\n\n# {ask}\n```python\n",
        chat_prompt=f"{ask}\n\n{text}{shown}",
    )


class ContestGrader:
    """Grades programs by what they print, and methods by what they return, on every test."""

    def __init__(self, contests: Sequence[Contest], verifier: Verifier, limits: ProgramLimits) -> None:
        """Keep the problems; nothing runs yet."""
        self._contests = contests
        self._verifier = verifier
        cpu_s = max(_LEAST_CPU_S, limits.cpu_s)
        self._limits = ProgramLimits(cpu_s=cpu_s, most_cpu_s=max(cpu_s, limits.most_cpu_s), wall_s=limits.wall_s)

    def grade(self, answers: Sequence[Answer]) -> list[Grade]:
        """See `Grader`."""
        programs = [(answer.place, _source(answer)) for answer in answers]
        distinct = list(dict.fromkeys(programs))
        outcomes = run(self._verifier, [self._job(place, source) for place, source in distinct])
        grades = {
            program: self._judge(program[0], outcome) for program, outcome in zip(distinct, outcomes, strict=True)
        }
        return [grades[program] for program in programs]

    def _job(self, place: int, source: str) -> Job:
        contest = self._contests[place]
        program = f"{PRELUDE}\n{source}"
        if contest.method is None:
            return program_job(program, contest.inputs, self._limits)
        return method_job(program, f"Solution().{contest.method}", contest.inputs, self._limits)

    def _judge(self, place: int, outcome: Outcome) -> Grade:
        verdict: Verdict | None = verdict_on(outcome)
        if verdict is not None:
            return describe(verdict)
        contest = self._contests[place]
        for result, expected in zip(outcome.results, contest.outputs, strict=True):
            try:
                value = read_value(result)
            except DecodeError:
                return Grade(correct=False, detail=str(result.status))
            right = same_text(value, expected) if contest.method is None else _same_json(value, expected)
            if not right:
                return Grade(correct=False, detail="wrong")
        return Grade(correct=True, detail="ok")


def _source(answer: Answer) -> str:
    """Return the program: a message's code block, or what continues one that the prompt has opened."""
    return code_block(answer.text) if answer.manner == "chat" else answer.text.split("\n```")[0]


def _same_json(value: Value, expected: str) -> bool:
    """Return whether a result is what a test has in JSON; JSON has no tuples, so these count as lists."""
    try:
        return bool(_lists(value) == json.loads(expected))
    except ValueError:
        return False


def _lists(value: Value) -> Value:
    return [_lists(item) for item in value] if isinstance(value, list | tuple) else value
