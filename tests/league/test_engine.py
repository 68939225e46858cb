"""The loop of a league, on a real game that knows nothing of programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rock_paper_scissors import PAYOFF, Reports, RockPaperScissors, make_rules

from league.engine import League
from league.ratings import RatingConstants, RatingRules, inflate, rate
from league.storage import RunFolder, committed_steps, read_metrics, read_rows, read_table
from league.types import Match, MatchResult, Play, Rating, Side


def final_members(run: RunFolder) -> set[str]:
    rows = read_rows(run.path, "ratings")
    return {row["member_id"] for row in rows} - {row["member_id"] for row in rows if row["event"] == "retire"}


def test_all_members_play_every_step_and_every_step_is_committed(make_league: Any) -> None:
    league, run = make_league()
    league.run()
    assert committed_steps(run.path) == list(range(8))
    assert [line["step"] for line in read_metrics(run.path)] == list(range(8))
    matches = read_rows(run.path, "matches")
    assert [row["match_id"] for row in matches] == list(range(7 * 4))
    for step in range(1, 8):
        assert Counter(row["student_id"] for row in matches if row["step"] == step).total() == 4
        assert len({row["teacher_id"] for row in matches if row["step"] == step}) == 3


def test_replaying_the_matches_gives_the_ratings_table(make_league: Any) -> None:
    league, run = make_league()
    league.run()
    matches = {row["match_id"]: row for row in read_rows(run.path, "matches")}
    ratings: dict[str, Rating] = {}
    prior = RatingConstants().prior
    rows = iter(read_rows(run.path, "ratings"))
    for row in rows:
        if row["event"] == "birth":
            ratings[row["member_id"]] = prior
        elif row["event"] == "update":
            match = matches[row["match_id"]]
            teacher, student = match["teacher_id"], match["student_id"]
            ratings[teacher], ratings[student], outcome = rate(
                ratings[teacher], ratings[student], match["expected"], match["observed"]
            )
            assert outcome == match["outcome"]
            assert row["member_id"] == teacher
            other = next(rows)
            assert (other["member_id"], other["match_id"]) == (student, row["match_id"])
            assert Rating(mu=other["mu"], sigma=other["sigma"]) == ratings[student]
        assert Rating(mu=row["mu"], sigma=row["sigma"]) == ratings[row["member_id"]]
    assert {name: ratings[name] for name in final_members(run)} == league.ratings


def test_evolution_replaces_the_worst_of_each_side_and_keeps_the_ancestry(make_league: Any) -> None:
    league, run = make_league()
    league.run()
    lineage = read_rows(run.path, "lineage")
    children = [row for row in lineage if row["parents"]]
    assert [row["step"] for row in children] == [3, 3, 6, 6]
    assert [row["child_id"] for row in children] == ["teacher_3", "student_4", "teacher_4", "student_5"]
    assert all(row["operator"] in {"shake", "average"} for row in children)
    known = {row["child_id"] for row in lineage}
    assert all(set(row["parents"]) < known for row in children)
    founders = [row for row in lineage if not row["parents"]]
    assert {row["operator"] for row in founders} == {"founder"}
    assert len(founders) == 7
    births = [row for row in read_rows(run.path, "ratings") if row["event"] == "birth"]
    assert len(births) == len(lineage)
    retired = [row for row in read_rows(run.path, "ratings") if row["event"] == "retire"]
    assert len(retired) == 4
    assert final_members(run) == {member.member_id for member in league.members}


def test_births_and_last_weights_are_on_disk(make_league: Any) -> None:
    league, run = make_league(steps=6)
    league.run()
    adapters = run.path / "adapters"
    for row in read_rows(run.path, "lineage"):
        assert (adapters / row["child_id"] / "0" / "logits.json").is_file()
    for member in league.members:
        assert (adapters / member.member_id / str(member.version) / "logits.json").is_file()
    played = Counter(row["student_id"] for row in read_rows(run.path, "matches"))
    retired = [row for row in read_rows(run.path, "ratings") if row["event"] == "retire"]
    for row in retired:
        if row["member_id"].startswith("student"):
            assert (adapters / row["member_id"] / str(played[row["member_id"]]) / "logits.json").is_file()
    assert [path.name for path in (run.path / "state").iterdir()] == ["step=6"]


def test_versions_grow_by_one_a_step(make_league: Any) -> None:
    league, run = make_league(evolve_every=None, operators={})
    league.run()
    versions = [row["student_version"] for row in read_rows(run.path, "matches") if row["student_id"] == "student_1"]
    assert versions == list(range(7))
    assert {member.version for member in league.members} == {7}
    assert all(not row["parents"] for row in read_rows(run.path, "lineage"))


@pytest.mark.parametrize(("last", "births"), [(True, {2, 4, 6}), (False, {2, 4})])
def test_the_last_step_evolves_only_where_it_may(make_league: Any, last: bool, births: set[int]) -> None:
    league, run = make_league(evolve_every=2, evolve_last=last, steps=6)
    league.run()
    assert {row["step"] for row in read_rows(run.path, "lineage") if row["parents"]} == births


def test_same_seed_same_tables_and_another_seed_others(make_league: Any) -> None:
    tables = {}
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        league, run = make_league(name, seed=seed)
        league.run()
        tables[name] = [
            read_table(run.path, table).drop_columns(["run_id"]) for table in ("matches", "ratings", "lineage")
        ]
    assert tables["a"] == tables["b"]
    assert tables["a"] != tables["c"]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    teachers=st.integers(1, 5),
    students=st.integers(1, 5),
    evolve_every=st.integers(1, 3),
    fraction=st.sampled_from([0.1, 0.5, 1.0]),
    seed=st.integers(0, 2**63 - 1),
)
def test_sides_of_any_size_keep_their_size_and_slots(
    make_league: Any, teachers: int, students: int, evolve_every: int, fraction: float, seed: int
) -> None:
    name = f"{teachers}-{students}-{evolve_every}-{fraction}-{seed}"
    league, run = make_league(
        name, teachers=teachers, students=students, evolve_every=evolve_every, fraction=fraction, seed=seed, steps=3
    )
    league.run()
    assert [(member.side, member.slot) for member in league.members] == [
        *(("teacher", slot) for slot in range(teachers)),
        *(("student", slot) for slot in range(students)),
    ]
    ids = [row["child_id"] for row in read_rows(run.path, "lineage")]
    assert len(ids) == len(set(ids))
    assert set(league.ratings) == {member.member_id for member in league.members}
    for before, after in pairwise(read_rows(run.path, "matches")):
        assert after["match_id"] == before["match_id"] + 1


def test_an_interrupted_step_leaves_no_trace_in_the_tables(make_league: Any) -> None:
    league, run = make_league()
    play = league._arena.play

    def stop(matches: Any, *, step: int) -> Play:
        if step == 3:
            raise KeyboardInterrupt
        result: Play = play(matches, step=step)
        return result

    league._arena.play = stop
    with pytest.raises(KeyboardInterrupt):
        league.run()
    assert committed_steps(run.path) == [0, 1, 2]
    assert {row["step"] for row in read_rows(run.path, "matches")} == {1, 2}


@pytest.mark.parametrize(
    "changes", [{"teachers": 0}, {"students": 0}, {"steps": -1}, {"evolve_every": 0}, {"operators": {}}]
)
def test_rules_refuse(make_league: Any, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be|needs"):
        make_league(**changes)


class Interrupted(BaseException):
    """Stands for the end of the process."""


class Mortal:
    """A recorder whose process ends at its `moments`-th write, before or after it."""

    def __init__(self, run: RunFolder, moments: int) -> None:
        """Count from now on."""
        self.run = run
        self.left = moments

    def die(self) -> None:
        """End, if it is time."""
        self.left -= 1
        if self.left < 0:
            raise Interrupted

    def commit(self, *arguments: Any) -> None:
        """Commit between two moments."""
        self.die()
        self.run.commit(*arguments)
        self.die()

    @contextmanager
    def adapters(self) -> Iterator[Path]:
        """Give the folder; a moment before it is durable."""
        with self.run.adapters() as folder:
            yield folder
            self.die()

    def saved(self) -> AbstractContextManager[Path]:
        """Give the folder to read from."""
        return self.run.saved()

    @contextmanager
    def state(self, step: int, needs: Iterable[str] = ()) -> Iterator[Path]:
        """Give the folder, then live a moment."""
        with self.run.state(step, needs) as folder:
            yield folder
        self.die()


def files(run: RunFolder) -> dict[str, bytes]:
    return {str(path.relative_to(run.path)): path.read_bytes() for path in run.path.rglob("*") if path.is_file()}


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moments=st.lists(st.integers(0, 20), max_size=3), save_every=st.integers(1, 4))
def test_an_interrupted_league_ends_as_the_uninterrupted_one(
    tmp_path_factory: pytest.TempPathFactory, moments: list[int], save_every: int
) -> None:
    rules = make_rules(steps=4, evolve_every=2, save_every=save_every)
    folder = tmp_path_factory.mktemp("runs")
    whole = RunFolder.create(folder / "whole", run_id="r", config="", versions={})
    League(rules, RockPaperScissors(rules.seed), whole, Reports()).run()
    broken = RunFolder.create(folder / "broken", run_id="r", config="", versions={})
    for moment in [*moments, 10**6]:
        league = League(rules, RockPaperScissors(rules.seed), Mortal(broken, moment), Reports())
        last = broken.last_state()
        if last is not None:
            league.restore(broken.path / "adapters", broken.state_of(last))
        broken.roll_back(last)
        with suppress(Interrupted):
            league.run() if last is None else league.go_on()
        broken.close()
        broken = RunFolder.reopen(broken.path)
    assert files(broken) == files(whole)


@pytest.mark.parametrize(("teachers", "students"), [(1, 3), (5, 2), (64, 64)])
def test_any_sizes_play_and_evolve(make_league: Any, teachers: int, students: int) -> None:
    league, run = make_league(teachers=teachers, students=students, steps=3)
    league.run()
    assert len(read_rows(run.path, "matches")) == 3 * max(teachers, students)
    assert (len(league.side(Side.TEACHER)), len(league.side(Side.STUDENT))) == (teachers, students)


@pytest.mark.parametrize("matchmaking", ["pfsp", "uniform", "round_robin", "latest"])
def test_every_option_of_the_league_goes_on_bit_for_bit(make_league: Any, matchmaking: str) -> None:
    options = {
        "matchmaking": matchmaking,
        "exploration": 0.2,
        "rating": RatingRules(outcome="attempts", attempts=4, sigma_inflation=0.5),
        "elites": 1,
        "parents": "rank",
        "explore": True,
        "save_every": 1,
    }
    whole, _ = make_league("whole", **options)
    whole.run()
    first, run = make_league("cut", **options)
    first.found()
    for step in range(1, 5):
        first.step(step)
    second, rest = make_league("rest", **options)
    second.restore(run.path / "adapters", run.path / "state" / "step=4")
    second.go_on()
    assert second.ratings == whole.ratings
    assert second.members == whole.members
    assert committed_steps(rest.path) == [5, 6, 7]


def test_a_rating_is_inflated_once_a_step_after_the_weights_changed(make_league: Any) -> None:
    league, _ = make_league(evolve_every=None, operators={}, rating=RatingRules(sigma_inflation=2.0))
    league.found()
    league.step(1)
    before = dict(league.ratings)
    league._inflate()
    assert all(league.ratings[name] == inflate(before[name], 2.0) for name in before)
    assert all(league.ratings[name].sigma > before[name].sigma for name in before)


def test_a_cross_table_is_played_every_few_steps_and_changes_nothing_else(make_league: Any) -> None:
    options = {"steps": 7, "past_opponents": 0.4, "save_every": 1, "payoff_every": 3}
    plain, without = make_league("plain", **options)
    plain.run()
    crossed, run = make_league("crossed", **options, cross_eval_every=3)
    crossed.run()
    matches = read_rows(run.path, "matches")
    cross = [row for row in matches if row["kind"] == "cross_eval"]
    assert Counter(row["step"] for row in cross) == {3: 12, 6: 12}
    for step in (3, 6):
        pairs = {(row["teacher_id"], row["student_id"]) for row in cross if row["step"] == step}
        trained = {
            row[f"{side}_id"]: row[f"{side}_version"]
            for row in matches
            for side in ("teacher", "student")
            if row["step"] == step and row["kind"] == "train"
        }
        assert {name for pair in pairs for name in pair} == trained.keys()
        for row in (row for row in cross if row["step"] == step):
            assert row["student_version"] == trained[row["student_id"]] + 1, "they are met as the update left them"
    for name in ("ratings", "lineage"):
        tables = [read_table(one.path, name).drop_columns(["run_id"]) for one in (without, run)]
        assert tables[0] == tables[1]
    others = [{**row, "run_id": ""} for row in matches if row["kind"] != "cross_eval"]
    assert others == [{**row, "run_id": ""} for row in read_rows(without.path, "matches")]
    assert adapters(run) == adapters(without)
    told = {line["step"]: line for line in read_metrics(run.path)}
    assert (told[3]["league/pairs_met"], told[6]["league/pairs_met"]) == (1.0, 1.0)
    assert [step for step, line in told.items() if "cross_eval" in line["seconds"]] == [3, 6]


def adapters(run: RunFolder) -> dict[str, bytes]:
    return {name: data for name, data in files(run).items() if name.startswith("adapters")}


class Fixed(RockPaperScissors):
    """Members that each play one move and learn nothing; a student's rate is its mean score, a draw a half."""

    def play(self, matches: Sequence[Match], *, step: int) -> Play:
        """Look the results up."""
        del step
        results = tuple(
            MatchResult(
                match=match, observed=(PAYOFF[match.student.slot, match.teacher.slot] + 1) / 2, n_problems=self.games
            )
            for match in matches
        )
        return Play(results=results, tables={}, metrics={}, seconds={})


def test_a_league_that_turns_in_circles_is_told_so_every_few_steps(make_league: Any) -> None:
    reports = Reports()
    league, _ = make_league(
        arena=Fixed(0), watcher=reports, students=3, steps=40, payoff_every=10, evolve_every=None, operators={}
    )
    league.run()
    told = {report.step: report.metrics for report in reports.all if "league/pairs_met" in report.metrics}
    assert set(told) == {10, 20, 30, 40}
    assert told[40]["league/cyclic_share"] > 0.99
    assert told[40]["league/nash_support/student"] == 3


def test_a_single_agent_meets_itself_and_is_not_rated(make_league: Any) -> None:
    options = {"self_play": 3, "evolve_every": None, "operators": {}, "save_every": 2}
    league, run = make_league(**options)
    league.run()
    assert [member.member_id for member in league.members] == ["agent_0"]
    assert league.members[0].version == 7
    matches = read_rows(run.path, "matches")
    assert [row["match_id"] for row in matches] == list(range(21))
    assert {(row["kind"], row["teacher_id"], row["student_id"], row["expected"]) for row in matches} == {
        ("self_play", "agent_0", "agent_0", 0.5)
    }
    assert [row["event"] for row in read_rows(run.path, "ratings")] == ["birth"]
    second, _ = make_league("rest", **options)
    second.restore(run.path / "adapters", run.path / "state" / "step=7")
    assert second.members == league.members


def test_a_single_agent_does_not_evolve(make_league: Any) -> None:
    with pytest.raises(ValueError, match="a single agent does not evolve"):
        make_league(self_play=1)
