"""The published sets' own solutions are right, where copies of the sets are at hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from league.evaluation.maths import SETS
from league.evaluation.suites import make_suite
from league.evaluation.types import EvaluationError
from populora_env.config import VerifierConfig
from populora_env.scoring import ProgramLimits
from populora_env.verifier import Verifier

DATA = Path(__file__).parents[4] / "shared" / "data" / "benchmarks"
COUNTS = {"humaneval": 164, "humaneval+": 164, "mbpp": 427, "mbpp+": 378}
SIZES = {"aime24": 30, "aime25": 30, "amc23": 40, "math500": 500, "minerva": 272, "gsm8k": 1319, "olympiadbench": 675}

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="no copies of the benchmarks beside the checkout")


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(VerifierConfig(memory_bytes=2 << 30)) as started:
        yield started


@pytest.mark.slow
@pytest.mark.parametrize("name", COUNTS)
def test_every_canonical_solution_is_right(name: str, verifier: Verifier) -> None:
    suite = make_suite(name, DATA, verifier, ProgramLimits())
    grades = suite.grader.grade(suite.canonical)
    wrong = [
        (suite.questions[answer.place].question_id, grade.detail)
        for answer, grade in zip(suite.canonical, grades, strict=True)
        if not grade.correct
    ]
    assert (len(grades), wrong) == (COUNTS[name], [])


@pytest.mark.parametrize("name", SIZES)
def test_sets_of_mathematics_are_read_whole(name: str, verifier: Verifier) -> None:
    assert list(SETS) == list(SIZES)
    suite = make_suite(name, DATA, verifier, ProgramLimits())
    assert len(suite.questions) == len(suite.canonical) == SIZES[name]
    assert len({question.question_id for question in suite.questions}) == SIZES[name]


def test_the_sample_of_livecodebench_is_read(verifier: Verifier) -> None:
    suite = make_suite("livecodebench", DATA, verifier, ProgramLimits())
    assert len({question.question_id for question in suite.questions}) == 50


def test_the_first_problems_of_each_set_of_programs_are_right(verifier: Verifier) -> None:
    for name in COUNTS:
        suite = make_suite(name, DATA, verifier, ProgramLimits(), limit=3)
        assert [grade.detail for grade in suite.grader.grade(suite.canonical)] == ["ok"] * 3


def test_unknown_names_are_refused(verifier: Verifier) -> None:
    with pytest.raises(EvaluationError, match="there is no suite 'x'"):
        make_suite("x", DATA, verifier, ProgramLimits())
