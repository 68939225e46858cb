"""Stand-ins for tests: a backend of scripted players, and a tiny base of random weights."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from populora_agents.types import Completion, Request
from populora_env.config import GameConfig
from populora_env.seats import GeneratorProposer, GuessingSolver
from populora_env.types import Observation, Role, Task


class ScriptedBackend:
    """Answers compact prompts with well-formed text, every fifth one with hostile junk; keyed by the request's seed."""

    name = "scripted"

    def __init__(self, config: GameConfig, *, junk_every: int = 5) -> None:
        """Play by these rules."""
        self.config = config
        self.junk_every = junk_every
        self.batches: list[list[Request]] = []

    def prompt_ids(self, messages: Sequence[Any]) -> tuple[int, ...]:
        """Return the UTF-8 bytes of the prompt."""
        return tuple("".join(message.content for message in messages).encode())

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete the requests."""
        self.batches.append(list(requests))
        return [self._complete(request) for request in requests]

    def close(self) -> None:
        """Hold nothing."""

    def _complete(self, request: Request) -> Completion:
        text = "\x1b[2J\0\ud800 junk" if request.seed % self.junk_every == 0 else self._play(request)
        token_ids = (*text.encode("utf-8", "replace")[: request.max_new_tokens - 1], 256)
        return Completion(
            request=request,
            prompt_ids=self.prompt_ids(request.messages),
            token_ids=token_ids,
            logprobs=tuple(-0.5 for _ in token_ids),
            text=text,
            finish_reason="stop",
        )

    def _play(self, request: Request) -> str:
        prompt = request.messages[0].content
        mark = prompt.split("\n", 1)[0].strip("<>")
        proposes = mark.startswith("propose ")
        observation = Observation(
            role=Role.PROPOSER if proposes else Role.SOLVER,
            task=Task(mark.removeprefix("propose ")),
            prompt=prompt,
            messages=request.messages,
        )
        player = GeneratorProposer if proposes else GuessingSolver
        return player(self.config, request.seed)(observation)


def no_threads_left(before: int) -> bool:
    """Return whether no thread was left behind."""
    return threading.active_count() <= before
