"""Our draws inside vLLM: the same tokens and log-probabilities as `populora_agents.sampling`, whatever the batch.

A logits processor of vLLM's first model runner, loaded into the engine. vLLM's own draws do not do: on a CPU it has no
seeds of requests (it fails there once prompts are read in parts), and where `top_p` cuts, it reports the
log-probability of what is left, while a trainer needs that of the whole distribution. Here the token is chosen while
logits are processed: it keeps its log-probability as its only finite logit, so that a greedy engine in the mode
`processed_logits` samples it and reports that number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from vllm.v1.sample.logits_processor import LogitsProcessor
from vllm.v1.sample.logits_processor.builtin import process_dict_updates

from populora_agents.backends.vllm_sampler_names import SEED, TEMPERATURE, TOP_P
from populora_agents.sampling import choose_tokens, uniforms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from vllm import SamplingParams
    from vllm.config import VllmConfig
    from vllm.v1.sample.logits_processor import BatchUpdate


@dataclass(frozen=True, slots=True)
class _Draws:
    """How one request draws."""

    uniforms: NDArray[np.float64]
    temperature: float
    top_p: float
    sampled: list[int]
    """vLLM's own list of the tokens so far, which grows."""


class SeededDraws(LogitsProcessor):  # type: ignore[misc]
    """Chooses every request's next token by its seed, temperature and top_p."""

    def __init__(self, vllm_config: VllmConfig, device: torch.device, is_pin_memory: bool) -> None:
        """Take where logits lie; see vLLM's `LogitsProcessor`."""
        del vllm_config, is_pin_memory
        self._device = device
        self._draws: dict[int, _Draws] = {}

    def is_argmax_invariant(self) -> bool:
        """It decides which token is the most likely one."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Follow the requests to their rows of the batch."""
        process_dict_updates(self._draws, batch_update, _read)

    def apply(self, logits: Tensor) -> Tensor:
        """Leave of every row, float [R, V], the chosen token alone, with its log-probability."""
        rows = sorted(self._draws)
        if not rows:
            return logits
        chosen = [self._draws[row] for row in rows]
        # A prompt that is still being read draws too; nobody looks at it.
        draws = [one.uniforms[min(len(one.sampled), len(one.uniforms) - 1)] for one in chosen]
        own = logits if len(rows) == len(logits) else logits[torch.tensor(rows, device=logits.device)]
        top_p = [one.top_p for one in chosen]
        tokens, logprobs = choose_tokens(
            own,
            self._tensor([one.temperature for one in chosen]),
            self._tensor(draws, torch.float64),
            self._tensor(top_p) if min(top_p) < 1 else None,
        )
        left = torch.full_like(own, -float("inf")).scatter_(1, tokens[:, None], logprobs[:, None].to(own.dtype))
        if own is logits:
            return logits.copy_(left)
        logits[torch.tensor(rows, device=logits.device)] = left
        return logits

    def _tensor(self, values: list[float], dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.tensor(values, dtype=dtype, device=self._device)


def _read(params: SamplingParams, prompt: list[int] | None, sampled: list[int]) -> _Draws | None:
    """Return how a request draws; None leaves it to vLLM."""
    del prompt
    arguments: Mapping[str, Any] = params.extra_args or {}
    if SEED not in arguments:
        return None
    return _Draws(
        uniforms(int(arguments[SEED]), params.max_tokens or 1),
        float(arguments[TEMPERATURE]),
        float(arguments[TOP_P]),
        sampled,
    )
