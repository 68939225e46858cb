"""A round as an episode of verifiers: real interception, a scripted model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from typing import Any

import pytest

vf = pytest.importorskip("verifiers.v1", reason="needs verifiers, in an environment of its own (docs/bridges.md)")

from verifiers.v1.utils.loaders import load_environment  # noqa: E402

from populora_env.bridges.verifiers import RoundEnvConfig  # noqa: E402

PLUGIN = """
from populora_env.bridges.verifiers import ProposalTaskset, RoundEnv
__all__ = ["ProposalTaskset", "RoundEnv"]
"""
HARNESS = """
import httpx
import verifiers.v1 as vf
__all__ = ["Asking", "AskingConfig"]

class AskingConfig(vf.HarnessConfig):
    pass

class Asking(vf.Harness[AskingConfig]):
    '''Asks once, in this process.'''
    APPENDS_SYSTEM_PROMPT, EXECUTES_CODE, NEEDS_CONTAINER = True, False, False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data):
        system, prompt = self.resolve_prompt(data)
        messages = [{"role": "system", "content": system}] if system else []
        body = {"model": ctx.model, "messages": [*messages, {"role": "user", "content": prompt}]}
        async with httpx.AsyncClient() as client:
            reply = await client.post(
                endpoint.rstrip("/") + "/chat/completions",
                json=body, headers={"Authorization": f"Bearer {secret}"}, timeout=60,
            )
        return vf.ProgramResult(0 if reply.is_success else 1, "", reply.text)
"""
ONE = "```python\ndef f(a):\n    return a + 1\n```\n```input\n(1,)\n```"


class Model(BaseHTTPRequestHandler):
    """Proposes what it is told to; every second answer is right."""

    proposal = ONE
    answers: Any = cycle(["```output\n2\n```", "```output\n3\n```"])

    def do_POST(self) -> None:
        """Answer one request."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = body["messages"][-1]["content"]
        text = self.proposal if asked.startswith("Invent") else next(self.answers)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reply = {
            "id": "0",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()


@pytest.fixture
def environment(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "populora_v1.py").write_text(PLUGIN)
    (tmp_path / "asking.py").write_text(HARNESS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("SOME_KEY", "x")
    seat = {"harness": {"id": "asking"}, "runtime": {"type": "subprocess"}}
    taskset = {"id": "populora-v1", "n": 3}
    return load_environment(RoundEnvConfig(taskset=taskset, proposer=seat, solver=seat, solver_seats=2))


def play(environment: Any, endpoint: str) -> Any:
    async def episode() -> Any:
        client = vf.EvalClientConfig(base_url=endpoint, api_key_var="SOME_KEY")
        task = next(iter(environment.taskset))
        async with environment.serving():
            return await environment.run_episode(task, vf.ModelContext(model="m", client=client))

    return asyncio.run(episode())


def test_both_seats_are_paid_as_the_game_pays(environment: Any, endpoint: str) -> None:
    episode = play(environment, endpoint)
    assert episode.ok, episode.errors
    proposer, *solvers = episode.traces
    assert proposer.agent.name == "proposer"
    assert (proposer.reward, proposer.metrics["valid"], proposer.metrics["solve_rate"]) == (0.5, 1.0, 0.5)
    assert sorted(trace.reward for trace in solvers) == [-0.5, 1.0]


def test_after_an_invalid_proposal_nobody_is_asked(
    environment: Any, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Model, "proposal", "I would rather not.")
    episode = play(environment, endpoint)
    (proposer,) = episode.traces
    assert (proposer.reward, proposer.metrics["valid"]) == (-1.0, 0.0)


def test_tasks_are_fixed_by_their_seeds(environment: Any) -> None:
    first, again = list(environment.taskset), list(environment.taskset)
    assert [task.data for task in first] == [task.data for task in again]
    assert [task.data.kind for task in first] == ["deduction", "abduction", "induction"]
    assert len({task.data.prompt for task in first}) == 3
