"""MBPP (sanitized), by its own tests, and MBPP+, by its inputs against the canonical solutions' results.

Owns the meaning of the rows, and the prompts. Sources: Austin et al. 2021 (arXiv 2108.07732), Liu et al. 2023 (arXiv
2305.01210); file formats of google-research/mbpp and evalplus/mbppplus_release. What MBPP+ lost on its way through
JSON, and which problems need an oracle, is in `mbpp_plus_rules`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from league.evaluation.calls import CallGrader, Problem, TestGrader
from league.evaluation.data import Fields, Source, limited, read_rows, required
from league.evaluation.mbpp_plus_rules import FINDS, ORACLES, restore
from league.evaluation.programs import MBPP_STOP, solution
from league.evaluation.types import Answer, EvaluationError, Question, Suite
from populora_env.sandbox.spelling import encode_arguments
from populora_env.scoring import ProgramLimits
from populora_env.verifier import Verifier

MBPP = Source(
    files=("mbpp_sanitized", "sanitized-mbpp"),
    hub=("google-research-datasets/mbpp", "sanitized", "train+test+validation+prompt"),
    origin="github.com/google-research/google-research/tree/master/mbpp (sanitized-mbpp.json, one object a line)",
)
MBPP_PLUS = Source(files=("mbppplus", "MbppPlus"), hub=None, origin="github.com/evalplus/mbppplus_release")
_MAX_NEW_TOKENS = 512
_ASK = (
    "Write the Python function that is asked for. Answer with one Python code block that holds it and what it imports."
)


def mbpp(folder: Path | None, verifier: Verifier, limits: ProgramLimits, limit: int | None = None) -> Suite:
    """Return MBPP (sanitized, all 427 problems), judged by its own tests.

    Raises:
        EvaluationError: The data are missing or malformed.
    """
    rows = limited(read_rows("mbpp", MBPP, folder), limit)
    prompts = [f'"""\n{required("mbpp", row, "prompt")}\n{_tests(row)[0]}\n"""\n' for row in rows]
    problems = [_sanitized(row, prompt) for row, prompt in zip(rows, prompts, strict=True)]
    return _suite("mbpp", prompts, problems, TestGrader(problems, verifier, limits))


def mbpp_plus(folder: Path | None, verifier: Verifier, limits: ProgramLimits, limit: int | None = None) -> Suite:
    """Return MBPP+: right on the base inputs and on the plus inputs.

    Raises:
        EvaluationError: The data are missing or malformed.
    """
    rows = limited(read_rows("mbpp+", MBPP_PLUS, folder), limit)
    problems = [_plus(row) for row in rows]
    return _suite("mbpp+", [row["prompt"] for row in rows], problems, CallGrader(problems, verifier, limits))


def _tests(row: Fields) -> list[str]:
    tests = required("mbpp", row, "test_list")
    if not isinstance(tests, list) or not tests:
        raise EvaluationError(f"suite mbpp: expected `test_list` with tests, got {tests!r}")
    return tests


def _sanitized(row: Fields, prompt: str) -> Problem:
    code, tests = required("mbpp", row, "code"), _tests(row)
    entry = _called(code, tests[0])
    imports = "\n".join([*(row.get("test_imports") or ()), *_imports(code)])
    number = int(required("mbpp", row, "task_id"))
    return Problem(
        problem_id=f"Mbpp/{number}",
        entry=entry,
        canonical=code,
        to_program=_to_program(prompt, entry),
        finds=number in FINDS,
        test=(f"{imports}\n\ndef check(candidate):\n    for test in {tests!r}:\n        exec(test, globals())\n"),
    )


def _imports(code: str) -> list[str]:
    """Return what the canonical solution imports; some tests rely on it."""
    return [ast.unparse(node) for node in ast.parse(code).body if isinstance(node, ast.Import | ast.ImportFrom)]


def _called(code: str, test: str) -> str:
    """Return the function of the canonical solution that a test calls."""
    try:
        defined = [node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
    except SyntaxError as error:
        raise EvaluationError(f"suite mbpp: {error.msg} in the canonical solution of {test!r}") from error
    called = [name for name in defined if re.search(rf"\b{re.escape(name)}\s*\(", test)]
    if not called:
        raise EvaluationError(f"suite mbpp: expected a test that calls one of {defined!r}, got {test!r}")
    return called[-1]


def _plus(row: Fields) -> Problem:
    prompt, entry = required("mbpp+", row, "prompt"), required("mbpp+", row, "entry_point")
    number = int(required("mbpp+", row, "task_id").rpartition("/")[2])
    inputs = [*required("mbpp+", row, "base_input"), *row["plus_input"]]
    return Problem(
        problem_id=row["task_id"],
        entry=entry,
        canonical=required("mbpp+", row, "canonical_solution"),
        to_program=_to_program(prompt, entry),
        inputs=tuple(encode_arguments(restore(number, arguments)) for arguments in inputs),
        atol=row.get("atol", 0.0),
        oracle=ORACLES.get(number),
        finds=number in FINDS,
    )


def _to_program(prompt: str, entry: str) -> Callable[[Answer], str]:
    return lambda answer: solution(answer.text, answer.manner, prompt=prompt, entry=entry, stop=MBPP_STOP)


def _suite(name: str, prompts: Sequence[str], problems: Sequence[Problem], grader: CallGrader | TestGrader) -> Suite:
    return Suite(
        name=name,
        questions=tuple(
            Question(
                question_id=problem.problem_id,
                base_prompt=prompt,
                chat_prompt=f"{_ASK}\n\n```python\n{prompt.strip()}\n```",
            )
            for problem, prompt in zip(problems, prompts, strict=True)
        ),
        grader=grader,
        stop=MBPP_STOP,
        max_new_tokens=_MAX_NEW_TOKENS,
        canonical=tuple(
            Answer(place=place, text=f"```python\n{problem.canonical}\n```", manner="chat")
            for place, problem in enumerate(problems)
        ),
    )
