"""Policies that speak through a backend and fit `populora_env.types.Policy`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from populora_agents.config import NANO
from populora_agents.types import AdapterVersion, Backend, Request
from populora_env.types import Observation, Role

DEFAULT_MAX_NEW_TOKENS: Mapping[Role, int] = MappingProxyType(
    {Role.PROPOSER: NANO.max_new_tokens_proposal, Role.SOLVER: NANO.max_new_tokens_answer}
)
"""nano's limits, in tokens; a larger base needs more (its preset says how many)."""


class LoraPolicy:
    """One adapter (or the bare base) in a seat of the environment: it reads an observation and writes an action.

    Any backend will do, any seat, either role; for nano as it ships, say:

        base = load_base("nano")
        solver = LoraPolicy(TorchBackend(base, None, {}), None, temperature=0.0)
        action = solver(observation)

    The n-th call draws from a stream keyed by (seed, n), so that a policy made again says the same again. Each call is
    one forward of its own: whoever plays many rounds at once calls the backend with all their requests instead.
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
        """Speak as `adapter`.

        Args:
            backend: Who completes prompts; it must hold the adapter at that version when the policy is called.
            adapter: None is the bare base.
            max_new_tokens: Longest action of each role.
            temperature: >= 0; 0 is greedy.
            seed: >= 0; two policies of one seed and adapter say the same.
        """
        self._backend = backend
        self._adapter = adapter
        self._max_new_tokens = max_new_tokens
        self._temperature = temperature
        self._seed = seed
        self._calls = 0

    def __call__(self, observation: Observation) -> str:
        """Return what the model writes.

        Raises:
            ValueError: The backend does not hold the adapter, or the prompt fills the base's context.
        """
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
