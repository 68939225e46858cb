"""The command: what it prints, what it refuses, and what a league on rock, paper, scissors comes to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("pyspiel", reason="needs OpenSpiel")

from league.classic.__main__ import main

SMALL = ["--teachers", "2", "--students", "2", "--steps", "4", "--games", "8", "--freeze-every", "2", "--hidden", "16"]


def test_json_and_text_tell_every_scheme(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--game", "rps", *SMALL, "--json"]) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert "psro, seed 0: step 4/4, " in err
    assert list(told["leagues"]) == ["pfsp", "uniform", "latest", "psro"]
    assert {"nash_conv", "nash_conv_vs_uniform", "latest_cyclic_share", "latest_cyclic_share_distinct"} == set(
        told["ratios"]
    )
    assert told["ratios"]["nash_conv"] == told["leagues"]["pfsp"][0]["curve"][-1]["mixture"]
    assert main(["--game", "kuhn", *SMALL, "--opponents", "pfsp", "--seeds", "2"]) == 0
    text = capsys.readouterr().out
    assert "pfsp, seed 1" in text
    assert "nash_conv_vs_uniform" in text


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--game", "chess"], "invalid choice"),
        (["--game", "rps", "--steps", "0"], "`steps`"),
        (["--game", "rps", "--opponents", "psro", "psro"], "`opponents`"),
        (["--game", "rps", "--past", "0"], "`past`"),
        (["--game", "rps", "--learning-rate", "0"], "`learning_rate`"),
        (["--game", "tictactoe", "--cooling", "0"], "`cooling`"),
        (["--game", "tictactoe", "--stray", "1"], "`stray`"),
        (["--game", "kuhn", "--stray", "0.5"], "boards"),
    ],
)
def test_what_cannot_be_followed_is_one_line(capsys: pytest.CaptureFixture[str], flags: list[str], said: str) -> None:
    assert main(flags) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert said in error


def test_a_folder_that_is_there_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("x")
    assert main(["--game", "rps", *SMALL, "--out", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.slow
def test_self_play_turns_in_circles_and_the_league_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--game", "rps", "--opponents", "pfsp", "latest", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["ratios"]["latest_cyclic_share"] > 0.8
    assert told["ratios"]["latest_cyclic_share_distinct"] > 0.9
    assert told["ratios"]["nash_conv"] < 0.1
    (latest,) = told["leagues"]["latest"]
    assert max(row["latest"] for row in latest["curve"][2:]) > 0.3
