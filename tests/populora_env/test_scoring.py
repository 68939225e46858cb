"""Programs of benchmarks: what is run, what it is compared with, and what the zygotes with numpy keep out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from populora_env.config import VerifierConfig
from populora_env.sandbox.spelling import decode_arguments, encode_arguments, stand_in
from populora_env.scoring import (
    ProgramLimits,
    call_job,
    close,
    method_job,
    program_job,
    read_value,
    record_job,
    replay_job,
    same_text,
    verdict_on,
)
from populora_env.types import Status
from populora_env.values import DecodeError
from populora_env.verifier import Job, Verifier

LIMITS = ProgramLimits(cpu_s=0.5)


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(VerifierConfig(workers=2)) as started:
        yield started


def value(verifier: Verifier, job: Job) -> Any:
    return read_value(verifier.run([job])[0].results[0])


def called(verifier: Verifier, source: str, *arguments: Any, **settings: Any) -> Any:
    return value(verifier, call_job(source, "g", [encode_arguments(arguments)], LIMITS, **settings))


def test_results_come_in_builtin_types(verifier: Verifier) -> None:
    source = (
        "import numpy as np\nfrom collections import Counter, OrderedDict, namedtuple\nP = namedtuple('P', 'x y')\n"
        "def g(n):\n    p = P(np.float64(0.5), np.bool_(True))\n"
        "    return [Counter('aab'), OrderedDict(x=np.int64(n)), p, {np.str_('s')}]"
    )
    assert called(verifier, source, 3) == [{"a": 2, "b": 1}, {"x": 3}, (0.5, True), {"s"}]
    assert type(called(verifier, "import numpy as np\ndef g():\n    return np.bool_(True)")) is bool


def test_linear_algebra_runs_where_no_thread_may_be_started(verifier: Verifier) -> None:
    source = "import numpy as np\ndef g(n):\n    a = np.eye(n) + 1\n    return float((a @ np.linalg.inv(a)).sum())"
    assert called(verifier, source, 150) == pytest.approx(150)


def test_arguments_keep_the_order_of_dicts_and_may_be_large_and_deep(verifier: Verifier) -> None:
    assert called(verifier, "def g(d):\n    return list(d)", {"b": 1, 5: {"z": 1, "y": 2}, "a": 3}) == ["b", 5, "a"]
    deep: Any = {}
    for _ in range(40):
        deep = {"k": deep}
    assert called(verifier, "def g(d, s):\n    return d['k']['k'] != {}, len(s)", deep, "x" * 200_000) == (
        True,
        200_000,
    )
    assert decode_arguments(encode_arguments(({"b": 1, "a": [{}]},))) == ({"b": 1, "a": [{}]},)


def test_a_large_result_is_replaced_by_what_equal_results_share(verifier: Verifier) -> None:
    source = "def g(n):\n    return [1.0 * i for i in range(n)]"
    assert called(verifier, source, 50_000) == stand_in(list(range(50_000)))
    assert called(verifier, source, 50_000) != stand_in(list(range(50_001)))
    assert stand_in({"a": True, "b": {1, 2}}) == stand_in({"b": {2.0, 1}, "a": 1})
    assert stand_in([1.5]) != stand_in([1]) != stand_in((1,))


def test_what_finds_something_may_return_anything(verifier: Verifier) -> None:
    source = "import re\ndef g(text):\n    return re.search('a', text)"
    assert [called(verifier, source, text, finds=True) for text in ("cat", "dog")] == [True, False]
    assert verdict_on(verifier.run([call_job(source, "g", [encode_arguments(["cat"])], LIMITS)])[0]) is not None


@pytest.mark.parametrize(
    ("value", "expected", "atol", "right"),
    [
        (1, 1.0, 0, True),
        (True, 1, 0, True),
        ((1, 2), [1, 2], 0, False),
        (0.1 + 0.2, 0.3, 0, True),
        ([0.1 + 0.2], [0.3], 0, True),
        ([0.1 + 0.2, 1], [0.3, 1], 0, False),  # not only floats are expected, and the data name no tolerance
        ([0.1 + 0.2, 1], [0.3, 1], 1e-6, True),
        ((0.3,), [0.3], 1e-6, False),
        ([0.3], [0.3, 0.3], 1e-6, False),
        (0.30001, 0.3, 0, False),
        (0.30001, 0.3, 1e-4, True),
        (3, 3.0000001, 0, False),
        (float("inf"), float("inf"), 0, True),
        (float("nan"), 1.0, 1e-6, False),
        ("0.3", 0.3, 1e-6, False),
        (10**400, 0.5, 1e-6, False),
        (None, 0.5, 1e-6, False),
        ([[0.1]], [[0.1 + 1e-9]], 1e-6, True),
        ({"a": 0.1}, {"a": 0.1 + 1e-9}, 1e-6, False),
    ],
)
def test_comparison_is_that_of_python_with_a_tolerance_for_floats(
    value: Any, expected: Any, atol: float, right: bool
) -> None:
    assert close(value, expected, atol=atol) is right


def test_whole_programs_read_and_print_text(verifier: Verifier) -> None:
    source = "import sys\nn = int(input())\nprint(sum(map(int, sys.stdin.read().split())) * n)\nexit(0)\nprint('never')"
    assert value(verifier, program_job(source, ["2\n1 2 3\n"], LIMITS)) == "12\n"
    buffered = "import sys\nif __name__ == '__main__':\n    sys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])"
    assert value(verifier, program_job(buffered, ["abc"], LIMITS)) == "cba"
    large = value(verifier, program_job("print('x ' * 50_000)\nprint()", [""], LIMITS))
    assert same_text(large, "x " * 50_000)
    assert not same_text(large, "x " * 49_999)


def test_runs_of_one_program_leave_nothing_to_each_other(verifier: Verifier) -> None:
    job = program_job("seen = globals().get('seen', 0) + 1\nprint(seen, input())", ["a", "b"], LIMITS)
    assert [read_value(result) for result in verifier.run([job])[0].results] == ["1 a\n", "1 b\n"]


def test_methods_take_arguments_from_lines_of_json(verifier: Verifier) -> None:
    source = "class Solution:\n    def add(self, numbers, extra):\n        return [n + extra for n in numbers]"
    assert value(verifier, method_job(source, "Solution().add", ["[1, 2]\n10"], LIMITS)) == [11, 12]


@pytest.mark.parametrize(
    ("printed", "expected", "right"),
    [
        ("1 2\n", "1 2", True),
        ("\n1 2 \n\n", "1 2\n", True),
        ("1  2", "1 2", True),  # compared word by word as numbers
        ("a  b", "a b", False),
        ("1.50", "1.5", True),
        ("1.5000001", "1.5", False),
        ("YES", "Yes", False),
        ("1\n2", "1 2", False),
        ("", "0", False),
        ("nan", "nan", True),
        (7, "7", False),
    ],
)
def test_printed_text_is_compared_line_by_line(printed: Any, expected: str, right: bool) -> None:
    assert same_text(printed, expected) is right


TEST = "def check(candidate):\n    assert candidate(2) == 4\n    assert g(3) == 9\n"


def test_a_test_sees_what_the_candidate_returned_elsewhere(verifier: Verifier) -> None:
    calls = value(verifier, record_job("def g(x):\n    return g(x - 1) + 2 * x - 1 if x else 0", "g", TEST))
    assert [decode_arguments(data) for data in calls] == [(2,), (3,)]  # the solution's own calls are its affair
    for source, passes in (("def g(x):\n    return x * x", True), ("def g(x):\n    return x + 2", False)):
        returned = verifier.run([call_job(source, "g", calls, LIMITS)])[0]
        tested = verifier.run([replay_job(TEST, "g", calls, [result.payload for result in returned.results])])[0]
        assert (verdict_on(tested) is None) is passes


def test_a_call_that_gave_nothing_has_no_value(verifier: Verifier) -> None:
    outcome = verifier.run([call_job("def g():\n    return 1 / 0", "g", [encode_arguments([])], LIMITS)])[0]
    with pytest.raises(DecodeError):
        read_value(outcome.results[0])


def test_the_first_death_ends_a_candidate(verifier: Verifier) -> None:
    source = "def g(n):\n    while n: pass\n    return n"
    outcome = verifier.run([call_job(source, "g", [encode_arguments([n]) for n in (0, 1, 1, 1)], LIMITS)])[0]
    assert [result.status for result in outcome.results] == [
        Status.OK,
        Status.TIMEOUT,
        Status.NO_RESULT,
        Status.NO_RESULT,
    ]


HELD = {
    "file": ("open('/etc/passwd').read()", {Status.ERROR}),
    "folder": ("__import__('os').listdir('/')", {Status.ERROR}),
    "numpy file": ("np.fromfile('/etc/passwd')", {Status.ERROR}),
    "numpy map": ("np.memmap('/tmp/x', mode='w+', shape=3)", {Status.ERROR}),
    "socket": ("__import__('socket').socket()", {Status.FORBIDDEN}),
    "process": ("__import__('os').fork()", {Status.FORBIDDEN}),
    "command": ("__import__('subprocess').run(['true'])", {Status.FORBIDDEN, Status.ERROR}),
    "thread": ("__import__('_thread').start_new_thread(print, ())", {Status.FORBIDDEN}),
    "signal": ("__import__('os').kill(1, 9)", {Status.FORBIDDEN}),
    "memory": ("np.ones(1 << 40)", {Status.MEMORY, Status.ERROR}),
    "loop": ("[0 for _ in iter(int, 1)]", {Status.TIMEOUT, Status.MEMORY}),
    "recursion": ("g()", {Status.ERROR}),
    "import": ("__import__('torch')", {Status.ERROR}),
}


@pytest.fixture(scope="module")
def verifiers(verifier: Verifier) -> Iterator[dict[bool, Verifier]]:
    with Verifier(VerifierConfig(workers=2, namespaces=False)) as bare:
        yield {True: verifier, False: bare}


@pytest.mark.parametrize("attack", HELD)
@pytest.mark.parametrize("namespaces", [True, False])
def test_zygotes_with_numpy_keep_out_what_the_others_do(
    attack: str, namespaces: bool, verifiers: dict[bool, Verifier]
) -> None:
    expression, statuses = HELD[attack]
    job = call_job(f"import numpy as np\ndef g():\n    return {expression}", "g", [encode_arguments([])], LIMITS)
    status = verifiers[namespaces].run([job])[0].results[0].status
    assert status in statuses
