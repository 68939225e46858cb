"""The page as a file: what is embedded agrees with the tables, hostile text stays text, and the command's answers."""

from __future__ import annotations

import json
import re
import statistics
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from synthetic_run import write_run

from league.report.__main__ import main
from league.report.kinds import sections
from league.report.page import build
from league.storage import read_metrics, read_rows

HOSTILE = "</script><script>document.title='owned'</script><!--\x1b[2J\u202e\u2028{number}"
"""Ends elements, hides, and turns text around."""


def data_of(page: str) -> dict[str, Any]:
    """Return what is embedded in a page."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "first", steps=6, members=2)


def test_five_plots_can_be_recomputed_from_the_tables(run: Path) -> None:
    plots = data_of(build([run]))["plots"]

    def curve(key: str, name: str) -> dict[int, float]:
        (one,) = [one for one in plots[key][0]["data"] if one.get("name") == name]
        return dict(zip(one["x"], one["y"], strict=True))

    steps = range(1, 7)
    problems, rollouts = read_rows(run, "problems"), read_rows(run, "rollouts")
    valid = [row for row in problems if row["valid"]]
    own = [row for row in valid if row["task"] != "induction"]

    def mean(rows: list[dict[str, Any]], column: str) -> dict[int, float]:
        return {step: statistics.fmean(row[column] for row in rows if row["step"] == step) for step in steps}

    assert curve("solve-rate", "all") == pytest.approx(mean(valid, "solve_rate"), rel=1e-4)
    assert curve("ast-depth", "mean") == pytest.approx(mean(own, "ast_depth"), rel=1e-4)
    proposals = [row for row in rollouts if row["role"] == "proposer"]
    assert curve("reward", "teacher") == pytest.approx(mean(proposals, "reward"), rel=1e-4)
    cells = {step: len({row["cell_id"] for row in own if row["step"] <= step}) / 1024 for step in steps}
    assert curve("coverage", "all") == pytest.approx(cells, rel=1e-4)
    last = {row["member_id"]: row["mu"] for row in read_rows(run, "ratings") if row["step"] == 6}
    drawn = [one for one in plots["teachers-rating"][0]["data"] if "customdata" in one]
    for one in drawn:
        for member, step, mu in zip(one["customdata"], one["x"], one["y"], strict=True):
            assert step != 6 or mu == pytest.approx(last[member], rel=1e-4)
    (share,) = [one for one in plots["cost"][0]["data"] if one["name"] == "propose"]
    spent = [line["seconds"]["propose"] for line in read_metrics(run) if line["step"]]
    assert share["y"] == pytest.approx(spent, rel=1e-4)


def test_every_figure_is_one_that_the_plotting_library_takes(run: Path) -> None:
    graph_objects = pytest.importorskip("plotly.graph_objects")
    for key, plots in data_of(build([run]))["plots"].items():
        for plot in plots:
            assert plot["data"], key
            graph_objects.Figure(data=plot["data"], layout=plot["layout"])


def test_hostile_text_leaves_its_place_nowhere(tmp_path: Path) -> None:
    run = write_run(tmp_path / "<b>run", steps=2, program=HOSTILE, text=HOSTILE)
    page = build([run])
    assert "<script>document.title" not in page
    assert not {"\x1b", "\u202e", "\u2028"} & set(page)
    assert data_of(page)["problems"][0][0]["program"].startswith("</script><script>document.title='owned'</script>")

    class Counting(HTMLParser):
        starts: list[str]

        def handle_starttag(self, tag: str, attrs: object) -> None:
            del attrs
            self.starts.append(tag)

    counting = Counting()
    counting.starts = []
    counting.feed(page)
    assert counting.starts.count("script") == 3
    assert "b" not in counting.starts


def test_the_page_asks_nothing_of_the_network(run: Path) -> None:
    page = build([run])
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; script-src &#39;sha256-") or policy.startswith(
        "default-src 'none'; script-src 'sha256-"
    )
    assert "unsafe-eval" not in policy
    shell = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.findall(r'(?:src|href)="(?!#|data:,)[^"]*"', shell)


def test_several_runs_have_the_same_axes(tmp_path: Path, run: Path) -> None:
    other = write_run(tmp_path / "second", steps=3, members=1)
    data = data_of(build([run, other]))
    assert data["runs"] == ["first", "second"]
    for key, (one, two) in data["plots"].items():
        for axis in ("xaxis", "yaxis"):
            assert one["layout"][axis].get("range") == two["layout"][axis].get("range"), key
    assert len(data["problems"]) == 2


def test_what_only_some_runs_measure_is_shown_where_it_is(tmp_path: Path, run: Path) -> None:
    measured = write_run(tmp_path / "second", steps=2, members=1, extra={"base/solve_rate": 0.25})
    assert "yardstick" not in data_of(build([run]))["plots"]
    without, drawn = data_of(build([run, measured]))["plots"]["yardstick"]
    assert without["data"] == []
    assert [one["y"] for one in drawn["data"]] == [[0.25, 0.25]]


def test_matches_against_the_past_and_cross_tables_count_in_no_curve_but_are_listed(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", steps=2, members=2, kinds=("train", "frozen"))
    data = data_of(build([run]))
    valid = [row for row in read_rows(run, "problems") if row["valid"]]
    trained = {row["match_id"] for row in read_rows(run, "matches") if row["kind"] == "train"}
    again = statistics.fmean(row["solve_rate"] for row in valid if row["match_id"] in trained and row["step"] == 1)
    assert data["plots"]["solve-rate"][0]["numbers"]["all"][0] == pytest.approx(again)
    assert len(data["problems"][0]) == len(read_rows(run, "problems"))


def test_a_league_of_another_game_has_a_report(make_league: Any) -> None:
    league, run = make_league()
    league.run()
    plots = data_of(build([run.path]))["plots"]
    assert plots["solve-rate"][0]["data"] == []
    assert {one["name"] for one in plots["teachers-rating"][0]["data"] if "name" in one} == {
        f"slot {slot}" for slot in range(league.rules.teachers)
    }


def test_a_run_that_has_just_begun_has_a_report(tmp_path: Path) -> None:
    data = data_of(build([write_run(tmp_path / "run", steps=0)]))
    keys = [kind.key for section in sections(0) for kind in section.kinds if not kind.optional]
    assert list(data["plots"]) == keys
    assert data["problems"] == [[]]
    assert data["plots"]["solve-rate"][0]["data"] == []


def test_the_command_writes_and_says_where(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(run)]) == 0
    assert capsys.readouterr().out == f"{run / 'report.html'}\n"
    out = tmp_path / "here.html"
    assert main([str(run), "--out", str(out), "--problems", "3"]) == 0
    assert len(data_of(out.read_text(encoding="utf-8"))["problems"][0]) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "'nowhere' is no run folder: it holds no config.yaml"),
        (["RUN", "--problems", "-1"], "`limit` must be at least 0, got -1"),
        (["RUN", "--out", "/proc/none/report.html"], "cannot write '/proc/none/report.html'"),
    ],
)
def test_errors_are_one_line(run: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main([str(run) if argument == "RUN" else argument for argument in arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error


@pytest.mark.slow
def test_a_long_run_stays_small(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", steps=200, members=8, proposals=20, attempts=4, evolve_every=5)
    attempts = sum(row["role"] == "solver" for row in read_rows(run, "rollouts"))
    assert attempts > 100_000
    began = time.process_time()
    page = build([run]).encode()
    print(f"{attempts} attempts: {time.process_time() - began:.1f} s of processor, {len(page) / 1e6:.1f} MB")
    assert len(page) < 15e6
