"""Cases: strict reading, and which verdicts hold."""

from __future__ import annotations

import json
from typing import Any

import pytest

from populora_env.cases import Case, Finding, alternatives, compared, read_cases
from populora_env.sandbox.jobs import CallResult, Outcome
from populora_env.types import Status
from populora_env.values import encode

ROW = {"name": "case", "code": "def f(x):\n    return x\n", "input": 7, "answer": "ok", "via": "replay"}


def finding(answer: str, status: Status = Status.OK, value: Any = 7) -> Finding:
    detail, data = (repr(value), encode(value)) if status is Status.OK else (value, b"")
    return Finding(case=Case.from_row({**ROW, "answer": answer}), status=status, detail=detail, value=data)


@pytest.mark.parametrize(
    ("answer", "holds"),
    [
        ("ok", True),
        ("ok:7", True),
        ("ok: 0x7 ", True),
        ("ok:7.0", False),
        ("error|ok:7", True),
        ("error|timeout", False),
        ("ok:'a|b'|timeout", False),
    ],
)
def test_alternatives_are_read_as_the_file_says(answer: str, holds: bool) -> None:
    assert finding(answer).holds is holds


def test_a_bar_inside_a_literal_separates_nothing() -> None:
    assert alternatives("ok:'a|b'|error:E|ok") == ["ok:'a|b'", "error:E", "ok"]
    assert finding("ok:'a|b'", value="a|b").holds


@pytest.mark.parametrize(("answer", "holds"), [("error", True), ("error:E", True), ("error:F", False)])
def test_the_type_of_an_error_counts_if_it_is_named(answer: str, holds: bool) -> None:
    assert finding(answer, Status.ERROR, "E").holds is holds


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"via": "magic"}, "`via` must be 'replay' or 'proposal', got 'magic'"),
        ({"via": None}, "`via` must be a text, got None"),
        ({"name": 3}, "`name` must be a text, got 3"),
        ({"code": ["a"]}, "`code` must be a text"),
        ({"answer": "timeot"}, "got 'timeot'"),
        ({"answer": ""}, "got ''"),
        ({"answer": "ok:7|timeot"}, "after `ok:`"),
        ({"answer": "error|timeot"}, "got 'error|timeot'"),
        ({"answer": "ok:f(7)"}, "a literal"),
        ({"answer": "timeout:7"}, "after `timeout:`"),
        ({"answer": "error:a b"}, "after `error:`"),
        ({"answer": "inadmissible:imports"}, "after `inadmissible:`"),
        ({"answer": "format:literal"}, "after `format:`"),
        ({"input": [[]] * 30_000}, "within the limits"),
    ],
)
def test_a_case_that_means_nothing_is_refused_and_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"^case (3|'odd'): ") as caught:
        read_cases(json.dumps({"cases": [ROW, {**ROW, "name": "odd", **change}]}))
    assert message in str(caught.value)


@pytest.mark.parametrize("missing", sorted(ROW))
def test_a_missing_key_is_named(missing: str) -> None:
    with pytest.raises(ValueError, match=f"`{missing}` must"):
        read_cases(json.dumps({"cases": [{key: value for key, value in ROW.items() if key != missing}]}))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"cases": {}}', '{"cases": [1]}', "[" * 100_000])
def test_what_is_no_file_of_cases_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        read_cases(text)


def test_every_status_and_rule_may_be_named() -> None:
    answers = [*Status, "ok:[1, 'a']", "error:KeyError", "inadmissible:import", "format:no f"]
    assert len(read_cases(json.dumps({"cases": [{**ROW, "answer": answer} for answer in answers]}))) == len(answers)


OK_7 = CallResult(Status.OK, payload=encode(7))


@pytest.mark.parametrize(
    ("results", "status"),
    [
        ((OK_7, OK_7), Status.OK),
        ((OK_7, CallResult(Status.OK, payload=encode(8))), Status.NONDETERMINISTIC),
        ((OK_7, CallResult(Status.ERROR, "E")), Status.NONDETERMINISTIC),
        ((CallResult(Status.CRASH), OK_7), Status.NONDETERMINISTIC),
        ((OK_7, CallResult(Status.TIMEOUT)), Status.TIMEOUT),
        ((CallResult(Status.MEMORY), OK_7), Status.MEMORY),
        ((CallResult(Status.CRASH), CallResult(Status.TIMEOUT)), Status.CRASH),
    ],
)
def test_two_replays_that_differ_are_judged_as_those_of_a_proposal(
    results: tuple[CallResult, CallResult], status: Status
) -> None:
    first, second = (Outcome(results=(result,), done=1, cpu_ms=1.0) for result in results)
    assert compared(Case.from_row(ROW), first, second).status is status
