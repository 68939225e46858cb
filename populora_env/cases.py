"""Cases: snippets with the verdicts that a correct verifier may give, and whether ours gives one of them.

Owns the reading of a file of cases, strictly: what is misspelt is an error and never a case that falls short. The
format is told by `python -m populora_env.verify --help`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from populora_env.admission import RULES
from populora_env.config import VerifierConfig
from populora_env.proposals import verdict_on_difference
from populora_env.sandbox.jobs import Job, Outcome
from populora_env.sandbox.kinds import HASH_SEEDS
from populora_env.types import Proposal, Status, Task
from populora_env.values import (
    DecodeError,
    EncodeError,
    LiteralError,
    Value,
    decode,
    encode,
    format_value,
    parse_literal,
)
from populora_env.verifier import Verifier

Via = Literal["replay", "proposal"]

_MAX_CHARS = 1 << 16
_FIELDS = {"name": str, "code": str, "answer": str, "via": str}
_CLEAN = "def f(x):\n    return [x + 1, 'clean']\n"
_REASONS = frozenset({"program", "no f", "input"})
"""Details of the status `format`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One snippet with the answers that a correct sandbox may give."""

    name: str
    code: str
    arguments: tuple[Value, ...]
    answer: str
    via: Via

    def __post_init__(self) -> None:
        """Check that it can be answered.

        Raises:
            ValueError: `via` is unknown, `answer` names no verdict, or the arguments are no values.
        """
        if self.via not in get_args(Via):
            raise ValueError(f"`via` must be 'replay' or 'proposal', got {self.via!r}")
        for alternative in alternatives(self.answer):
            _check_alternative(alternative)
        try:
            encode(self.arguments)
        except EncodeError as error:
            raise ValueError(f"`input` must be a value within the limits: {error}") from error

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Read a case of a JSON file.

        Raises:
            ValueError: A field is missing or of another type, or means nothing.
        """
        if not isinstance(row, dict):
            raise ValueError(f"expected an object with name, code, input, answer and via, got {_short(row)}")
        for name, kind in _FIELDS.items():
            if not isinstance(row.get(name), kind):
                raise ValueError(f"`{name}` must be a text, got {_short(row.get(name))}")
        if "input" not in row:
            raise ValueError("`input` must be there")
        return cls(name=row["name"], code=row["code"], arguments=(row["input"],), answer=row["answer"], via=row["via"])


def read_cases(text: str) -> list[Case]:
    """Read a file of cases.

    Raises:
        ValueError: It is no JSON, has no list `cases`, or one of them cannot be read; says which.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected JSON, got: {error}") from error
    rows = data.get("cases") if isinstance(data, dict) else None
    if not isinstance(rows, list):
        raise ValueError(f"expected an object with a list `cases`, got {_short(data)}")
    cases = []
    for number, row in enumerate(rows):
        name = row.get("name", number) if isinstance(row, dict) else number
        try:
            cases.append(Case.from_row(row))
        except ValueError as error:
            raise ValueError(f"case {_short(name)}: {error}") from error
    return cases


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def alternatives(answer: str) -> list[str]:
    """Split an answer at `|`, but for those that a literal contains."""
    parts: list[str] = []
    for part in answer.split("|"):
        if parts and part.partition(":")[0] not in set(Status):
            parts[-1] += "|" + part
        else:
            parts.append(part)
    return parts


def _check_alternative(alternative: str) -> None:
    status, colon, detail = alternative.partition(":")
    if status not in set(Status):
        raise ValueError(f"`answer` must name statuses ({', '.join(Status)}), got {_short(status)}")
    known = {Status.INADMISSIBLE: frozenset(RULES), Status.FORMAT: _REASONS}.get(Status(status))
    if status == Status.OK:
        if colon:
            try:
                parse_literal(detail, max_chars=_MAX_CHARS)
            except LiteralError as error:
                raise ValueError(
                    f"`answer` must hold a status or, after `ok:`, a literal, got {_short(detail)}"
                ) from error
    elif known is not None:
        if colon and detail not in known:
            raise ValueError(f"`answer` must name one of {sorted(known)} after `{status}:`, got {_short(detail)}")
    elif colon and (status != Status.ERROR or not re.fullmatch(r"[A-Za-z0-9_.]+", detail)):
        raise ValueError(f"`answer` must not name {_short(detail)} after `{status}:`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What the verifier said of a case."""

    case: Case
    status: Status
    detail: str = ""
    """The literal of the value if the status is ok."""
    value: bytes = b""

    @property
    def holds(self) -> bool:
        """Whether the case admits this."""
        return any(self._matches(alternative) for alternative in alternatives(self.case.answer))

    def _matches(self, alternative: str) -> bool:
        status, _, detail = alternative.partition(":")
        if status != self.status:
            return False
        if not detail:
            return True
        if self.status is not Status.OK:
            return detail == self.detail
        return encode(parse_literal(detail, max_chars=_MAX_CHARS)) == self.value

    def __str__(self) -> str:
        """Return `status` or `status:detail`."""
        return f"{self.status}:{self.detail}" if self.detail else str(self.status)


def check_cases(verifier: Verifier, cases: Sequence[Case]) -> list[Finding]:
    """Return what the verifier says of each case.

    Raises:
        SandboxError: The sandbox itself failed.
    """
    replayed = [case for case in cases if case.via == "replay"]
    jobs = [job for case in replayed for job in _replays(case, verifier.config)]
    outcomes = iter(verifier.run(jobs))
    findings = {id(case): compared(case, next(outcomes), next(outcomes)) for case in replayed}
    proposed = [case for case in cases if case.via == "proposal"]
    proposals = [
        Proposal(task=Task.DEDUCTION, program=case.code, inputs=(format_value(case.arguments),)) for case in proposed
    ]
    for case, judged in zip(proposed, verifier.check_proposals(proposals), strict=True):
        output = judged.outputs[0] if judged.outputs else ""
        findings[id(case)] = Finding(
            case=case,
            status=judged.verdict.status,
            detail=output or judged.verdict.detail,
            value=encode(parse_literal(output, max_chars=_MAX_CHARS)) if output else b"",
        )
    return [findings[id(case)] for case in cases]


def is_still_right(verifier: Verifier) -> bool:
    """Return whether clean jobs, as many as there may be zygotes and more, are judged right.

    Raises:
        SandboxError: The sandbox itself failed.
    """
    config = verifier.config
    inputs = [encode((number,)) for number in range(max(16, 2 * config.workers))]
    jobs = [Job(program=_CLEAN, inputs=(data,), cpu_s=config.cpu_s, wall_s=config.wall_s) for data in inputs]
    expected = [encode([number + 1, "clean"]) for number in range(len(jobs))]
    return [outcome.results[0].payload for outcome in verifier.run(jobs)] == expected


def _replays(case: Case, config: VerifierConfig) -> list[Job]:
    inputs = (encode(case.arguments),)
    return [
        Job(program=case.code, inputs=inputs, cpu_s=config.cpu_s, wall_s=config.wall_s, hash_seed=seed)
        for seed in HASH_SEEDS[:2]
    ]


def compared(case: Case, first: Outcome, second: Outcome) -> Finding:
    """Return what two replays under different hash seeds say of a case."""
    one, two = first.results[0], second.results[0]
    if Status.OK in (one.status, two.status) and one != two:
        verdict = verdict_on_difference(two if one.status is Status.OK else one)
        return Finding(case=case, status=verdict.status, detail=verdict.detail)
    if one.status is not Status.OK:
        return Finding(case=case, status=one.status, detail=one.detail)
    try:
        literal = format_value(decode(one.payload))
    except DecodeError:
        return Finding(case=case, status=Status.BAD_FRAME)
    return Finding(case=case, status=Status.OK, detail=literal, value=one.payload)
