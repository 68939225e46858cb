"""Whether an engine answers with the adapter it was asked for: what it sampled, scored by the trainer's own model.

Owns what is asked, and how far apart the two may lie. The measure is taken from the bare base, which both know for
sure: an adapter may differ by a few times what the base differs by, so that one rule serves float32 and bfloat16. What
it cannot tell: an adapter whose effect on the answers is smaller than that from the base itself, such as one whose B
is zero, which rightly answers as the base does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from populora_agents.backends.reading import Reading, Sampled
from populora_agents.bases import Base
from populora_agents.routing import BARE
from populora_agents.stack import AdapterStack
from populora_agents.types import AdapterVersion, EngineError, Request
from populora_env.types import Message

TEXT = "def f(a, b):\n    total = [x * 3 for x in a if x > b]\n    return sorted(total)[:2]\n\nprint(f([4, 1, 7], 2))\n"
_ROWS, _TOKENS = 8, 4
_TEMPERATURE = 2.0
"""Not 1, so that an engine that draws in its own way is found out."""
_TIMES = 8.0
"""An adapter's gap may be this many times the base's: its products round too."""
_FLOOR = 1e-4
"""Nats; no gap below is suspicious."""
_BASE_GAP = 0.1
"""Nats; a bare base that is farther off than this is another model."""


class Canary:
    """Asks the same few questions of every version, and compares."""

    def __init__(self, base: Base, stack: AdapterStack | None) -> None:
        """Take the model, and the stack that lies on it."""
        self._model = base.model
        self._stack = stack
        ids: Sequence[int] = base.tokenizer(TEXT, add_special_tokens=False).input_ids
        self._prompt = tuple(ids[: (base.context_tokens or len(ids) + _TOKENS) - _TOKENS])
        self._tolerance: float | None = None

    def readings(self, version: AdapterVersion | None) -> list[Reading]:
        """Return what an engine shall complete."""
        message = Message(role="user", content=TEXT)
        return [
            Reading(
                request=Request(
                    adapter=version, messages=(message,), max_new_tokens=_TOKENS, temperature=_TEMPERATURE, seed=seed
                ),
                prompt_ids=self._prompt,
                limit=_TOKENS,
            )
            for seed in range(_ROWS)
        ]

    def measure_base(self, answers: Sequence[Sampled]) -> None:
        """Take what the engine answers as the bare base.

        Raises:
            EngineError: It is another model, or draws otherwise.
        """
        gap = self._gap(answers, BARE)
        if not gap <= _BASE_GAP:
            raise EngineError(
                "the engine's base is not the trainer's, or it was not started as docs/serving.md says: "
                f"log-probabilities differ by {gap:.3g} nats on average"
            )
        self._tolerance = max(_FLOOR, _TIMES * gap)

    def check(self, version: AdapterVersion, slot: int, answers: Sequence[Sampled]) -> None:
        """Compare what the engine answers as a version with what its slot says.

        Raises:
            EngineError: The engine answers with something else.
            ValueError: The bare base was not measured before.
        """
        if self._tolerance is None:
            raise ValueError("`measure_base` must come before `check`")
        gap = self._gap(answers, slot)
        if not gap <= self._tolerance:
            what = "the bare base" if self._gap(answers, BARE) <= self._tolerance else "another adapter"
            raise EngineError(
                f"the engine does not answer as {version}, but as {what}: its log-probabilities are off by "
                f"{gap:.3g} nats on average, {self._tolerance:.3g} are allowed"
            )

    @torch.no_grad()
    def _gap(self, answers: Sequence[Sampled], slot: int) -> float:
        """Return the mean distance from a slot's log-probabilities in nats, over all tokens sampled."""
        longest = max(len(tokens) for tokens, _, _ in answers)
        rows = [[*self._prompt, *tokens, *[0] * (longest - len(tokens))] for tokens, _, _ in answers]
        logits = self._logits(torch.tensor(rows, device=self._model.device), slot)[:, len(self._prompt) - 1 : -1]
        spread = (logits.float() / _TEMPERATURE).log_softmax(dim=-1)
        gaps: list[float] = []
        for row, (tokens, logprobs, _) in zip(spread, answers, strict=True):
            index = torch.tensor([tokens], device=row.device).mT
            expected = row[: len(tokens)].gather(1, index).squeeze(1).double().cpu().numpy()
            gaps += np.abs(np.array(logprobs) - expected).tolist()
        return float(np.mean(gaps))

    def _logits(self, ids: Tensor, slot: int) -> Tensor:
        if self._stack is None:
            logits: Tensor = self._model(input_ids=ids, use_cache=False).logits
            return logits
        with self._stack.route([slot] * len(ids)):
            logits = self._model(input_ids=ids, use_cache=False).logits
        return logits
