"""The command that answers a file of cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from populora_env.types import Status
from populora_env.values import encode
from populora_env.verify import Case, Finding, main

HOSTILE = Path(__file__).parents[3] / "shared" / "cases" / "hostile.json"


def case(answer: str, *, name: str = "case", code: str = "def f(x):\n    return x\n", via: str = "replay") -> Any:
    return {"name": name, "code": code, "input": 7, "answer": answer, "via": via}


def write(folder: Path, *cases: Any) -> str:
    path = folder / "cases.json"
    path.write_text(json.dumps({"how": "", "cases": cases}))
    return str(path)


@pytest.mark.parametrize(
    ("answer", "holds"),
    [
        ("ok", True),
        ("ok:7", True),
        ("ok:7.0", False),
        ("error|ok:7", True),
        ("error|timeout", False),
        ("ok:'a|b'|timeout", False),
        ("", False),
    ],
)
def test_alternatives_are_read_as_the_file_says(answer: str, holds: bool) -> None:
    finding = Finding(case=Case.from_row(case(answer)), status=Status.OK, detail="7", value=encode(7))
    assert finding.holds is holds


def test_a_bar_inside_a_literal_separates_nothing() -> None:
    finding = Finding(case=Case.from_row(case("ok:'a|b'")), status=Status.OK, detail="'a|b'", value=encode("a|b"))
    assert finding.holds


@pytest.mark.parametrize(("answer", "holds"), [("error", True), ("error:E", True), ("error:F", False)])
def test_the_type_of_an_error_counts_if_it_is_named(answer: str, holds: bool) -> None:
    assert Finding(case=Case.from_row(case(answer)), status=Status.ERROR, detail="E").holds is holds


def test_cases_that_hold_exit_with_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order = case("nondeterministic", name="order", code="def f(x):\n    return list({'a', 'b', 'c', 'd', 'e', 'f'})\n")
    clock = case("inadmissible", name="clock", code="import time\ndef f(x):\n    return 1\n", via="proposal")
    assert main([write(tmp_path, case("ok:7"), order, clock, case("ok:7", via="proposal"))]) == 0
    assert "4 of 4 cases hold" in capsys.readouterr().out


def test_no_case_steers_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = case("ok:'\x1b[2J\u202e'", name="a\x1b[2J\nb", code="def f(x):\n    return '\\x1b\\u2066'\n")
    assert main([write(tmp_path, row)]) == 1
    shown = capsys.readouterr().out
    assert all(char.isprintable() or char == "\n" for char in shown)
    assert len(shown.splitlines()) == 2


def test_a_case_that_falls_short_exits_with_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([write(tmp_path, case("timeout"), case("ok")), "--no-namespaces"]) == 1
    shown = capsys.readouterr().out
    assert "FAIL  case  ok:7   expected timeout" in shown
    assert "1 of 2 cases hold" in shown


@pytest.mark.parametrize("text", ["", "[]", '{"cases": [{"name": "x"}]}', '{"cases": [1]}'])
def test_a_file_that_is_none_exits_with_two(tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cases.json"
    path.write_text(text)
    assert main([str(path)]) == 2
    assert capsys.readouterr().err


def test_an_unknown_way_is_refused() -> None:
    with pytest.raises(ValueError, match="via"):
        Case.from_row(case("ok", via="magic"))


@pytest.mark.slow
@pytest.mark.skipif(not HOSTILE.exists(), reason="the shared file of hostile cases lies beside the repository")
@pytest.mark.parametrize("options", [[], ["--no-namespaces"]], ids=["namespaces", "no_namespaces"])
def test_every_hostile_case_holds(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(HOSTILE), *options]) == 0, capsys.readouterr().out
