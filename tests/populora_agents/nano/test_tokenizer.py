"""nano's tokenizer: any text makes the round trip, our programs are short."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from populora_agents.nano.corpus import solver_example
from populora_agents.nano.tokenizer import END, PAD, PIECES, build_tokenizer
from populora_env.types import Task

TOKENIZER = build_tokenizer()


@given(st.text(max_size=200))
def test_any_text_makes_the_round_trip(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER(text).input_ids) == text


@pytest.mark.parametrize("piece", PIECES)
def test_a_piece_is_one_token(piece: str) -> None:
    assert len(TOKENIZER(piece).input_ids) == 1


def test_the_vocabulary_is_small() -> None:
    assert len(TOKENIZER) <= 1024


def test_special_tokens_cannot_be_written_by_a_player() -> None:
    special = {TOKENIZER.eos_token_id, TOKENIZER.pad_token_id}
    assert not special & set(TOKENIZER(f"a {END} b {PAD}").input_ids)


def test_a_small_number_is_one_token_and_a_letter_of_a_string_too() -> None:
    assert TOKENIZER.tokenize("-12") == ["-12"]
    assert TOKENIZER.tokenize("99") == ["99"]
    assert TOKENIZER.tokenize("-128") == ["-12", "8"]
    assert TOKENIZER.tokenize("'abca'") == ["'", "a", "b", "c", "a", "'"]


def test_a_line_of_a_trace_is_its_name_and_its_value() -> None:
    assert len(TOKENIZER("\nb = 12").input_ids) == 2


def test_a_median_deduction_problem_is_at_most_80_tokens() -> None:
    rng = np.random.default_rng(0)
    texts = [solver_example(rng, Task.DEDUCTION) for _ in range(200)]
    lengths = [len(TOKENIZER(text.prompt).input_ids) + len(TOKENIZER(text.completion).input_ids) for text in texts]
    assert np.median(lengths) <= 80


def test_the_saved_folder_loads_as_it_lies(tmp_path: Path) -> None:
    TOKENIZER.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert isinstance(loaded, PreTrainedTokenizerFast)
    text = f"<answer>\n{END} é漢"
    assert loaded(text).input_ids == TOKENIZER(text).input_ids
