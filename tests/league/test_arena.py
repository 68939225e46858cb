"""The programming game as an arena: a step's tables, learning, breeding and saving, on a tiny random base."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scripted import ScriptedBackend, make_base

from league.archive import CELLS, Archive
from league.arena import BUFFER_FILE, OPTIMISER_FILE, ProgramArena
from league.config import RunConfig, make_game, resolve
from league.engine import League
from league.executors.local import LocalExecutor
from league.learning import trainer_config
from league.lineage import found
from league.matchmaking import cross_table
from league.options import GameOptions, LearnOptions, MatchOptions, MeasureOptions, PlayOptions
from league.rules import Rules
from league.run import make_rules
from league.schemas import SCHEMAS, to_table
from league.storage import RunFolder, read_rows, read_table
from league.types import Match, Member, Rating, Side
from populora_agents.config import NANO
from populora_agents.lora import load_adapter
from populora_agents.stack import AdapterStack
from populora_agents.trainer import Trainer
from populora_agents.types import Rollout, UpdateReport
from populora_env.config import RewardConfig
from populora_env.types import Task

OPERATORS = {"svd_perturb": True, "layer_select": True}


class Lent:
    """A verifier that the arena may not close."""

    def __init__(self, verifier: Any) -> None:
        """Lend it."""
        self.check_proposals = verifier.check_proposals
        self.check_answers = verifier.check_answers
        self.layers = verifier.layers

    def close(self) -> None:
        """Leave it open."""


def make_config(**changes: Any) -> RunConfig:
    values: dict[str, Any] = {
        "teachers": 2,
        "students": 2,
        "steps": 3,
        "game": GameOptions(seed_problems=24),
        "play": PlayOptions(proposal_tokens=512, answer_tokens=256),
        "learn": LearnOptions(lora_rank=2, alpha=4.0, teacher_learning_rate=0.01, student_learning_rate=0.01),
    }
    return resolve(RunConfig(**(values | changes)), NANO, OPERATORS)


def make_arena(verifier: Any, **changes: Any) -> ProgramArena:
    config = make_config(**changes)
    base, backend = make_base(), ScriptedBackend(make_game(config, None))
    return ProgramArena(config, base, LocalExecutor(config, base, Lent(verifier), backend))


def make_matches(members: Sequence[Member], step: int = 1) -> list[Match]:
    teachers, students = members[:2], members[2:]
    return [
        Match(match_id=number, step=step, teacher=teacher, student=student, expected=0.5)
        for number, (teacher, student) in enumerate(zip(teachers, students, strict=True))
    ]


def grown(member: Member) -> Member:
    return Member(member_id=member.member_id, side=member.side, slot=member.slot, version=member.version + 1)


@pytest.fixture(scope="module")
def played(verifier: Any) -> tuple[ProgramArena, tuple[Member, ...], Any]:
    arena = make_arena(verifier)
    members = found(2, 2)
    arena.found(members)
    return arena, members, arena.play(make_matches(members), step=1)


def test_a_step_reaches_every_phase_and_task(played: Any) -> None:
    _, _, play = played
    problems, rollouts = play.tables["problems"], play.tables["rollouts"]
    for name, rows in play.tables.items():
        assert to_table(name, rows, "run").num_rows == len(rows)
    for teacher in ("teacher_0", "teacher_1"):
        assert {row["task"] for row in problems if row["teacher_id"] == teacher} == set(Task)
        assert {row["task"] for row in problems if row["teacher_id"] == teacher and row["valid"]} >= {"deduction"}
    assert {row["role"] for row in rollouts} == {"proposer", "solver"}
    assert set(play.seconds) == {"propose", "verify", "solve", "yardstick", "update"}
    assert play.metrics["teacher/validity"] == np.mean([row["valid"] for row in problems])
    for result in play.results:
        rates = [row["solve_rate"] for row in problems if row["match_id"] == result.match.match_id and row["valid"]]
        assert result.observed == pytest.approx(np.mean(rates))
        assert result.n_problems == len(rates)


def test_advantages_are_rewards_less_their_group_over_the_spread_of_member_role_and_task(played: Any) -> None:
    _, _, play = played
    groups: dict[Any, list[float]] = defaultdict(list)
    rows = play.tables["rollouts"]
    for row in rows:
        groups[row["group_id"], row["role"]].append(row["reward"])
    differences = [row["reward"] - np.mean(groups[row["group_id"], row["role"]]) for row in rows]
    batches: dict[Any, list[float]] = defaultdict(list)
    for row, difference in zip(rows, differences, strict=True):
        batches[row["member_id"], row["role"], row["task"]].append(difference)
    for row, difference in zip(rows, differences, strict=True):
        spread = np.std(batches[row["member_id"], row["role"], row["task"]])
        assert row["advantage"] == pytest.approx(difference / spread if spread > 1e-8 else 0.0, abs=1e-12)
    assert any(row["advantage"] for row in rows if row["role"] == "proposer")


def test_members_learn_and_stand_one_version_higher(played: Any, tmp_path: Path) -> None:
    arena, members, play = played
    with pytest.raises(ValueError, match="does not hold teacher_0@0"):
        arena.save_adapters(members, str(tmp_path))
    hashes = arena.save_adapters([grown(member) for member in members], str(tmp_path))
    assert set(hashes) == {member.member_id for member in members}
    learnt = {row["member_id"] for row in play.tables["rollouts"] if row["advantage"]}
    assert {"teacher_0", "teacher_1"} <= learnt
    for member in members:
        adapter, config = load_adapter(tmp_path / member.member_id / "1")
        assert (config.lora_rank, config.alpha) == (2, 4.0)
        moved = any(bool(factors.B.abs().max() > 0) for factors in adapter.values())
        assert moved == (member.member_id in learnt)


class Recording(Trainer):
    """Somebody else's rule: numbers the rollouts and takes that for their advantages."""

    def advantages(self, rollouts: Sequence[Rollout]) -> NDArray[np.float64]:
        """Count."""
        return np.arange(len(rollouts), dtype=np.float64)


def test_another_update_rule_takes_the_trainers_place_and_its_advantages_are_kept(verifier: Any) -> None:
    made = []

    def new_trainer(config: RunConfig, stack: AdapterStack) -> Recording:
        made.append(Recording(stack, trainer_config(config)))
        return made[0]

    config = make_config()
    base, backend = make_base(), ScriptedBackend(make_game(config, None))
    arena = ProgramArena(config, base, LocalExecutor(config, base, Lent(verifier), backend, new_trainer))
    members = list(found(2, 2))
    arena.found(members)
    match = Match(match_id=0, step=1, kind="train", teacher=members[0], student=members[2], expected=0.5)
    play = arena.play([match], step=1)
    rows = play.tables["rollouts"]
    assert sorted(row["advantage"] for row in rows) == list(range(len(rows)))
    assert made[0].state_dict()["counts"].tolist() == [1, 0, 1, 0]


def test_a_member_samples_and_learns_at_its_own_temperature_and_rate(verifier: Any) -> None:
    seen: dict[str, float] = {}

    class Noting(Trainer):
        def update(self, rollouts: Any, advantages: Any, slots: Any, learning_rates: Any) -> UpdateReport:
            seen.update(learning_rates)
            assert {one.temperature for one in rollouts if one.member_id == "student_1"} == {0.5}
            return super().update(rollouts, advantages, slots, learning_rates)

    config = make_config()
    base, backend = make_base(), ScriptedBackend(make_game(config, None))
    executor = LocalExecutor(config, base, Lent(verifier), backend, lambda _, stack: Noting(stack))
    arena = ProgramArena(config, base, executor)
    members = [
        replace(one, learning_rate_scale=3.0, temperature_scale=0.5) if one.member_id == "student_1" else one
        for one in found(2, 2)
    ]
    arena.found(members)
    play = arena.play(make_matches(members), step=1)
    assert seen["student_1"] == 3 * seen["student_0"]
    temperatures = {(row["member_id"], row["temperature"]) for row in play.tables["rollouts"]}
    assert temperatures == {("teacher_0", 1.0), ("teacher_1", 1.0), ("student_0", 1.0), ("student_1", 0.5)}


def test_a_past_member_plays_beside_the_living_one_and_only_the_living_learn(verifier: Any, tmp_path: Path) -> None:
    arena = make_arena(verifier, match=MatchOptions(past_opponents=0.5))
    members = [*found(2, 2)]
    arena.found(members)
    arena.play(make_matches(members), step=1)
    members = [grown(member) for member in members]
    arena.save_adapters(members, str(tmp_path))
    arena.play(make_matches(members, step=2), step=2)
    members = [grown(member) for member in members]
    past = [replace(grown(found(2, 2)[place]), frozen=True, slot=slot) for slot, place in enumerate((0, 3))]
    arena.recall(past, str(tmp_path))
    before = [arena._stack.adapter(slot) for slot in range(6)]
    counts = arena._trainer.state_dict()["counts"].tolist()
    buffer = {row["problem_id"] for row in arena._buffer.rows()}
    pairs = [(past[0], members[2]), (members[1], past[1])]
    matches = [
        Match(match_id=9 + n, step=3, teacher=teacher, student=student, expected=0.5, kind="frozen")
        for n, (teacher, student) in enumerate(pairs)
    ]
    play = arena.play(matches, step=3)
    after = arena._trainer.state_dict()["counts"].tolist()
    assert len(after) == 6, "two past opponents a step at the most, beside four members"
    assert [after[slot] - counts[slot] for slot in (0, 3, 4, 5)] == [0, 0, 0, 0]
    assert after[1] == counts[1] + 1, "the living teacher learns from what a past student could solve"
    for slot in (0, 3, 4, 5):
        for module, factors in before[slot].items():
            assert torch.equal(factors.B, arena._stack.adapter(slot)[module].B)
    rows = play.tables["rollouts"]
    assert {(row["member_id"], row["version"]) for row in rows} == {
        ("teacher_0", 1),
        ("student_0", 2),
        ("teacher_1", 2),
        ("student_1", 1),
    }
    assert all(row["advantage"] == 0 for row in rows if row["version"] == 1)
    assert any(row["advantage"] for row in rows if row["version"] == 2)
    own = {row["problem_id"] for row in play.tables["problems"] if row["valid"] and row["teacher_id"] == "teacher_1"}
    other = {row["problem_id"] for row in play.tables["problems"] if row["valid"] and row["teacher_id"] == "teacher_0"}
    kept = {row["problem_id"] for row in arena._buffer.rows()} - buffer
    assert own & kept
    assert not (other - own) & kept, "a past teacher's problems are no references for the living"
    assert not any(name.startswith(("teacher/validity", "student/solve_rate")) for name in play.metrics)
    arena.save_adapters([grown(members[1]), grown(members[2]), members[0], members[3]], str(tmp_path / "later"))


def test_a_cross_table_moves_neither_weights_nor_moments_nor_buffer_nor_archive(verifier: Any, tmp_path: Path) -> None:
    arena = make_arena(verifier, measure=MeasureOptions(cross_eval_problems=5))
    members = [*found(2, 2)]
    arena.found(members)
    arena.play(make_matches(members), step=1)
    members = [grown(member) for member in members]
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        folder.mkdir()
    arena.save_state(str(before))
    hashes = arena.save_adapters(members, str(tmp_path / "a"))
    ratings = {member.member_id: Rating(mu=25.0, sigma=8.0) for member in members}
    table = cross_table(members[:2], members[2:], ratings, step=1, table=0)
    play = arena.play(table, step=1)
    arena.save_state(str(after))
    assert arena.save_adapters(members, str(tmp_path / "b")) == hashes, "and nobody stands a version higher"
    assert {path.name: path.read_bytes() for path in before.iterdir()} == {
        path.name: path.read_bytes() for path in after.iterdir()
    }
    assert len(play.results) == 4
    problems, rollouts = play.tables["problems"], play.tables["rollouts"]
    assert len(problems) == 4 * 5
    assert len({row["extra_info"]["index"] for row in problems}) == len(problems)
    assert all((row["cell_id"] is not None) == row["valid"] for row in problems)
    assert {row["advantage"] for row in rollouts} == {0.0}
    assert {row["role"] for row in rollouts} == {"proposer", "solver"}
    for name, rows in play.tables.items():
        assert to_table(name, rows, "run").num_rows == len(rows)


def test_numbers_of_the_update_are_among_the_metrics(played: Any) -> None:
    _, _, play = played
    for side in ("teacher", "student"):
        for name in ("tokens", "loss", "grad_norm", "clip_fraction", "entropy", "entropy_estimate", "logprob_gap"):
            assert np.isfinite(play.metrics[f"{side}/{name}"])
        assert f"{side}/kl" not in play.metrics


def test_valid_problems_enter_the_buffer_and_the_state_is_saved(played: Any, tmp_path: Path) -> None:
    arena, _, play = played
    arena.save_state(str(tmp_path))
    saved = (tmp_path / BUFFER_FILE).read_text()
    for row in play.tables["problems"]:
        assert (row["problem_id"] is not None) == row["valid"]
        assert not row["valid"] or row["problem_id"] in saved
        assert (row["cell_id"] is not None) == row["valid"]
    filled = {row["cell_id"] for row in play.tables["problems"] if row["valid"] and row["task"] != "induction"}
    assert play.metrics["teacher/coverage"] == len(filled) / CELLS
    assert Archive.load(tmp_path).coverage().items() <= play.metrics.items()
    assert (tmp_path / OPTIMISER_FILE).stat().st_size > 0


def test_what_teachers_proposed_before_is_paid_less_and_outlives_a_break(verifier: Any, tmp_path: Path) -> None:
    changes = {"game": GameOptions(seed_problems=24, rewards=RewardConfig(repeat_penalty=0.125, repeat_form="program"))}
    arena, members = make_arena(verifier, **changes), found(2, 2)
    arena.found(members)
    first = arena.play(make_matches(members), step=1)
    assert {row["repeated"] for row in own_programs(first)} == {False}
    members = tuple(map(grown, members))
    arena.save_adapters(members, str(tmp_path))
    arena.save_state(str(tmp_path))
    resumed = make_arena(verifier, **changes)
    resumed.restore(members, str(tmp_path), str(tmp_path))
    for one in (arena, resumed):  # the stand-in's texts hang on seeds alone, and those on the step
        second = one.play(make_matches(members), step=1)
        assert {row["repeated"] for row in own_programs(second)} == {True}
        assert second.metrics["teacher/repeats"] == 1.0
        rewards = {row["rollout_id"]: row["reward"] for row in second.tables["rollouts"]}
        for row in own_programs(second):
            rho = row["solve_rate"]
            assert rewards[row["proposal_id"]] == (1 - rho if 0 < rho < 1 else 0.0) - 0.125


def own_programs(play: Any) -> list[dict[str, Any]]:
    return [row for row in play.tables["problems"] if row["valid"] and row["task"] != "induction"]


def test_a_child_takes_the_slot_with_fresh_moments_and_its_file_has_the_hash_that_was_told(
    verifier: Any, tmp_path: Path
) -> None:
    arena = make_arena(verifier)
    members = found(2, 2)
    arena.found(members)
    arena.play(make_matches(members), step=1)
    parent = grown(members[1])
    child = Member(member_id="teacher_2", side=Side.TEACHER, slot=0, born=1)
    moments = arena._trainer.state_dict()
    assert float(moments["first"][0].abs().sum()) > 0
    sha256 = arena.breed(child, [parent], "copy_parent", {}, seed=1)
    assert arena.save_adapters([child], str(tmp_path)) == {"teacher_2": sha256}
    moments = arena._trainer.state_dict()
    assert float(moments["first"][0].abs().sum()) == 0
    assert float(moments["first"][1].abs().sum()) > 0
    copies = (load_adapter(tmp_path / "teacher_2" / "0")[0], arena._stack.adapter(1))
    for module, factors in copies[0].items():
        assert torch.equal(factors.A, copies[1][module].A)
        assert torch.equal(factors.B, copies[1][module].B)
    with pytest.raises(ValueError, match="does not hold teacher_0@1"):
        arena.save_adapters([grown(members[0])], str(tmp_path))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"play": PlayOptions(answer_tokens=1500)}, "at most half of the base's context"),
        ({"learn": LearnOptions(targets=("magic",))}, "magic"),
    ],
)
def test_settings_that_do_not_fit_the_base_are_refused(verifier: Any, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_arena(verifier, **changes)


def test_a_whole_league_of_programs_twice_with_the_same_tables(verifier: Any, tmp_path: Path) -> None:
    tables = []
    for name in ("a", "b"):
        arena = make_arena(verifier)
        rules: Rules = make_rules(make_config())
        run = RunFolder.create(tmp_path / name, run_id=name, config="", versions={})
        League(rules, arena, run, _Silence()).run()
        tables.append(
            {
                table: read_table(run.path, table).drop_columns(
                    ["run_id"] + (["exec_ms"] if table == "problems" else [])
                )
                for table in SCHEMAS
            }
        )
    assert tables[0] == tables[1]
    assert [row["step"] for row in read_rows(tmp_path / "a", "matches")] == [1, 1, 2, 2, 3, 3]


class _Silence:
    def committed(self, report: Any) -> None:
        del report
