"""Benchmarks of mathematics: AIME, AMC, MATH-500, Minerva, GSM8K, OlympiadBench.

Owns the meaning of their rows, the prompts, and the grader. When two answers are the same, `math_answers` says; that it
comes to an end, `math_checker` sees to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from league.evaluation.data import Fields, Source, limited, read_rows, required
from league.evaluation.math_answers import final_answer, last_boxed
from league.evaluation.math_checker import Asked, MathChecker
from league.evaluation.types import Answer, EvaluationError, Grade, Question, Suite
from populora_env.scoring import ProgramLimits
from populora_env.verifier import Verifier

_MAX_NEW_TOKENS = 2048
_ASK = "Reason step by step, and put the final answer into \\boxed{}."
_EXAMPLES = (
    "Problem: What is the sum of the first five odd numbers?\n"
    "Solution: They are 1, 3, 5, 7 and 9, and 1 + 3 + 5 + 7 + 9 = 25. The answer is \\boxed{25}.\n\n"
    "Problem: Solve $2x + 1 = 4$.\n"
    "Solution: Then $2x = 3$, so $x = 3/2$. The answer is \\boxed{\\frac{3}{2}}.\n\n"
)
"""What a base model sees before a problem, so that it knows where the answer goes; made up here."""
_STOP = ("\nProblem:",)


@dataclass(frozen=True, slots=True, kw_only=True)
class MathSet:
    """One set: where it is found, and how its rows read."""

    source: Source
    gold: Callable[[str, Fields], str]
    question: tuple[str, ...] = ("problem", "question")
    """Fields of which the first that a row has is the question."""


def _field(*names: str) -> Callable[[str, Fields], str]:
    def gold(name: str, row: Fields) -> str:
        return _text(required(name, row, *names))

    return gold


def _text(value: Any) -> str:
    """Return an answer as text; whole numbers that JSON holds as 27.0 lose the zero, lists are joined by commas."""
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _after_marks(name: str, row: Fields) -> str:
    _, mark, answer = str(required(name, row, "answer")).rpartition("####")
    if not mark:
        raise EvaluationError(f"suite {name}: expected an answer after ####, got {row['answer']!r}")
    return answer.strip()


def _in_box(name: str, row: Fields) -> str:
    if row.get("answer") is not None:
        return _text(row["answer"])
    boxed = last_boxed(str(required(name, row, "solution")))
    if boxed is None:
        raise EvaluationError(f"suite {name}: expected a \\boxed answer in `solution`, got {row['solution']!r}")
    return boxed


_QWEN = "github.com/QwenLM/Qwen2.5-Math (evaluation/data/{}/test.jsonl)"
SETS: Final[Mapping[str, MathSet]] = {
    "aime24": MathSet(
        source=Source(files=("aime24",), hub=("math-ai/aime24", "", "test"), origin=_QWEN.format("aime24")),
        gold=_in_box,
    ),
    "aime25": MathSet(
        source=Source(
            files=("aime25",), hub=("math-ai/aime25", "", "test"), origin="huggingface.co/datasets/math-ai/aime25"
        ),
        gold=_field("answer"),
    ),
    "amc23": MathSet(
        source=Source(files=("amc23",), hub=("math-ai/amc23", "", "test"), origin=_QWEN.format("amc23")),
        gold=_field("answer"),
    ),
    "math500": MathSet(
        source=Source(
            files=("math500",),
            hub=("HuggingFaceH4/MATH-500", "", "test"),
            origin="huggingface.co/datasets/HuggingFaceH4/MATH-500",
        ),
        gold=_field("answer"),
    ),
    "minerva": MathSet(
        source=Source(
            files=("minerva_math", "minerva"),
            hub=("math-ai/minervamath", "", "test"),
            origin=_QWEN.format("minerva_math"),
        ),
        gold=_in_box,
    ),
    "gsm8k": MathSet(
        source=Source(
            files=("gsm8k",), hub=("openai/gsm8k", "main", "test"), origin="github.com/openai/grade-school-math"
        ),
        gold=_after_marks,
    ),
    "olympiadbench": MathSet(
        source=Source(
            files=("olympiadbench",), hub=("math-ai/olympiadbench", "", "test"), origin=_QWEN.format("olympiadbench")
        ),
        gold=_field("final_answer", "answer"),
    ),
}
"""By the suite's name."""


def maths(name: str) -> Callable[..., Suite]:
    """Return what makes the suite of a set."""
    chosen = SETS[name]

    def make(folder: Path | None, verifier: Verifier, limits: ProgramLimits, limit: int | None = None) -> Suite:
        """Return the suite; the verifier is not needed, `limits.cpu_s` holds for one comparison."""
        del verifier
        rows = limited(read_rows(name, chosen.source, folder), limit)
        golds = [chosen.gold(name, row) for row in rows]
        tolerances = [_tolerance(row.get("error")) for row in rows]
        return Suite(
            name=name,
            questions=tuple(_question(name, chosen, place, row) for place, row in enumerate(rows)),
            grader=MathGrader(golds, tolerances, MathChecker(cpu_s=max(limits.cpu_s, _LEAST_CPU_S))),
            stop=_STOP,
            max_new_tokens=_MAX_NEW_TOKENS,
            canonical=tuple(
                Answer(place=place, text=f"The answer is $\\boxed{{{gold}}}$.", manner="chat")
                for place, gold in enumerate(golds)
            ),
        )

    return make


_LEAST_CPU_S = 5.0
"""CPU time of one comparison: sympy is slow at first, and simplifies at length."""


def _tolerance(error: object) -> float:
    """Return the absolute tolerance that a row of OlympiadBench names, 0 if none."""
    try:
        return float(str(error)) if error else 0.0
    except ValueError:
        return 0.0


def _question(name: str, chosen: MathSet, place: int, row: Fields) -> Question:
    text = str(required(name, row, *chosen.question)).strip()
    context = row.get("context")
    if context:
        text = f"{context}\n\n{text}"
    identity = next((row[field] for field in ("unique_id", "id", "idx") if row.get(field) is not None), place)
    return Question(
        question_id=f"{name}/{identity}",
        base_prompt=f"{_EXAMPLES}Problem: {text}\nSolution:",
        chat_prompt=f"{text}\n\n{_ASK}",
    )


class MathGrader:
    """Grades by the final answer in a text."""

    def __init__(self, golds: Sequence[str], tolerances: Sequence[float], checker: MathChecker) -> None:
        """Keep what is right; nothing runs yet."""
        self._golds = golds
        self._tolerances = tolerances
        self._checker = checker

    def grade(self, answers: Sequence[Answer]) -> list[Grade]:
        """See `Grader`.

        Raises:
            EvaluationError: math-verify is not installed.
        """
        found = [final_answer(re.split(r"\nProblem:", answer.text)[0]) for answer in answers]
        asked = [
            Asked(gold=self._golds[answer.place], given=given or "", atol=self._tolerances[answer.place])
            for answer, given in zip(answers, found, strict=True)
        ]
        distinct = [one for one in dict.fromkeys(asked) if one.given]
        details = dict(zip(distinct, self._checker.check(distinct), strict=True))
        return [_grade(details.get(one, "no answer")) for one in asked]


def _grade(detail: str) -> Grade:
    return Grade(correct=detail == "ok", detail=detail)
