"""What a caller must tell vLLM so that `vllm_sampler` draws; apart from it, since that one imports vLLM."""

from __future__ import annotations

from populora_agents.types import Request

PATH = "populora_agents.backends.vllm_sampler:SeededDraws"
"""What vLLM is told to load."""
LOGPROBS_MODE = "processed_logits"
SEED, TEMPERATURE, TOP_P = "populora_seed", "populora_temperature", "populora_top_p"


def sampling_arguments(request: Request) -> dict[str, str | float]:
    """Return what the engine must be told beside a request (`extra_args`, `vllm_xargs` over HTTP)."""
    # Text, since JSON's numbers need not hold 64 bits.
    return {SEED: str(request.seed), TEMPERATURE: request.temperature, TOP_P: request.top_p}
