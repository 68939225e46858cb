"""From messages to token ids, the same ids for the sampler and for the trainer.

Owns the guard that what players wrote is never read as control tokens: contents are spelled out, only the chat
template's own control tokens count. What it cannot stop: added tokens that the tokenizer does not mark as special
(`<tool_call>` of Qwen) stay single tokens, and a model may of course be talked to in any words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from transformers import PreTrainedTokenizerBase

from populora_env.types import Message


class PromptEncoder:
    """Turns messages into ids by the chat template, or joins their contents where the tokenizer has none."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase):
        """Find the special tokens that contents must not contain."""
        self._tokenizer = tokenizer
        special = {number: str(token) for number, token in tokenizer.added_tokens_decoder.items() if token.special}
        self._special_ids = frozenset(special) | frozenset(tokenizer.all_special_ids)
        texts = sorted({*special.values(), *tokenizer.all_special_tokens}, key=len, reverse=True)
        self._special = re.compile("|".join(re.escape(text) for text in texts)) if texts else None
        prefix: list[int] = tokenizer("").input_ids
        if prefix and prefix[-1] == tokenizer.eos_token_id and prefix[-1] != tokenizer.bos_token_id:
            prefix = prefix[:-1]
        self._prefix = tuple(prefix)

    def encode(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Return the ids of the prompt, up to where the answer begins.

        Raises:
            ValueError: There is nothing in the prompt.
        """
        if self._tokenizer.chat_template is None:
            ids = (*self._prefix, *self._content("".join(message.content for message in messages)))
        else:
            ids = self._chat(messages)
        if not ids:
            raise ValueError("`messages` hold no text, a prompt needs at least one token")
        return ids

    def _chat(self, messages: Sequence[Message]) -> tuple[int, ...]:
        contents = [message.content for message in messages]
        if not any(self._hostile(content) for content in contents):
            return self._markup(self._render(messages, contents))
        # The template is rendered around marks that stand for the contents, so that only its own text is markup.
        mark = self._fresh_mark(contents)
        rendered = self._render(messages, [f"{mark}{number}:" for number in range(len(contents))])
        ids: list[int] = []
        for number, part in enumerate(re.split(f"{mark}([0-9]+):", rendered)):
            ids += self._markup(part) if number % 2 == 0 else self._content(contents[int(part)])
        return tuple(ids)

    def _render(self, messages: Sequence[Message], contents: Sequence[str]) -> str:
        chat = [{"role": message.role, "content": content} for message, content in zip(messages, contents, strict=True)]
        return str(self._tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False))

    def _hostile(self, content: str) -> bool:
        return self._special is not None and self._special.search(content) is not None

    @staticmethod
    def _fresh_mark(contents: Sequence[str]) -> str:
        mark = "CONTENT"
        while any(mark in content for content in contents):
            mark += "X"
        return mark

    def _markup(self, text: str) -> tuple[int, ...]:
        ids = self._tokenizer(text, add_special_tokens=False, split_special_tokens=False, verbose=False).input_ids
        return tuple(ids)

    def _content(self, text: str) -> tuple[int, ...]:
        ids = self._spell(text)
        if self._special_ids.isdisjoint(ids) or self._special is None:
            return tuple(ids)
        # This tokenizer reads control tokens even so: cut each one apart, no piece holds a whole one.
        cuts = [0, *(match.start() + 1 for match in self._special.finditer(text)), len(text)]
        return tuple(number for start, end in pairwise(cuts) for number in self._spell(text[start:end]))

    def _spell(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(
            text, add_special_tokens=False, split_special_tokens=True, verbose=False
        ).input_ids
        return ids
