"""Data in a script element cannot get out of it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from league.report.embedding import embedded, script_hash


@given(st.recursive(st.text(st.characters(codec="utf-8")), lambda inner: st.lists(inner, max_size=3), max_leaves=5))
def test_nothing_closes_the_element_and_nothing_is_lost(value: object) -> None:
    text = embedded(value)
    assert not {"<", ">", "&", "'"} & set(text)
    assert json.loads(text) == value


def test_attacks_are_spelt_out() -> None:
    assert embedded("</script><!--<script>") == '"\\u003c/script\\u003e\\u003c!--\\u003cscript\\u003e"'


def test_numbers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        embedded(float("nan"))


def test_a_hash_is_that_of_the_policys_standard() -> None:
    # `echo -n "alert('Hello, world.');" | openssl sha256 -binary | openssl base64`, as the standard has it.
    assert script_hash("alert('Hello, world.');") == "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng="
