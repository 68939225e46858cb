"""The command that answers a file of cases: its table, its exit status, and the settings that it must hold in."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from processes import as_oneself, as_user, descendants, left_of, orphans_come_here, state

from populora_env import verify
from populora_env.sandbox.isolation import NOBODY
from populora_env.verify import main

ROOT = Path(__file__).parents[2]
HOSTILE = Path(__file__).parents[3] / "shared" / "cases" / "hostile.json"
HOSTILE_MORE = Path(__file__).parent / "sandbox" / "hostile_more.json"
_WRITABLE = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))


def case(answer: str, *, name: str = "case", code: str = "def f(x):\n    return x\n", via: str = "replay") -> Any:
    return {"name": name, "code": code, "input": 7, "answer": answer, "via": via}


def write(folder: Path, *cases: Any) -> str:
    path = folder / "cases.json"
    path.write_text(json.dumps({"how": "", "cases": cases}))
    return str(path)


def test_cases_that_hold_exit_with_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order = case("nondeterministic", name="order", code="def f(x):\n    return list({'a', 'b', 'c', 'd', 'e', 'f'})\n")
    clock = case("inadmissible", name="clock", code="import time\ndef f(x):\n    return 1\n", via="proposal")
    assert main([write(tmp_path, case("ok:7"), order, clock, case("ok:7", via="proposal"))]) == 0
    assert "4 of 4 cases hold" in capsys.readouterr().out


def test_no_case_steers_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    row = case("ok:'\x1b[2J\u202e'", name="a\x1b[2J\nb\ud800", code="def f(x):\n    return '\\x1b\\u2066'\n")
    assert main([write(tmp_path, row)]) == 1
    shown = capsys.readouterr().out
    assert all(char.isprintable() or char == "\n" for char in shown)
    assert len(shown.splitlines()) == 2


def test_a_case_that_falls_short_exits_with_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([write(tmp_path, case("timeout"), case("ok")), "--no-namespaces"]) == 1
    shown = capsys.readouterr().out
    assert "FAIL  case  ok:7   expected timeout" in shown
    assert "1 of 2 cases hold" in shown


def test_a_clean_job_that_is_not_right_falls_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "is_still_right", lambda _: False)
    assert main([write(tmp_path, case("ok"))]) == 1
    assert "clean job" in capsys.readouterr().out


def test_the_findings_may_be_had_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([write(tmp_path, case("timeout"), case("ok")), "--json", "--cpu-s", "0.2", "--workers", "3"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["held"], report["of"], report["clean"]) == (1, 2, True)
    assert report["cases"][0] == {
        "name": "case",
        "via": "replay",
        "holds": False,
        "verdict": "ok:7",
        "answer": "timeout",
    }
    assert set(report["layers"].values()) <= {True, False}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"cases": [{"name": "x"}]}',
        '{"cases": [1]}',
        json.dumps({"cases": [case("timeot", name="\x1b[2J\n")]}),
    ],
)
def test_a_file_that_is_none_exits_with_two_and_one_line(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cases.json"
    path.write_text(text)
    assert main([str(path)]) == 2
    shown = capsys.readouterr()
    assert not shown.out
    assert len(shown.err.splitlines()) == 1
    assert shown.err.strip().isprintable()


def test_a_file_that_is_not_there_exits_with_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err


def test_settings_out_of_range_exit_with_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([write(tmp_path, case("ok")), "--workers", "-1"]) == 2
    assert "workers" in capsys.readouterr().err


def test_the_help_tells_the_format_with_an_example_that_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capsys.readouterr().out
    example = shown[shown.index('{"cases"') : shown.index("]}\n") + 2]
    (tmp_path / "cases.json").write_text(example)
    assert main([str(tmp_path / "cases.json")]) == 0
    assert "2 of 2 cases hold" in capsys.readouterr().out


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    path = write(tmp_path, *[case("ok")] * 3)
    command = subprocess.Popen(
        [sys.executable, "-m", "populora_env.verify", path], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert command.stdout is not None
    assert command.stderr is not None
    command.stdout.close()
    with command.stderr:
        assert command.stderr.read() == b""
    assert command.wait() == 0


# The four settings: root or an ordinary user, with namespaces or without.


def files_of_nobody() -> set[Path]:
    found = set()
    for folder in _WRITABLE:
        with contextlib.suppress(OSError):
            found |= {path for path in folder.iterdir() if path.lstat().st_uid == NOBODY}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("namespaces", [[], ["--no-namespaces"]], ids=["namespaces", "no_namespaces"])
@pytest.mark.parametrize("who", ["root", "user"])
@pytest.mark.parametrize(
    ("cases", "options"),
    [
        (HOSTILE, []),
        (HOSTILE, ["--workers", "8"]),
        (HOSTILE_MORE, ["--workers", "8", "--cpu-s", "0.25"]),
    ],
    ids=["hostile", "hostile_8_in_flight", "more_8_in_flight"],
)
def test_every_hostile_case_holds_and_nothing_is_left(
    cases: Path, options: list[str], who: str, namespaces: list[str]
) -> None:
    if not cases.exists():
        pytest.skip("the shared file of hostile cases lies beside the repository")
    if who == "root" and os.geteuid() != 0:
        pytest.skip("only root can run as root")
    start, environment = as_user(NOBODY) if who == "user" else as_oneself()
    if not start:
        pytest.skip("setpriv is needed to become an ordinary user, and a Python of this version that one may run")
    command = [*start, "-B", "-m", "populora_env.verify", str(cases), "--json", *options, *namespaces]
    processes, files = descendants(os.getpid()), files_of_nobody()
    with orphans_come_here():
        done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)
        left = left_of(descendants(os.getpid()) - processes, seconds=1.0)
        assert {state(pid) for pid in left} <= {"Z"}, "a process was left behind"
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    assert [case for case in report["cases"] if not case["holds"]] == []
    assert report["clean"]
    assert files_of_nobody() == files, "a file appeared"
    if namespaces:
        assert not any(given for name, given in report["layers"].items() if name.endswith("_namespace"))
