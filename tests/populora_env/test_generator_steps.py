"""A step's template as code that tells each change of the new variable."""

from __future__ import annotations

from populora_env.generator_drafts import STEPS
from populora_env.generator_families import Family
from populora_env.generator_steps import INT, LIST, Step, indented


def test_an_expression_is_assigned_to_the_new_variable() -> None:
    step = Step(tag="add", family=Family.ARITHMETIC, takes=INT, gives=INT, template="{x} + {k}")
    assert step.traced == "{o} = {x} + {k}"
    assert step.fields == {"k"}


def test_a_block_tells_each_change_where_it_happens() -> None:
    template = "{o} = []\nfor i in {x}:\n    if i > {k}:\n        {o}.append(i)"
    step = Step(tag="keep", family=Family.LOOPS, takes=LIST, gives=LIST, template=template, is_block=True)
    assert step.traced.split("\n") == [
        "{o} = []",
        "trace({o})",
        "for i in {x}:",
        "    if i > {k}:",
        "        {o}.append(i)",
        "        trace({o})",
    ]


def test_a_helpers_constants_are_fields_too() -> None:
    step = Step(tag="call", family=Family.HELPERS, takes=INT, gives=INT, template="g({x})", helper="x * {m}")
    assert step.fields == {"m"}


def test_every_block_tells_its_changes_and_no_expression_does() -> None:
    assert all(("trace({o})" in step.traced) == step.is_block for step in STEPS)


def test_a_block_is_indented_as_a_whole() -> None:
    assert indented("if a:\n    b = 1") == "    if a:\n        b = 1"
