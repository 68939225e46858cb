"""The arena of classic games under the engine: what is learnt, frozen, kept and told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("pyspiel", reason="needs OpenSpiel")

from league.classic.arena import ClassicArena
from league.classic.games import load_game
from league.classic.hall import PastMembers
from league.classic.options import ClassicOptions, OpponentScheme, Settings, settle
from league.classic.report import as_text
from league.classic.running import RESULT_FILE, Curve, Unkept, make_rules, play_league
from league.engine import League
from league.storage import RunFolder, read_rows
from league.types import Side
from populora_agents.lora import load_adapter


def small(game: Any, opponents: OpponentScheme = "pfsp", **changes: Any) -> Settings:
    values = {"teachers": 2, "students": 2, "steps": 6, "games": 8, "past": 2, "freeze_every": 2, "evolve_every": 3}
    return settle(ClassicOptions(game=game, **{**values, "hidden": 16, "lora_rank": 4, **changes}), opponents)


def make(settings: Settings, game: Any = "kuhn") -> tuple[League, ClassicArena]:
    arena = ClassicArena(load_game(game), settings, seed=3)
    watcher = Curve(arena, every=2, last=settings.steps, say=[].append)
    past = PastMembers(arena, settings, seed=3)
    return League(make_rules(settings, seed=3), arena, Unkept(), watcher, past), arena


@pytest.mark.parametrize("opponents", ["pfsp", "uniform", "latest", "psro"])
def test_every_scheme_plays_freezes_and_evolves(opponents: OpponentScheme) -> None:
    league, arena = make(small("kuhn", opponents))
    league.run()
    assert len(arena.past) == 3 * 4
    assert all(one.member.frozen for one in arena.past)
    assert {member.version for member in league.members if member.born == 0} <= {6}
    assert any(member.born for member in league.members) == (opponents in ("pfsp", "uniform"))
    assert {member.born for member in league.members} <= {0, 3}  # nobody is born after the last step, the sixth


def test_the_same_seed_gives_the_same_bits() -> None:
    first, second = (make(small("kuhn"))[0] for _ in range(2))
    first.run()
    second.run()
    assert first.ratings == second.ratings
    arenas = [league._arena for league in (first, second)]
    assert torch.equal(arenas[0].cast.present.values, arenas[1].cast.present.values)  # type: ignore[attr-defined]


def test_frozen_members_never_move_and_psro_learns_from_them_alone() -> None:
    league, arena = make(small("kuhn", "psro", evolve_every=0))
    league.found()
    league.step(1)
    frozen = arena.slot_of(arena.past[0].member)
    before = arena.cast.adapter(frozen)
    for step in range(2, 5):
        league.step(step)
    after = arena.cast.adapter(frozen)
    assert all(torch.equal(before[name].B, after[name].B) for name in before)
    settings = small("kuhn", "psro")
    assert not settings.games_learnt("train")
    assert settings.games_learnt("frozen")


@pytest.mark.parametrize("opponents", ["pfsp", "uniform", "latest", "psro"])
def test_members_learn_from_as_many_games_with_every_scheme(opponents: OpponentScheme) -> None:
    settings = small("kuhn", opponents, games=64, past=4)
    learnt = settings.games_of("train") * settings.games_learnt("train")
    assert learnt + settings.past_matches * settings.games_of("frozen") == 128


def test_a_league_goes_on_bit_for_bit(tmp_path: Path) -> None:
    whole, arena = make(small("kuhn"))
    whole.run()
    run = RunFolder.create(tmp_path / "run", run_id="cut", config="{}\n", versions={"base": "x"})
    cut, _ = make(small("kuhn"))
    cut._recorder = run
    cut.rules = make_rules(small("kuhn"), seed=3)
    cut.found()
    for step in range(1, 5):
        cut.step(step)
    cut._save(4, cut.members, state=True)
    rest, other = make(small("kuhn"))
    rest.restore(run.path / "adapters", run.state_of(4))
    rest.go_on()
    run.close()
    assert rest.ratings == whole.ratings
    assert torch.equal(other.cast.present.values, arena.cast.present.values)


@pytest.mark.parametrize("game", ["rps", "tictactoe"])
def test_a_run_folder_holds_matches_members_and_what_is_told(tmp_path: Path, game: Any) -> None:
    told = play_league(game, small(game), seed=0, measurements=3, out=tmp_path / "run")
    assert json.loads((tmp_path / "run" / RESULT_FILE).read_text()) == json.loads(json.dumps(told))
    kinds = [row["kind"] for row in read_rows(tmp_path / "run", "matches")]
    assert kinds.count("train") == 6 * 2
    assert kinds.count("frozen") == 6 * 2 * 4
    _, config = load_adapter(next((tmp_path / "run" / "adapters" / "teacher_0").iterdir()))
    assert config.lora_rank == 4
    scores = np.array(told["payoff"]["scores"])
    assert scores.shape == (len(told["payoff"]["students"]), len(told["payoff"]["teachers"]))
    assert ((scores >= 0) & (scores <= 1)).all()
    measured = game == "tictactoe"
    assert (told["payoff"]["cyclic_noise"] is None) != measured
    assert any("by chance alone" in line for line in as_text(game, {"pfsp": [told]})) == measured
    assert sum(told["payoff"]["alpha_rank"]["teacher"].values()) == pytest.approx(1, abs=0.02)
    assert set(told["references"]) == ({"random", "minimax"} if game == "tictactoe" else {"random", "cfr"})


def test_games_that_begin_at_random_do_not_count_for_ratings(tmp_path: Path) -> None:
    play_league("tictactoe", small("tictactoe", steps=1, stray=0.75), seed=0, measurements=1, out=tmp_path / "run")
    counted = {row["kind"]: row["n_problems"] for row in read_rows(tmp_path / "run", "matches")}
    assert counted == {"train": 2, "frozen": 1}, "a quarter of 8 and of 4 games"


def test_the_learning_rate_falls_in_a_line_over_the_second_half() -> None:
    settings = small("tictactoe", steps=10, learning_rate=1e-2, cooling=0.2)
    assert [settings.learning_rate_at(step) for step in (1, 5)] == [1e-2, 1e-2]
    assert settings.learning_rate_at(10) == pytest.approx(2e-3)
    assert settings.learning_rate_at(8) == pytest.approx(1e-2 * (1 - 0.8 * 0.6))


def test_seats_are_sides() -> None:
    settings = small("connect_four", teachers=2, students=3)
    arena = ClassicArena(load_game("connect_four"), settings, seed=0)
    assert arena.slots(Side.TEACHER)[1].tolist() == [0, 1]
    assert arena.slots(Side.STUDENT)[1].tolist() == [2, 3, 4]
