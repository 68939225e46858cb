"""Graders of functions: the right pass, the wrong fail, and no attack on the scorer passes either grader."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from league.evaluation.calls import CallGrader, Problem, TestGrader
from league.evaluation.types import Answer, EvaluationError
from populora_env.config import VerifierConfig
from populora_env.sandbox.spelling import encode_arguments
from populora_env.scoring import ProgramLimits
from populora_env.verifier import Verifier

LIMITS = ProgramLimits(cpu_s=0.5)
PROBLEM = Problem(
    problem_id="Squares/0",
    entry="g",
    canonical="def g(x):\n    return x * x",
    to_program=lambda answer: answer.text,
    inputs=tuple(encode_arguments([n]) for n in (2, 3, 12345)),
    test="def check(candidate):\n    for n in (2, 3, 12345):\n        assert candidate(n) == n * n, candidate(n)\n",
)
HALF = Problem(
    problem_id="Half/1",
    entry="g",
    canonical="def g(x):\n    return x / 3",
    to_program=lambda answer: answer.text,
    inputs=(encode_arguments([1]),),
    oracle=lambda arguments, value, _: arguments == (1,) and 1 / value > 2.9,
)

RIGHT = (
    "def g(x):\n    return x * x",
    "g = lambda x: x ** 2.0",
    "import numpy as np\ndef g(x):\n    print('noise')\n    return np.int64(x) * x",
    "import math, random, re, itertools\nclass A:\n    def __call__(self, x):\n        return x * x\ng = A()",
)
WRONG = (
    "def g(x):\n    return x + 2",
    "def g(x):\n    return str(x * x)",
    "def g(x):\n    pass",
    "def h(x):\n    return x * x",
    "def g(x):\n    return x * x if x < 5 else 0",
    "def g(x:\n",
    "",
)
ATTACKS = {
    "always equal": "class E:\n    __eq__ = lambda s, o: True\n    __hash__ = lambda s: 0\ndef g(x): return E()",
    "always equal int": (
        "class E(int):\n    __eq__ = lambda s, o: True\n    __hash__ = int.__hash__\n    __class__ = int\n"
        "def g(x): return E(7)"
    ),
    "always equal list": "class E(list):\n    __eq__ = lambda s, o: True\ndef g(x): return E()",
    "metaclass": (
        "class M(type):\n    __eq__ = lambda s, o: True\n    __instancecheck__ = lambda s, o: True\n"
        "    __hash__ = lambda s: hash(int)\nclass E(metaclass=M): pass\ndef g(x): return E()"
    ),
    "numpy object": "import numpy as np\ndef g(x): return np.array([True] * 3)",
    "exit": "import sys\ndef g(x): sys.exit(0)",
    "exit at once": "import sys\nsys.exit(0)",
    "hard exit": "import os\ndef g(x): os._exit(0)",
    "exit later": "import atexit, os\natexit.register(os._exit, 0)\ndef g(x): return 0",
    "reads the test": "import glob\ndef g(x): return [open(p) for p in glob.glob('/**', recursive=True)] or 1 / 0",
    "reads the harness": (
        "import sys\ndef g(x):\n    h = sys.modules['populora_env.sandbox.harness']\n"
        "    h.plain = h.encode = h.decode = lambda *a, **k: True\n    return h"
    ),
    "patches assert": (
        "import builtins\nclass A(BaseException): pass\nbuiltins.AssertionError = A\n"
        "builtins.all = builtins.any = builtins.isinstance = lambda *a: True\ndef g(x): return 0"
    ),
    "patches check": "import sys\ndef check(candidate): pass\nsys.modules['program'].check = check\ndef g(x): return 0",
    "prints": "def g(x): print(x * x)",
    "prints frames": "import os\ndef g(x):\n    os.write(3, b'V\\0\\0\\0\\2i4;' * 3)",
    "recursion bomb": "def g(x): return g(x)",
    "deep value": "def g(x):\n    v = []\n    for _ in range(100_000): v = [v]\n    return v",
    "stack overflow": "import sys\nsys.setrecursionlimit(10 ** 9)\ndef g(x): return g(x)",
    "memory bomb": "def g(x): return [0] * (1 << 60)",
    "fork bomb": "import os\nwhile True: os.fork()",
    "loop": "while True: pass",
    "frame walk": (
        "import sys\ndef g(x):\n    f = sys._getframe()\n    found = []\n    while f:\n"
        "        found += [v for v in [*f.f_locals.values(), *f.f_globals.values()] if type(v) in (int, tuple)]\n"
        "        f = f.f_back\n    return [v for v in found if v == x + 999]"
    ),
    "heap walk": "import gc\ndef g(x): return [o for o in gc.get_objects() if type(o) is bytes]",
    "swaps the entry": "def g(x): return 0\nimport sys\nsys.modules['program'].f = lambda *a: True",
    "stand-in": "def g(x): return (b'sha256', b'0' * 32)",
    "generator": "def g(x): yield x * x",
    "mock": "from unittest.mock import MagicMock\ndef g(x): return MagicMock()",
}


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(VerifierConfig(workers=2)) as started:
        yield started


@pytest.fixture(scope="module", params=[CallGrader, TestGrader])
def grader(request: pytest.FixtureRequest, verifier: Verifier) -> CallGrader | TestGrader:
    made: CallGrader | TestGrader = request.param([PROBLEM], verifier, LIMITS)
    return made


def answers(*sources: str, place: int = 0) -> list[Answer]:
    return [Answer(place=place, text=source, manner="chat") for source in sources]


def test_right_functions_pass_and_wrong_ones_fail(grader: CallGrader | TestGrader) -> None:
    grades = grader.grade(answers(*RIGHT, *WRONG))
    assert [grade.correct for grade in grades] == [True] * len(RIGHT) + [False] * len(WRONG)
    assert [grade.detail for grade in grades[-2:]] == ["error(SyntaxError)", "error(NameError)"]


def test_no_attack_on_the_scorer_passes(grader: CallGrader | TestGrader) -> None:
    grades = dict(zip(ATTACKS, grader.grade(answers(*ATTACKS.values())), strict=True))
    assert [name for name, grade in grades.items() if grade.correct] == []


def test_an_oracle_takes_the_place_of_the_comparison(verifier: Verifier) -> None:
    grader = CallGrader([PROBLEM, HALF], verifier, LIMITS)
    sources = ("def g(x): return 0.34", "def g(x): return 0.5", "def g(x): return 0", "def g(x): return 'x'")
    assert [grade.correct for grade in grader.grade(answers(*sources, place=1))] == [True, False, False, False]


def test_data_whose_solution_does_not_run_are_refused(verifier: Verifier) -> None:
    broken = Problem(
        problem_id="Broken/7",
        entry="g",
        canonical="def g(x): return y",
        to_program=lambda _: "",
        inputs=PROBLEM.inputs,
    )
    with pytest.raises(EvaluationError, match=r"Broken/7.*NameError"):
        CallGrader([broken], verifier, LIMITS).grade(answers(""))
