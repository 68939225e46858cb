"""The model card: what it says, and that no text of a model or user gets out of its place."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from league.card import Export, fenced, inline, model_card
from league.standings import Standing
from league.types import Rating, Side

EVIL = "x = '''\n```\n# <script>alert(1)</script>\n---\nlicense: evil\n````\n\x1b[2J\u202e"


def make_export(**changes: Any) -> Export:
    standing = Standing(
        member_id="student_5",
        side=Side.STUDENT,
        rating=Rating(mu=27.125, sigma=2.0),
        bound=25.125,
        won=3,
        drawn=1,
        lost=2,
        solve_rate=0.4375,
        born=4,
        operator="svd_mix",
        parents=("student_0", "student_1"),
    )
    founders = [{"child_id": f"student_{n}", "step": 0, "operator": "founder", "parents": []} for n in (0, 1)]
    child = {"child_id": "student_5", "step": 4, "operator": "svd_mix", "parents": ["student_0", "student_1"]}
    values: dict[str, Any] = {
        "standing": standing,
        "version": 7,
        "step": 12,
        "run_id": "r1",
        "base": "Qwen/Qwen2.5-Coder-0.5B-Instruct",
        "on_hub": True,
        "fields": {"r": 8, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj"]},
        "sha256": "abc",
        "lineage": [*founders, child],
        "caution": 1.0,
        "example": {"program": EVIL, "inputs": ["(1,)"], "step": 3, "task": "deduction", "solve_rate": 0.5},
    }
    return Export(**(values | changes))


def test_the_front_matter_is_what_the_hub_reads() -> None:
    _, front, body = model_card(make_export()).split("---\n", 2)
    values = yaml.safe_load(front)
    assert values["base_model"] == "Qwen/Qwen2.5-Coder-0.5B-Instruct"
    assert values["library_name"] == "peft"
    assert values["pipeline_tag"] == "text-generation"
    assert {"lora", "student"} <= set(values["tags"])
    assert "base_model" not in yaml.safe_load(model_card(make_export(on_hub=False, base="mine")).split("---\n")[1])
    assert body.startswith("\n# student_5\n")


def test_rating_lineage_and_settings_are_told() -> None:
    card = model_card(make_export())
    assert "| 27.12 | 2.00 | 25.12 | 3 | 1 | 2 | 0.438 |" in card
    assert "| `student_5` | 4 | `svd_mix` | `student_0`, `student_1` |" in card
    assert "| `student_0` | 0 | `founder` | - |" in card
    assert "rank 8, alpha 16, on `q_proj`, `v_proj`" in card
    assert "A problem that it met" in card
    assert "A problem" not in model_card(make_export(example=None))


def test_a_hostile_program_stays_in_its_block() -> None:
    card = model_card(make_export())
    block = re.search(r"^`````text\n(.*?)^`````$", card, re.DOTALL | re.MULTILINE)
    assert block is not None
    assert "<script>" in block[1]
    assert card.count("<script>") == 1
    assert "\x1b" not in card
    assert "\u202e" not in card


@given(st.text(alphabet=st.sampled_from("`~\n\r\u2028 <|\x00\ud800a"), max_size=40))
def test_no_text_ends_its_code(text: str) -> None:
    first, *lines, last = fenced(text, "text").split("\n")
    assert first == last + "text"
    assert set(last) == {"`"}
    assert all(last not in line for line in lines)
    code = inline(text)
    assert code.startswith("`")
    assert code.endswith("`")
    assert not set("`|\n\r\u2028") & set(code[1:-1])
    (first + code).encode()


@pytest.mark.parametrize("on_hub", [True, False])
def test_the_way_to_load_is_a_program(on_hub: bool) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", model_card(make_export(on_hub=on_hub, base="a/b")), re.DOTALL)
    compile(program, "card", "exec")
    assert ("load_base('a/b')" in program) is not on_hub


def test_a_single_agents_card_speaks_of_both_roles() -> None:
    export = make_export()
    card = model_card(replace(export, standing=replace(export.standing, member_id="agent_0", side=Side.AGENT)))
    assert "poses programming problems and\nsolves them. It was trained on its own problems, by self-play" in card
    assert "its own problems: high may mean that they are easy" in card
