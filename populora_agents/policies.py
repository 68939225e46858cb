"""Policies that speak through a backend and fit `populora_env.types.Policy`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from populora_agents.types import AdapterVersion, Backend, Request
from populora_env.types import Observation, Role

DEFAULT_MAX_NEW_TOKENS: Mapping[Role, int] = MappingProxyType({Role.PROPOSER: 96, Role.SOLVER: 64})
"""nano's limits."""


class LoraPolicy:
    """One adapter (or the bare base) in a seat.

    The n-th call draws from a stream keyed by (seed, n), so that a policy made again says the same again.
    """

    def __init__(
        self,
        backend: Backend,
        adapter: AdapterVersion | None,
        *,
        max_new_tokens: Mapping[Role, int] = DEFAULT_MAX_NEW_TOKENS,
        temperature: float = 1.0,
        seed: int = 0,
    ):
        """Speak as `adapter`; None is the bare base, temperature 0 is greedy."""
        self._backend = backend
        self._adapter = adapter
        self._max_new_tokens = max_new_tokens
        self._temperature = temperature
        self._seed = seed
        self._calls = 0

    def __call__(self, observation: Observation) -> str:
        """Return what the model writes."""
        state = np.random.SeedSequence((self._seed, self._calls)).generate_state(2, np.uint64)
        self._calls += 1
        request = Request(
            adapter=self._adapter,
            messages=observation.messages,
            max_new_tokens=self._max_new_tokens[observation.role],
            temperature=self._temperature,
            seed=int(state[0]),
        )
        return self._backend.generate([request])[0].text
