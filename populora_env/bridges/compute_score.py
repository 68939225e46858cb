"""Reward functions over rows of the `problems` table, for verl, TRL and whoever trains on a fixed data set.

Owns the way from a row's `reward_model.ground_truth` and a completion to a score. Owns no judgement (that is
`verifier`) and no rewards (those are in `rewards`). Needs no library but ours. Each process has one verifier, made at
the first score; forked, spawned and daemonic workers and threads may score at the same time.

The ground truth holds all that is asked for. It is never shown to the code that is judged, and a completion can't
forge a later score: each is judged in a process of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any, TypedDict, Unpack

from populora_env.config import GameConfig, RewardConfig, StyleName, VerifierConfig
from populora_env.parsing import parse_answer
from populora_env.prompts import get_style
from populora_env.rewards import solver_reward
from populora_env.types import Answer, Malformed, Problem, Status, Task, Verdict
from populora_env.verifier import Verifier

ANY_STYLE: tuple[StyleName, ...] = ("chat", "compact")
"""Forms tried where none is named, in this order: a compact answer has no fences, a chat answer may quote a mark."""

_FORMAT = Verdict(status=Status.FORMAT)


class Settings(TypedDict, total=False):
    """How completions are read and paid: keyword arguments, which verl gives from `reward_kwargs`."""

    style: StyleName
    """Form in which an answer is read; without it, the last block of the chat form, or else the compact form."""
    correct: float
    """Score of a correct answer, default 1."""
    wrong: float
    """Score of a well-formed wrong answer, default -0.5."""
    malformed: float
    """Score where no answer can be read, default -1."""
    max_answer_chars: int
    """As in `GameConfig`: the longest literal, default 512."""


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    **settings: Unpack[Settings],
) -> float:
    """Return the score of one completion; verl's `custom_reward_function`.

    Args:
        data_source: The row's; not used, a ground truth says what it is.
        solution_str: The completion, any text.
        ground_truth: `reward_model.ground_truth` of a valid row.
        extra_info: The row's; not used.
        settings: See `Settings`.

    Raises:
        ValueError: The ground truth is none of ours, e.g. that of an invalid proposal.
        SandboxError: The sandbox does not work here; that is no score.
    """
    del data_source, extra_info
    return score_all([solution_str], [ground_truth], **settings)[0]


def compute_scores(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[str],
    extra_infos: Sequence[Mapping[str, Any]] | None = None,
    **settings: Unpack[Settings],
) -> list[float]:
    """Return the scores of a batch, judged in one parallel call; for verl's batch reward manager.

    Arguments and errors are those of `compute_score`, one an item.
    """
    del data_sources, extra_infos
    return score_all(solution_strs, ground_truths, **settings)


def trl_reward(
    completions: Sequence[Any],
    reward_model: Sequence[Mapping[str, str]],
    **columns: Any,
) -> list[float]:
    """Return the scores of a batch; a `reward_funcs` entry of TRL's trainers, with the default `Settings`.

    Args:
        completions: Texts, or conversations, of which the last assistant message counts.
        reward_model: The rows' column of that name.
        columns: All else that TRL knows of the rows; not used.

    Raises:
        ValueError: A ground truth is none of ours.
        SandboxError: The sandbox does not work here.
    """
    del columns
    truths = [row["ground_truth"] for row in reward_model]
    return score_all([_last_text(completion) for completion in completions], truths)


def score_all(completions: Sequence[str], ground_truths: Sequence[str], **settings: Unpack[Settings]) -> list[float]:
    """Return one score a completion, judged in one parallel call.

    Raises:
        TypeError: There is no such setting.
        ValueError: Lengths differ, a ground truth is none of ours, or a setting is out of range.
        SandboxError: The sandbox does not work here.
    """
    if len(completions) != len(ground_truths):
        raise ValueError(f"expected one ground truth a completion, got {len(ground_truths)} for {len(completions)}")
    problems = [read_ground_truth(truth) for truth in ground_truths]
    rules = _rules(settings)
    parsed = [_parse(text, problem, rules) for text, problem in zip(completions, problems, strict=True)]
    jobs = [(problem, answer) for problem, answer in zip(problems, parsed, strict=True) if isinstance(answer, Answer)]
    verdicts = iter(_verifier(rules[0].max_answer_chars).check_answers(jobs) if jobs else ())
    return [
        solver_reward(next(verdicts) if isinstance(answer, Answer) else _FORMAT, rules[0].rewards) for answer in parsed
    ]


@lru_cache(maxsize=1024)
def read_ground_truth(ground_truth: str) -> Problem:
    """Return the problem that a ground truth spells.

    Raises:
        ValueError: It is none of ours.
    """
    if not ground_truth:
        raise ValueError("`ground_truth` is empty, as it is for invalid proposals; keep only rows with `valid`")
    try:
        data = json.loads(ground_truth)
        values = {field.name: data[field.name] for field in fields(Problem)}
        values |= {"task": Task(values["task"]), "inputs": tuple(values["inputs"]), "outputs": tuple(values["outputs"])}
    except (TypeError, KeyError, ValueError) as error:
        raise ValueError(
            f"`ground_truth` must be the JSON of a problem as in the `problems` table, got {ground_truth[:80]!r}"
        ) from error
    return Problem(**values)


def _rules(settings: Settings) -> list[GameConfig]:
    """Return the rules under each form that an answer may have."""
    if unknown := sorted(settings.keys() - Settings.__annotations__.keys()):
        raise TypeError(f"expected settings among {', '.join(Settings.__annotations__)}, got {', '.join(unknown)}")
    base = RewardConfig()
    rewards = RewardConfig(
        correct=settings.get("correct", base.correct),
        wrong=settings.get("wrong", base.wrong),
        malformed=settings.get("malformed", base.malformed),
    )
    max_chars = settings.get("max_answer_chars", GameConfig().max_answer_chars)
    styles = (settings["style"],) if "style" in settings else ANY_STYLE
    for style in styles:
        get_style(style)  # refuses a name that is none
    return [GameConfig(style=style, max_answer_chars=max_chars, rewards=rewards) for style in styles]


def _parse(text: str, problem: Problem, rules: Sequence[GameConfig]) -> Answer | Malformed:
    """Read an answer in the first form that fits."""
    attempts = (parse_answer(text, task=problem.task, config=config) for config in rules)
    return next((answer for answer in attempts if isinstance(answer, Answer)), Malformed(reason="no answer"))


def _last_text(completion: Any) -> str:
    """Return a text as it is, of a conversation the last assistant message's; "" where there is none."""
    if isinstance(completion, str):
        return completion
    said = [message.get("content") for message in completion if message.get("role") == "assistant"]
    return said[-1] if said and isinstance(said[-1], str) else ""


_VERIFIERS: dict[int, Verifier] = {}


def _verifier(max_answer_chars: int) -> Verifier:
    """Return this process's verifier, which starts when it is first used; a forked one starts anew."""
    if max_answer_chars not in _VERIFIERS:
        _VERIFIERS.setdefault(max_answer_chars, Verifier(VerifierConfig(max_answer_chars=max_answer_chars)))
    return _VERIFIERS[max_answer_chars]
