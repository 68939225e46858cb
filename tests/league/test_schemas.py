"""What fits into the tables, and what becomes of hostile text."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from league.schemas import SCHEMA_VERSION, SCHEMAS, clean, empty_table, storable, to_table

RATING = {"step": 1, "match_id": 0, "member_id": "teacher_0", "mu": 25.0, "sigma": 8.0, "event": "update"}


def test_every_table_begins_with_run_id_and_names_its_version() -> None:
    assert set(SCHEMAS) == {"problems", "rollouts", "matches", "ratings", "lineage", "metrics"}
    for name in SCHEMAS:
        table = empty_table(name)
        assert table.column_names[0] == "run_id"
        assert table.schema.metadata == {b"schema_version": str(SCHEMA_VERSION).encode()}


def test_the_columns_of_the_design_are_there() -> None:
    problems = (
        "proposal_id problem_id step task teacher_id teacher_version match_id program inputs outputs n_visible message "
        "valid invalid_reason solve_rate ast_depth cyclomatic lines variables cell_id exec_ms data_source prompt "
        "ability reward_model extra_info"
    )
    rollouts = (
        "rollout_id step match_id group_id seat task role member_id version problem_id prompt prompt_ids "
        "completion_ids logprobs completion reward advantage verdict finish_reason temperature sampler"
    )
    matches = (
        "match_id step kind teacher_id teacher_version student_id student_version expected observed outcome n_problems"
    )
    ratings, lineage = (
        "step match_id member_id mu sigma event",
        "child_id step slot parents operator parameters seed learning_rate_scale temperature_scale adapter_sha256",
    )
    wanted = {"problems": problems, "rollouts": rollouts, "matches": matches, "ratings": ratings, "lineage": lineage}
    for name, columns in wanted.items():
        assert set(columns.split()) <= set(SCHEMAS[name].names), name


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("def f(x):\n    return 'é\\n'", "def f(x):\n    return 'é\\n'"),
        ("a\ud800b", r"a\ud800b"),
        ("a\0b", r"a\x00b"),
        ("\udfff\0😀", r"\udfff\x00😀"),
    ],
)
def test_storable_text(text: str, stored: str) -> None:
    assert storable(text) == stored


@given(st.text(st.characters()) | st.text(st.characters(categories=["Cs", "Cc", "Lu"])))
def test_any_text_can_be_stored_and_comes_back_as_stored(text: str) -> None:
    row = RATING | {"member_id": text}
    table = to_table("ratings", [row], "run")
    assert table.column("member_id").to_pylist() == [storable(text)]
    assert "\0" not in storable(text)
    assert storable(storable(text)) == storable(text)


def test_clean_reaches_every_depth_and_leaves_numbers_alone() -> None:
    value = {"a": ["\ud800", {"b": ("\0", 1)}], "ids": [1, 2], "none": None}
    assert clean(value) == {"a": [r"\ud800", {"b": [r"\x00", 1]}], "ids": [1, 2], "none": None}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": 1}, "no column"),
        ({"mu": None}, "must not be empty"),
        ({"mu": "high"}, "do not fit"),
        ({"step": 2**40}, "do not fit"),
    ],
)
def test_rows_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        to_table("ratings", [RATING | change], "run")


def test_unknown_tables_are_refused() -> None:
    with pytest.raises(ValueError, match="must be one of"):
        to_table("secrets", [], "run")


def test_seeds_below_2_to_the_63_and_missing_optionals_fit() -> None:
    row = {
        "child_id": "teacher_0",
        "step": 0,
        "slot": 0,
        "parents": [],
        "operator": "founder",
        "parameters": [{"name": "epsilon", "value": 0.1}],
        "seed": 2**63 - 1,
        "learning_rate_scale": 1.0,
        "temperature_scale": 1.0,
        "adapter_sha256": "0",
    }
    table = to_table("lineage", [row], "run")
    assert table.to_pylist() == [row | {"run_id": "run"}]
    assert isinstance(table, pa.Table)
