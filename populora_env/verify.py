"""Command line: answer a file of cases and say which fall short. `python -m populora_env.verify CASES.json`.

Owns the reading of cases, the comparison with their admissible answers, and the table. A file of cases holds `cases`,
each with `name`, `code`, `input`, `answer` and `via`: `replay` runs the code in two zygotes of different hash seeds,
without admission or a second call, `proposal` judges it as a proposal. `answer` separates alternatives by `|`: a
status, `status:detail`, `ok` for any value of the program's own, `ok:LITERAL` for that value.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from populora_env.config import VerifierConfig
from populora_env.rendering import escape
from populora_env.sandbox.jobs import Job, Outcome
from populora_env.sandbox.pool import HASH_SEEDS
from populora_env.types import Proposal, Status, Task
from populora_env.values import DecodeError, LiteralError, decode, encode, format_value, parse_literal
from populora_env.verifier import SandboxError, Verifier

_MAX_CHARS = 1 << 16
_SHOWN_CHARS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One snippet with the answers that a correct sandbox may give."""

    name: str
    code: str
    arguments: tuple[Any, ...]
    answer: str
    via: Literal["replay", "proposal"]

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Read a case of a JSON file.

        Raises:
            ValueError: A field is missing, or `via` is unknown.
        """
        try:
            via = row["via"]
            case = cls(name=row["name"], code=row["code"], arguments=(row["input"],), answer=row["answer"], via=via)
        except (KeyError, TypeError) as error:
            raise ValueError(f"expected a case with name, code, input, answer and via, got {row!r}") from error
        if via not in ("replay", "proposal"):
            raise ValueError(f"`via` must be 'replay' or 'proposal', got {via!r}")
        return case


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
        return any(self._matches(alternative) for alternative in _alternatives(self.case.answer))

    def _matches(self, alternative: str) -> bool:
        status, _, detail = alternative.partition(":")
        if status != self.status:
            return False
        if not detail:
            return True
        if self.status is not Status.OK:
            return detail == self.detail
        try:
            return encode(parse_literal(detail, max_chars=_MAX_CHARS)) == self.value
        except LiteralError:
            return False

    def __str__(self) -> str:
        """Return `status` or `status:detail`."""
        return f"{self.status}:{self.detail}" if self.detail else str(self.status)


def _alternatives(answer: str) -> list[str]:
    """Split at `|`, but for those that a literal contains."""
    parts: list[str] = []
    for part in answer.split("|"):
        if part.partition(":")[0] in set(Status):
            parts.append(part)
        elif parts:
            parts[-1] += "|" + part
    return parts


def check_cases(verifier: Verifier, cases: Sequence[Case]) -> list[Finding]:
    """Return what the verifier says of each case.

    Raises:
        SandboxError: The sandbox itself failed.
    """
    replayed = [case for case in cases if case.via == "replay"]
    jobs = [job for case in replayed for job in _replays(case, verifier.config)]
    outcomes = iter(verifier.run(jobs))
    findings = {id(case): _compared(case, next(outcomes), next(outcomes)) for case in replayed}
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


def _replays(case: Case, config: VerifierConfig) -> list[Job]:
    inputs = (encode(case.arguments),)
    return [
        Job(program=case.code, inputs=inputs, cpu_s=config.cpu_s, wall_s=config.wall_s, hash_seed=seed)
        for seed in HASH_SEEDS[:2]
    ]


def _compared(case: Case, first: Outcome, second: Outcome) -> Finding:
    one, two = first.results[0], second.results[0]
    if Status.OK in (one.status, two.status) and one != two:
        return Finding(case=case, status=Status.NONDETERMINISTIC)
    if one.status is not Status.OK:
        return Finding(case=case, status=one.status, detail=one.detail)
    try:
        literal = format_value(decode(one.payload))
    except DecodeError:
        return Finding(case=case, status=Status.BAD_FRAME)
    return Finding(case=case, status=Status.OK, detail=literal, value=one.payload)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 if all cases hold, 1 if any falls short, 2 if it could not be told."""
    parser = argparse.ArgumentParser(prog="python -m populora_env.verify", description="Answer a file of cases.")
    parser.add_argument("cases", type=Path, metavar="CASES.json", help="the file of cases")
    parser.add_argument("--no-namespaces", action="store_true", help="do without namespaces, pivot_root and Landlock")
    options = parser.parse_args(arguments)
    try:
        rows = json.loads(options.cases.read_text(encoding="utf-8"))["cases"]
        cases = [Case.from_row(row) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"{options.cases}: {error}", file=sys.stderr)
        return 2
    start = time.perf_counter()
    try:
        with Verifier(VerifierConfig(namespaces=not options.no_namespaces)) as verifier:
            layers = verifier.layers
            findings = check_cases(verifier, cases)
    except SandboxError as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 2
    _show(findings, layers, time.perf_counter() - start)
    return 0 if all(finding.holds for finding in findings) else 1


def _show(findings: Sequence[Finding], layers: Mapping[str, bool], seconds: float) -> None:
    names = [_shortened(finding.case.name) for finding in findings]
    width = max(map(len, names), default=0)
    for name, finding in zip(names, findings, strict=True):
        mark = "ok  " if finding.holds else "FAIL"
        expected = "" if finding.holds else f"   expected {_shortened(finding.case.answer)}"
        print(f"{mark}  {name:<{width}}  {_shortened(str(finding))}{expected}")
    held = sum(finding.holds for finding in findings)
    granted = ", ".join(sorted(name for name, given in layers.items() if given)) or "none"
    print(f"{held} of {len(findings)} cases hold; {seconds:.1f} s; layers: {granted}")


def _shortened(text: str) -> str:
    """Return one line of text that steers no terminal."""
    text = escape(text).replace("\n", "\\n")
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 3] + "..."


if __name__ == "__main__":
    sys.exit(main())
