"""Ids and rows of founders and children."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from league.lineage import bear, birth_row, found, founder_row, next_member_id, side_of
from league.schemas import to_table
from league.selection import Replacement
from league.types import Member, Side


def test_founders_are_named_by_slot() -> None:
    founders = found(2, 1)
    assert [x.member_id for x in founders] == ["teacher_0", "teacher_1", "student_0"]
    assert [(x.side, x.slot, x.version, x.born) for x in founders] == [
        (Side.TEACHER, 0, 0, 0),
        (Side.TEACHER, 1, 0, 0),
        (Side.STUDENT, 0, 0, 0),
    ]


def test_next_id_is_above_every_id_that_ever_was() -> None:
    assert next_member_id(Side.STUDENT, {"teacher_7", "student_0", "student_3"}) == "student_4"
    assert next_member_id(Side.TEACHER, {"student_3"}) == "teacher_0"
    assert next_member_id(Side.TEACHER, {"teacher_9", "teacher_10"}) == "teacher_11"


def test_an_id_names_its_side() -> None:
    assert [side_of(name) for name in ("teacher_0", "student_12")] == [Side.TEACHER, Side.STUDENT]
    for wrong in ("referee_0", "teacher", "teacher_x", ""):
        with pytest.raises(ValueError, match="expected ids like 'teacher_0'"):
            side_of(wrong)


def test_children_take_the_place_but_never_the_name() -> None:
    founders = found(3, 2)
    used = {x.member_id for x in founders}
    replacements = [
        Replacement(victim=founders[1], operator="svd_perturb", parents=(founders[0],)),
        Replacement(victim=founders[2], operator="layer_select", parents=(founders[0], founders[1])),
        Replacement(victim=founders[4], operator="svd_perturb", parents=(founders[3],)),
    ]
    children = bear(replacements, used, step=10)
    assert [x.member_id for x in children] == ["teacher_3", "teacher_4", "student_2"]
    assert [(x.side, x.slot, x.version, x.born) for x in children] == [
        (Side.TEACHER, 1, 0, 10),
        (Side.TEACHER, 2, 0, 10),
        (Side.STUDENT, 1, 0, 10),
    ]
    later = bear(replacements[:1], used | {x.member_id for x in children}, step=20)
    assert later[0].member_id == "teacher_5"


def test_rows_say_how_a_member_came_to_be() -> None:
    teacher, _ = found(1, 1)
    assert founder_row(teacher, seed=5, adapter_sha256="ab") == {
        "child_id": "teacher_0",
        "step": 0,
        "slot": 0,
        "parents": [],
        "operator": "founder",
        "parameters": [],
        "seed": 5,
        "learning_rate_scale": 1.0,
        "temperature_scale": 1.0,
        "adapter_sha256": "ab",
    }
    replacement = Replacement(victim=teacher, operator="layer_gaussian", parents=(teacher,))
    (child,) = bear([replacement], {"teacher_0"}, step=4)
    row = birth_row(child, replacement, parameters={"share": 0.33, "epsilon": 1}, seed=2**63 - 1, adapter_sha256="cd")
    assert row == {
        "child_id": "teacher_1",
        "step": 4,
        "slot": 0,
        "parents": ["teacher_0"],
        "operator": "layer_gaussian",
        "parameters": [{"name": "epsilon", "value": 1.0}, {"name": "share", "value": 0.33}],
        "seed": 2**63 - 1,
        "learning_rate_scale": 1.0,
        "temperature_scale": 1.0,
        "adapter_sha256": "cd",
    }
    table = to_table("lineage", [founder_row(teacher, seed=5, adapter_sha256="ab"), row], "run")
    assert table.num_rows == 2


def test_births_inherit_from_the_better_parent_and_explore_around_it() -> None:
    better = replace(_member(), learning_rate_scale=2.0, temperature_scale=0.5)
    plan = [Replacement(victim=_member(), operator="x", parents=(better, _member()))] * 200
    still = bear(plan, {"teacher_0"}, step=3)
    assert {(child.learning_rate_scale, child.temperature_scale) for child in still} == {(2.0, 0.5)}
    children = bear(plan, {"teacher_0"}, step=3, explore_seed=0)
    drawn = Counter((child.learning_rate_scale, child.temperature_scale) for child in children)
    assert set(drawn) == {(2.0 * rate, 0.5 * temperature) for rate in (0.8, 1.2) for temperature in (0.8, 1.2)}
    assert min(drawn.values()) > 30  # 50 of 200 each, standard deviation 6
    assert bear(plan, {"teacher_0"}, step=3, explore_seed=0) == children
    assert bear(plan, {"teacher_0"}, step=3, explore_seed=1) != children


def test_empty_sides_and_foreign_ids_are_refused() -> None:
    with pytest.raises(ValueError, match="each side"):
        found(0, 3)
    with pytest.raises(ValueError, match="'alice'"):
        bear([Replacement(victim=_member(), operator="x", parents=())], {"alice"}, step=1)


def _member() -> Member:
    return found(1, 1)[0]
