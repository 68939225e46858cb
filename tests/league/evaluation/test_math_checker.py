"""Workers that compare answers: hostile ones cost themselves, not the others, and no alarm is needed."""

from __future__ import annotations

import threading

import pytest

from league.evaluation.math_checker import Asked, MathChecker
from league.evaluation.maths import maths
from league.evaluation.types import Answer
from populora_env.scoring import ProgramLimits
from populora_env.verifier import Verifier

pytest.importorskip("math_verify", reason="needs the extra `eval`")

HOSTILE = (
    "9^{9^{9^{9^{9}}}}",
    r"\frac{" * 90 + "1" + "}{2}" * 90,
    "(" * 500 + "1" + ")" * 500,
    r"\sum_{n=1}^{10^{30}} \frac{1}{n^{n!}}",
    r"100000000!!!",
    r"\int_{0}^{1} \int_{0}^{x^{x^x}} e^{e^{e^{y}}} dy dx",
    r"__import__('os').system('true')",
    r"\text{" + "a" * 10_000 + "}",
    "\x00\ud800\U0010ffff",
    r"\begin{pmatrix} 1 & 2 \\\\ 3 \end{pmatrix}^{10^{10}}",
    "1" * 550,
    r"\sqrt[9^{99999}]{2}",
)


def test_hostile_answers_are_wrong_and_the_others_are_judged() -> None:
    checker = MathChecker(cpu_s=1.0, workers=2)
    asked = [Asked(gold="2", given=text) for text in HOSTILE]
    mixed = [one for text in asked for one in (text, Asked(gold=r"\frac{1}{2}", given="0.5"))]
    details = checker.check(mixed)
    assert "ok" not in details[::2]
    assert details[1::2] == ["ok"] * len(HOSTILE)


def test_answers_are_compared_off_the_main_thread() -> None:
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.extend(MathChecker(workers=1).check([Asked(gold="4", given="2^2")])))
    thread.start()
    thread.join()
    assert found == ["ok"]


def test_a_set_of_problems_is_graded_by_the_final_answers(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("data")
    (folder / "gsm8k.jsonl").write_text(
        '{"question": "How many?", "answer": "2 * 600 = 1200\\n#### 1,200"}\n{"question": "And?", "answer": "#### 7"}\n'
    )
    suite = maths("gsm8k")(folder, Verifier(), ProgramLimits())
    texts = ("So it is \\boxed{1200}.", "$\\boxed{12}$", "#### 1200\n\nProblem: next\n#### 3", "no idea")
    grades = suite.grader.grade([Answer(place=0, text=text, manner="chat") for text in texts])
    assert [grade.detail for grade in grades] == ["ok", "wrong", "ok", "no answer"]
    assert [grade.correct for grade in suite.grader.grade(suite.canonical)] == [True, True]


def test_no_answers_need_no_worker() -> None:
    assert MathChecker().check([]) == []
