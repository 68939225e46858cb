"""HumanEval, by its own tests, and HumanEval+, by its inputs against the canonical solutions' results.

Owns the meaning of the rows, and the prompts. Sources: Chen et al. 2021 (arXiv 2107.03374), Liu et al. 2023 (arXiv
2305.01210); file formats of openai/human-eval and evalplus/humanevalplus_release.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from league.evaluation.calls import CallGrader, Oracle, Problem, TestGrader
from league.evaluation.data import Fields, Source, limited, read_rows, required
from league.evaluation.programs import HUMANEVAL_STOP, preamble, solution
from league.evaluation.types import Answer, Question, Suite
from populora_env.sandbox.spelling import encode_arguments
from populora_env.scoring import ProgramLimits
from populora_env.values import Value
from populora_env.verifier import Verifier

HUMANEVAL = Source(
    files=("humaneval", "HumanEval"), hub=("openai/openai_humaneval", "", "test"), origin="github.com/openai/human-eval"
)
HUMANEVAL_PLUS = Source(
    files=("humanevalplus", "HumanEvalPlus"), hub=None, origin="github.com/evalplus/humanevalplus_release"
)
_MAX_NEW_TOKENS = 768
_ASK = "Complete the function. Answer with one Python code block that holds the whole function and what it imports."
_ROOT_FINDER = "find_zero"


def humaneval(folder: Path | None, verifier: Verifier, limits: ProgramLimits, limit: int | None = None) -> Suite:
    """Return HumanEval, judged by its own tests.

    Raises:
        EvaluationError: The data are missing or malformed.
    """
    rows = limited(read_rows("humaneval", HUMANEVAL, folder), limit)
    problems = [_problem(row, plus=False) for row in rows]
    return _suite("humaneval", rows, problems, TestGrader(problems, verifier, limits))


def humaneval_plus(folder: Path | None, verifier: Verifier, limits: ProgramLimits, limit: int | None = None) -> Suite:
    """Return HumanEval+: right on the base inputs and on the plus inputs.

    Raises:
        EvaluationError: The data are missing or malformed.
    """
    rows = limited(read_rows("humaneval+", HUMANEVAL_PLUS, folder), limit)
    problems = [_problem(row, plus=True) for row in rows]
    return _suite("humaneval+", rows, problems, CallGrader(problems, verifier, limits))


def _problem(row: Fields, *, plus: bool) -> Problem:
    name = "humaneval+" if plus else "humaneval"
    prompt, entry = required(name, row, "prompt"), required(name, row, "entry_point")
    inputs: Sequence[Sequence[Value]] = ()
    if plus:
        inputs = [*required(name, row, "base_input"), *required(name, row, "plus_input")]
    return Problem(
        problem_id=required(name, row, "task_id"),
        entry=entry,
        canonical=prompt + required(name, row, "canonical_solution"),
        to_program=lambda answer: solution(answer.text, answer.manner, prompt=prompt, entry=entry, stop=HUMANEVAL_STOP),
        inputs=tuple(encode_arguments(arguments) for arguments in inputs),
        atol=row.get("atol", 0.0),
        oracle=_is_root(row["atol"]) if plus and entry == _ROOT_FINDER else None,
        test=f"{preamble(prompt, entry)}{required(name, row, 'test')}",
    )


def _is_root(atol: float) -> Oracle:
    """Return the oracle of HumanEval/32: a polynomial has many roots, and each is right."""

    def oracle(arguments: tuple[Value, ...], value: Value, _: Value) -> bool:
        (coefficients,) = arguments
        return bool(abs(sum(c * math.pow(value, power) for power, c in enumerate(coefficients))) <= atol)

    return oracle


def _suite(name: str, rows: Sequence[Fields], problems: Sequence[Problem], grader: CallGrader | TestGrader) -> Suite:
    questions = tuple(
        Question(
            question_id=problem.problem_id,
            base_prompt=row["prompt"],
            chat_prompt=f"{_ASK}\n\n```python\n{row['prompt'].strip()}\n```",
        )
        for row, problem in zip(rows, problems, strict=True)
    )
    canonical = tuple(
        Answer(place=place, text=f"```python\n{problem.canonical}\n```", manner="chat")
        for place, problem in enumerate(problems)
    )
    return Suite(
        name=name,
        questions=questions,
        grader=grader,
        stop=HUMANEVAL_STOP,
        max_new_tokens=_MAX_NEW_TOKENS,
        canonical=canonical,
    )
