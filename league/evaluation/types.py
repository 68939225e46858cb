"""The nouns of evaluation: questions, answers, grades, and the suite that one benchmark is.

Owns the seam between a benchmark and the runner. Knows no benchmark, no model and no statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

Manner = Literal["chat", "base"]
"""How a model is asked: as a message to be answered, or as a text to be continued."""


class EvaluationError(ValueError):
    """Something the user has to change: data that are missing or malformed; the message is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One problem of a benchmark, as a model sees it."""

    question_id: str
    base_prompt: str
    """A text whose continuation is the answer."""
    chat_prompt: str
    """A message of the user's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a model wrote."""

    place: int
    """Of the question in its suite."""
    text: str
    manner: Manner


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """What an answer is worth."""

    correct: bool
    detail: str
    """`ok`, `wrong`, or why there was nothing to compare: `timeout`, `error(TypeError)`, `no answer`."""


class Grader(Protocol):
    """What tells right answers of one benchmark from wrong ones."""

    def grade(self, answers: Sequence[Answer]) -> list[Grade]:
        """Return one grade an answer; whatever a text holds, it costs a grade and never raises.

        Raises:
            SandboxError: The sandbox failed.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One benchmark: its questions under a name, and who grades answers."""

    name: str
    questions: tuple[Question, ...]
    grader: Grader
    stop: tuple[str, ...]
    """Strings that end a continuation; messages end by themselves."""
    max_new_tokens: int
    canonical: tuple[Answer, ...]
    """Answers that are right by the benchmark's word, at most one a question; none where it has no solutions."""
