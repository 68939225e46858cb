"""The voice of a base, or of one adapter on it, for measurements: texts that may be begun for the player.

Owns the way from observations to texts. Unlike a backend it can put the first tokens into the player's mouth, which
forces an answer to be worked, or not to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from populora_agents.backends.decoding import Decoder, Row
from populora_agents.bases import Base
from populora_agents.lora import load_adapter
from populora_agents.prompting import PromptEncoder
from populora_agents.routing import BARE
from populora_agents.stack import AdapterStack
from populora_env.types import Observation

_ROWS: Final = 256
"""Rows decoded at once."""


class Speaker:
    """Turns observations into texts; implements `suites.Speak`."""

    def __init__(self, base: Base, adapter: Path | None, *, seed: int) -> None:
        """Speak as the bare base, or as the adapter in a folder.

        Raises:
            ValueError: The adapter does not fit the base.
            OSError: Its folder can't be read.
        """
        stack = None
        if adapter is not None:
            factors, config = load_adapter(adapter)
            stack = AdapterStack(base.model, config, slots=1)
            stack.load(0, factors)
        self._slot = BARE if stack is None else 0
        self._tokenizer = base.tokenizer
        self._eos_ids = base.eos_ids
        self._encoder = PromptEncoder(base.tokenizer)
        self._decoder = Decoder(base.model, stack, base.eos_ids)
        self._seed = seed

    def __call__(
        self, observations: Sequence[Observation], temperature: float, max_new_tokens: int, begin: str = ""
    ) -> list[str]:
        """See `suites.Speak`; the same seed gives the same texts."""
        said = tuple(self._tokenizer(begin).input_ids) if begin else ()
        rows = [
            Row(
                place=place,
                slot=self._slot,
                prompt_ids=(*self._encoder.encode(observation.messages), *said),
                limit=max(1, max_new_tokens - len(said)),
                temperature=temperature,
                top_p=1.0,
                seed=self._seed * len(observations) + place,
            )
            for place, observation in enumerate(observations)
        ]
        rows.sort(key=lambda row: (len(row.prompt_ids), row.prompt_ids, row.place))
        for start in range(0, len(rows), _ROWS):
            self._decoder.run(rows[start : start + _ROWS])
        rows.sort(key=lambda row: row.place)
        return [begin + self._text(row) for row in rows]

    def _text(self, row: Row) -> str:
        tokens = [token for token in row.tokens if token not in self._eos_ids]
        return str(self._tokenizer.decode(tokens, clean_up_tokenization_spaces=False))
