"""Command line: answer a file of cases and say which fall short. `python -m populora_env.verify CASES.json`.

Owns the table. What a case is, and what holds, is in `cases`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from populora_env.cases import Finding, check_cases, is_still_right, read_cases
from populora_env.config import VerifierConfig
from populora_env.rendering import escape
from populora_env.verifier import SandboxError, Verifier

_SHOWN_CHARS = 40
_EPILOG = """\
a file of cases:
  {"cases": [
    {"name": "reverse", "via": "replay", "input": [1, 2], "answer": "ok:[2, 1]",
     "code": "def f(x):\\n    return x[::-1]\\n"},
    {"name": "clock", "via": "proposal", "input": 0, "answer": "inadmissible:import",
     "code": "import time\\ndef f(x):\\n    return time.time()\\n"}]}

  code    defines f, which is called as f(input); input is any JSON value
  via     replay: run in two zygotes of different hash seeds, without rules of admission or a second call
          proposal: judged as a proposal, in full
  answer  admissible verdicts, separated by |: a status, status:detail, ok for any value of the program's
          own, ok:LITERAL for that value
  status  ok wrong format timeout memory forbidden error unserialisable output_limit bad_frame no_result
          crash nondeterministic inadmissible

exit status: 0 all cases hold, 1 one falls short, 2 the file cannot be read or the sandbox failed
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Report:
    """What the verifier said of a file."""

    findings: Sequence[Finding]
    clean: bool
    """Whether a clean job was still right after all cases."""
    layers: Mapping[str, bool]
    seconds: float

    @property
    def holds(self) -> bool:
        return self.clean and all(finding.holds for finding in self.findings)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 if all cases hold, 1 if any falls short, 2 if it could not be told."""
    options = _parser().parse_args(arguments)
    try:
        cases = read_cases(options.cases.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return _fail(f"{options.cases}: {error}")
    start = time.perf_counter()
    try:
        config = VerifierConfig(
            namespaces=not options.no_namespaces, workers=options.workers, cpu_s=options.cpu_s, cache_size=0
        )
        with Verifier(config) as verifier:
            layers = verifier.layers
            findings = check_cases(verifier, cases)
            clean = is_still_right(verifier)
    except (SandboxError, ValueError) as error:
        return _fail(str(error))
    report = _Report(findings=findings, clean=clean, layers=layers, seconds=time.perf_counter() - start)
    lines = _json(report) if options.json else _table(report)
    _write(sys.stdout, "".join(f"{line}\n" for line in lines))
    return 0 if report.holds else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m populora_env.verify",
        description="Answer a file of cases and say which fall short.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("cases", type=Path, metavar="CASES.json", help="the file of cases")
    parser.add_argument("--no-namespaces", action="store_true", help="do without namespaces, pivot_root and Landlock")
    parser.add_argument("--workers", type=int, default=0, metavar="N", help="run N cases at a time (0: one a core)")
    parser.add_argument(
        "--cpu-s", type=float, default=VerifierConfig().cpu_s, metavar="S", help="CPU seconds of one call (%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    return parser


def _fail(message: str) -> int:
    """Say in one line why nothing can be told."""
    _write(sys.stderr, escape(message).replace("\n", " ") + "\n")
    return 2


def _write(stream: TextIO, text: str) -> None:
    """Write, and let a reader go that wants no more (`| head`)."""
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _json(report: _Report) -> list[str]:
    cases = [
        {
            "name": finding.case.name,
            "via": finding.case.via,
            "holds": finding.holds,
            "verdict": str(finding),
            "answer": finding.case.answer,
        }
        for finding in report.findings
    ]
    held = sum(finding.holds for finding in report.findings)
    summary = {"held": held, "of": len(cases), "clean": report.clean, "seconds": round(report.seconds, 3)}
    return [json.dumps({**summary, "layers": dict(report.layers), "cases": cases})]


def _table(report: _Report) -> list[str]:
    names = [_shortened(finding.case.name) for finding in report.findings]
    width = max(map(len, names), default=0)
    lines = []
    for name, finding in zip(names, report.findings, strict=True):
        mark = "ok  " if finding.holds else "FAIL"
        expected = "" if finding.holds else f"   expected {_shortened(finding.case.answer)}"
        lines.append(f"{mark}  {name:<{width}}  {_shortened(str(finding))}{expected}")
    if not report.clean:
        lines.append("FAIL  a clean job was not right after these cases")
    held = sum(finding.holds for finding in report.findings)
    granted = ", ".join(sorted(name for name, given in report.layers.items() if given)) or "none"
    lines.append(f"{held} of {len(names)} cases hold; {report.seconds:.1f} s; layers: {granted}")
    return lines


def _shortened(text: str) -> str:
    """Return one line of text that steers no terminal."""
    text = escape(text).replace("\n", "\\n")
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 3] + "..."


if __name__ == "__main__":
    sys.exit(main())
