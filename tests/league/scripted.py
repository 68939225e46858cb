"""Stand-ins for tests: a backend of scripted players, and a tiny base of random weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models
from tokenizers.pre_tokenizers import ByteLevel
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from populora_agents.bases import Base
from populora_agents.config import NANO
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


def make_base(**settings: Any) -> Base:
    """Return a tiny base of random weights over bytes, with nano's preset and room for our prompts."""
    shape = {
        "vocab_size": 258,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": True,
        "bos_token_id": None,
        "eos_token_id": 256,
        "pad_token_id": 257,
        "populora_preset": "nano",
    }
    model = LlamaForCausalLM(LlamaConfig(**(shape | settings))).eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.1)
    raw = Tokenizer(models.BPE(vocab={byte: n for n, byte in enumerate(sorted(ByteLevel.alphabet()))}, merges=[]))
    raw.pre_tokenizer = ByteLevel(add_prefix_space=False, use_regex=False)
    raw.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="<|end|>", pad_token="<|pad|>")
    return Base(model=model, tokenizer=tokenizer, preset=NANO, name="tiny")


def save_base(folder: Path) -> Path:
    """Write the tiny base as a model folder."""
    base = make_base()
    base.model.save_pretrained(folder)
    base.tokenizer.save_pretrained(folder)
    return folder
