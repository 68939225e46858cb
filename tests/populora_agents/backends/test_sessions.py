"""Reading prompts; the sessions themselves are compared in `test_llama` and `test_torch`."""

from __future__ import annotations

from populora_agents.backends.sessions import cache_argument, left_padded


def test_prompts_are_padded_on_the_left() -> None:
    ids, mask = left_padded([(5,), (6, 7, 8)])
    assert ids.tolist() == [[0, 0, 5], [6, 7, 8]]
    assert mask.tolist() == [[0, 0, 1], [1, 1, 1]]


def test_the_cache_is_called_as_the_model_calls_it() -> None:
    def old(input_ids: int, past_key_values: int) -> None: ...

    def new(input_ids: int, cache: int) -> None: ...

    assert (cache_argument(old), cache_argument(new)) == ("past_key_values", "cache")
