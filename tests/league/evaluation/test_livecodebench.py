"""Contest problems, made up here: programs by what they print, methods by what they return."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from toy_data import write_rows

from league.evaluation.livecodebench import livecodebench
from league.evaluation.types import Answer, EvaluationError, Suite
from populora_env.config import VerifierConfig
from populora_env.scoring import ProgramLimits
from populora_env.verifier import Verifier


def stdin_tests(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"input": given, "output": expected, "testtype": "stdin"} for given, expected in pairs]


PROGRAM: dict[str, Any] = {
    "question_id": "sum",
    "question_content": "Print the sum of the numbers.",
    "starter_code": "",
    "public_test_cases": json.dumps(stdin_tests(("3\n1 2 3\n", "6\n"))),
    "private_test_cases": base64.b64encode(
        zlib.compress(pickle.dumps(json.dumps(stdin_tests(("2\n-1 1\n", "0\n")))))
    ).decode(),
    "metadata": "{}",
}
METHOD: dict[str, Any] = {
    "question_id": "pairs",
    "question_content": "Return each number with its place.",
    "starter_code": "class Solution:\n    def pairs(self, numbers: List[int]) -> List[List[int]]:",
    "public_test_cases": json.dumps([{"input": "[5, 6]", "output": "[[0, 5], [1, 6]]", "testtype": "functional"}]),
    "metadata": json.dumps({"func_name": "pairs"}),
}


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suite]:
    folder = write_rows(tmp_path_factory.mktemp("data") / "sets", "livecodebench", (PROGRAM, METHOD))
    with Verifier(VerifierConfig(workers=2)) as verifier:
        yield livecodebench(folder, verifier, ProgramLimits())


def details(suite: Suite, place: int, *sources: str) -> list[str]:
    answers = [Answer(place=place, text=f"```python\n{source}\n```", manner="chat") for source in sources]
    return [grade.detail for grade in suite.grader.grade(answers)]


def test_programs_are_judged_on_public_and_private_tests(suite: Suite) -> None:
    expected = {
        "input()\nprint(sum(map(int, input().split())))": "ok",
        "import sys\nn, *rest = map(int, sys.stdin.read().split())\nsys.stdout.write(str(sum(rest)))": "ok",
        "print(6)": "wrong",
        "print(open('/dev/stdin').read())": "error(PermissionError)",
        "exit(0)": "wrong",
        "raise SystemExit(1)": "error(SystemExit)",
        "import sys\nprint([v for f in [sys._getframe(2)] for v in f.f_locals.values()])": "wrong",
    }
    assert dict(zip(expected, details(suite, 0, *expected), strict=True)) == expected


def test_methods_are_judged_by_their_results(suite: Suite) -> None:
    method = "class Solution:\n    def pairs(self, numbers: List[int]):\n        return "
    assert details(suite, 1, f"{method}[(n, x) for n, x in enumerate(numbers)]", f"{method}[]", "x = 1") == [
        "ok",
        "wrong",
        "error(NameError)",
    ]


def test_a_continuation_ends_with_its_block(suite: Suite) -> None:
    answer = Answer(place=0, text="input()\nprint(sum(map(int, input().split())))\n```\nDone", manner="base")
    assert suite.grader.grade([answer])[0].correct
    assert suite.questions[0].base_prompt.endswith("```python\n")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"public_test_cases": "nonsense"}, "tests as JSON"),
        ({"public_test_cases": "[{}]"}, "input and output"),
        ({"private_test_cases": "AAAA"}, "cannot be read"),
        ({"public_test_cases": METHOD["public_test_cases"], "private_test_cases": ""}, "name of a method"),
    ],
)
def test_malformed_rows_are_refused(change: dict[str, str], message: str, tmp_path: Path) -> None:
    folder = write_rows(tmp_path / "sets", "livecodebench", (PROGRAM | change,))
    with pytest.raises(EvaluationError, match=message):
        livecodebench(folder, Verifier(), ProgramLimits())
