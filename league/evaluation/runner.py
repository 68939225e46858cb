"""Asking: all players' completions for a suite in one batch of a backend, and their grades.

Owns how a question becomes a request, and which seed it gets. Owns neither suites nor statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from league import seeds
from league.evaluation.players import Player
from league.evaluation.types import Answer, Grade, Manner, Question, Suite
from populora_agents.types import Backend, Completion, Request
from populora_env.types import Message

_PURPOSE = "evaluate"
TOO_LONG = Grade(correct=False, detail="prompt too long")

Fits = Callable[[Sequence[Message]], bool]
"""Whether a prompt leaves room for an answer in the base's context."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How players are asked."""

    manner: Manner
    samples: int = 1
    """Of each question (n), >= 1."""
    temperature: float = 0.0
    """0 is greedy."""
    top_p: float = 1.0
    max_new_tokens: int | None = None
    """None takes the suite's."""
    seed: int = 0
    """Root of all draws."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.samples < 1 or not self.temperature >= 0:
            raise ValueError(
                f"expected `samples` >= 1 and `temperature` >= 0, got {self.samples} and {self.temperature}"
            )
        if self.samples > 1 and self.temperature == 0:
            raise ValueError(f"`samples` must be 1 at `temperature` 0, where all are the same; got {self.samples}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One answer of one player, with its grade."""

    suite: str
    question_id: str
    player: Player
    sample: int
    text: str
    tokens: int
    """Sampled, 0 where the prompt did not fit."""
    finish_reason: str
    grade: Grade


def ask(suite: Suite, players: Sequence[Player], backend: Backend, asking: Asking, fits: Fits) -> list[Result]:
    """Return the graded answers of all players, player by player, question by question.

    Raises:
        SandboxError: The sandbox failed.
    """
    asked = [
        (player, place, sample)
        for player in players
        for place in range(len(suite.questions))
        for sample in range(asking.samples)
    ]
    prompts = [_messages(question, asking.manner) for question in suite.questions]
    short = [fits(prompt) for prompt in prompts]
    wanted = [one for one in asked if short[one[1]]]
    requests = [
        Request(
            adapter=player.adapter,
            messages=prompts[place],
            max_new_tokens=asking.max_new_tokens or suite.max_new_tokens,
            temperature=asking.temperature,
            top_p=asking.top_p,
            stop=suite.stop if asking.manner == "base" else (),
            seed=seeds.seed(
                asking.seed, 0, _PURPOSE, suite.name, suite.questions[place].question_id, player.name, str(sample)
            ),
        )
        for player, place, sample in wanted
    ]
    completions = dict(zip(wanted, backend.generate(requests), strict=True))
    answers = [Answer(place=one[1], text=completions[one].text, manner=asking.manner) for one in wanted]
    grades = dict(zip(wanted, suite.grader.grade(answers), strict=True))
    return [_result(suite, one, completions.get(one), grades.get(one, TOO_LONG)) for one in asked]


def _messages(question: Question, manner: Manner) -> tuple[Message, ...]:
    content = question.chat_prompt if manner == "chat" else question.base_prompt
    return (Message(role="user", content=content),)


def _result(suite: Suite, one: tuple[Player, int, int], completion: Completion | None, grade: Grade) -> Result:
    player, place, sample = one
    return Result(
        suite=suite.name,
        question_id=suite.questions[place].question_id,
        player=player,
        sample=sample,
        text=completion.text if completion else "",
        tokens=len(completion.token_ids) if completion else 0,
        finish_reason=completion.finish_reason if completion else "",
        grade=grade,
    )
