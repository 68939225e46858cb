"""The vLLM backend: an engine in this process, one batch over all members; CPU or CUDA.

Owns how the engine is started, spoken to and stopped. Which adapters are loaded is in `serving`, how tokens are drawn
in `vllm_sampler`. Importing this module does not import vLLM, which takes seconds and reads its environment then.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from populora_agents.backends import vllm_sampler_names, vllm_worker
from populora_agents.backends.reading import Reading, Sampled, SlotTable
from populora_agents.backends.serving import ServingBackend
from populora_agents.backends.shelf import Published
from populora_agents.backends.vllm_config import EngineConfig
from populora_agents.bases import Base
from populora_agents.stack import AdapterStack
from populora_agents.types import EngineError

_LOG = logging.getLogger(__name__)

ENVIRONMENT: Mapping[str, str] = {
    # In this process: an engine on a CPU shares the cores with the trainer, and never at the same time.
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    # The other model runner takes processors of another kind, and would not draw by our seeds.
    "VLLM_USE_V2_MODEL_RUNNER": "0",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
}
"""Set before vLLM is loaded, where the environment does not say otherwise."""

_GPU_FRACTION, _CPU_FRACTION = 0.4, 0.05
_CPU_BATCHED_TOKENS = 1024
_LONGEST_REASON = 300
_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Largest ranks that vLLM can be told."""


class VllmBackend(ServingBackend):
    """Members through vLLM; implements `populora_agents.types.Backend`.

    Draws are keyed by the request's seed, as those of the torch backend; logits differ from torch's in their last
    digits, and where a draw falls between two tokens by as little, so may the token.
    """

    name = "vllm"

    def __init__(self, base: Base, stack: AdapterStack | None, slots: SlotTable, config: EngineConfig) -> None:
        """Start an engine and serve the members that `slots` names; see `ServingBackend`.

        Raises:
            ValueError: vLLM is not installed, or the settings do not fit the machine.
            EngineError: The engine does not start, or computes another base.
        """
        engine = VllmEngine(base, stack, config)
        try:
            super().__init__(base, stack, slots, engine, max_slots=config.max_slots)
        except BaseException:
            engine.close()
            raise


class VllmEngine:
    """Implements `serving.Engine`."""

    def __init__(self, base: Base, stack: AdapterStack | None, config: EngineConfig) -> None:
        """Start vLLM with the files that `base` was read from."""
        if importlib.util.find_spec("vllm") is None:
            raise ValueError("vLLM is not installed; docs/serving.md says how")
        on_gpu = torch.cuda.is_available()
        if config.sleep and not on_gpu:
            raise ValueError("an engine on a CPU cannot sleep, it shares the trainer's memory")
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        self._eos_ids = sorted(base.eos_ids)
        self._sleeps = config.sleep
        self._requests: dict[int, Any] = {}
        with _reported("vLLM does not start"), _torch_threads_kept(), _llvmlite_hidden():
            from vllm import LLM

            self._vllm: Any = LLM(**_arguments(base, stack, config, on_gpu=on_gpu))

    def load(self, adapter: Published) -> None:
        """Take an adapter in, and count what it changes; see `Engine`."""
        from vllm.lora.request import LoRARequest

        request = LoRARequest(adapter.name, adapter.number, str(adapter.folder))
        with self._awake(f"vLLM does not load {adapter.version}"):
            if not self._vllm.llm_engine.add_lora(request):
                raise EngineError(f"vLLM does not load {adapter.version}: it holds number {adapter.number} already")
            counts = self._vllm.collective_rpc("count_bound_modules", args=(adapter.number,))
        if set(counts) != {adapter.modules}:
            raise EngineError(
                f"vLLM binds {min(counts)} modules of {adapter.version}, the adapter changes {adapter.modules}"
            )
        self._requests[adapter.number] = request

    def drop(self, adapter: Published) -> None:
        """Let an adapter go; see `Engine`."""
        self._requests.pop(adapter.number, None)
        with _reported(f"vLLM does not drop {adapter.version}"):
            self._vllm.llm_engine.remove_lora(adapter.number)

    def complete(self, readings: Sequence[Reading], adapters: Sequence[Published | None]) -> list[Sampled]:
        """Complete the requests in one batch; see `Engine`."""
        from vllm import SamplingParams

        params = [
            SamplingParams(
                temperature=0.0,
                max_tokens=reading.limit,
                logprobs=0,
                stop=list(reading.request.stop),
                stop_token_ids=self._eos_ids,
                extra_args=vllm_sampler_names.sampling_arguments(reading.request),
            )
            for reading in readings
        ]
        with self._awake("vLLM failed"):
            answers = self._vllm.generate(
                [{"prompt_token_ids": list(reading.prompt_ids)} for reading in readings],
                params,
                use_tqdm=False,
                lora_request=[adapter and self._requests[adapter.number] for adapter in adapters],
            )
        return [_sampled(answer.outputs[0]) for answer in answers]

    def close(self) -> None:
        """Stop the engine and give its memory back."""
        self._requests.clear()
        with _reported("vLLM does not stop"):
            self._vllm.llm_engine.engine_core.shutdown()
            del self._vllm
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    @contextmanager
    def _awake(self, what: str) -> Iterator[None]:
        """Have the engine hold its memory inside, where it sleeps otherwise."""
        with _reported(what):
            if self._sleeps:
                self._vllm.wake_up()
            yield
            if self._sleeps:
                self._vllm.sleep(level=1)


def _arguments(base: Base, stack: AdapterStack | None, config: EngineConfig, *, on_gpu: bool) -> dict[str, Any]:
    """Return what `vllm.LLM` is made with."""
    dtype = str(base.model.dtype).removeprefix("torch.") if config.dtype == "auto" else config.dtype
    arguments: dict[str, Any] = {
        "model": base.model.name_or_path,
        "dtype": dtype,
        "max_model_len": base.context_tokens,
        "tensor_parallel_size": config.tensor_parallel_size,
        "enable_prefix_caching": True,
        "logprobs_mode": vllm_sampler_names.LOGPROBS_MODE,
        "logits_processors": [vllm_sampler_names.PATH],
        "worker_extension_cls": vllm_worker.PATH,
        "enable_sleep_mode": config.sleep,
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
        **device_arguments(config.memory_fraction, on_gpu=on_gpu),
    }
    if stack is not None:
        arguments |= {
            "enable_lora": True,
            "max_loras": config.max_slots,
            "max_cpu_loras": config.max_slots,
            "max_lora_rank": max_lora_rank(stack.config.lora_rank),
        }
    return arguments


def device_arguments(memory_fraction: float | None, *, on_gpu: bool) -> dict[str, int | float | bool]:
    """Return the engine's arguments that depend on where it runs; `memory_fraction` as in `EngineConfig`."""
    if on_gpu:
        return {"gpu_memory_utilization": memory_fraction or _GPU_FRACTION}
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "kv_cache_memory_bytes": int((memory_fraction or _CPU_FRACTION) * memory_bytes),
        # On a CPU vLLM (0.32) copies the factors once a token of a prompt: this many copies at a time.
        "max_num_batched_tokens": _CPU_BATCHED_TOKENS,
        # Compiling takes longer than it saves in most runs.
        "enforce_eager": True,
    }


def max_lora_rank(lora_rank: int) -> int:
    """Return the least of vLLM's largest ranks that holds `lora_rank`.

    Raises:
        ValueError: There is none.
    """
    for rank in _RANKS:
        if lora_rank <= rank:
            return rank
    raise ValueError(f"vLLM serves ranks up to {_RANKS[-1]}, got {lora_rank!r}")


def _sampled(output: Any) -> Sampled:
    """Return tokens, log-probabilities and finish reason of one of vLLM's outputs."""
    tokens = list(output.token_ids)
    if output.finish_reason not in ("stop", "length") or len(output.logprobs) != len(tokens):
        raise EngineError(f"vLLM gave an answer up: finish reason {output.finish_reason!r}, {len(tokens)} tokens")
    logprobs = [found[token].logprob for token, found in zip(tokens, output.logprobs, strict=True)]
    return tokens, logprobs, output.finish_reason


@contextmanager
def _llvmlite_hidden() -> Iterator[None]:
    """Keep a module that numba loads out of sight: vLLM 0.32 looks at all values of all modules, and trips over it."""
    name = "llvmlite.binding.ffi"
    module = sys.modules.pop(name, None)
    try:
        yield
    finally:
        if module is not None:
            sys.modules[name] = module


@contextmanager
def _reported(what: str) -> Iterator[None]:
    """Turn whatever vLLM raises into one line; the one place that does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            yield
    except EngineError:
        raise
    except Exception as error:
        _LOG.debug("%s", what, exc_info=True)
        raise EngineError(f"{what}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    text = " ".join(str(error).split()) or "no reason given"
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or "out of memory" in text.lower():
        return "out of memory; give it more (--vllm-memory) or fewer slots (--vllm-slots)"
    return f"{type(error).__name__}: {text}"[:_LONGEST_REASON]


@contextmanager
def _torch_threads_kept() -> Iterator[None]:
    """Give torch its threads, and the way to set them, back after vLLM has started."""
    threads, set_threads = torch.get_num_threads(), torch.set_num_threads
    try:
        yield
    finally:
        torch.set_num_threads = set_threads
        torch.set_num_threads(threads)
