"""nano's tokenizer: bytes, and one token for each piece that our programs are made of.

Owns the vocabulary. It is an ordinary `tokenizers` file: a piece that stands in the vocabulary is one token, every
other text is spelled in UTF-8 bytes, so that any text makes the round trip. What ships is the file written at training
time, so the pieces here may grow without touching old weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from populora_env.generator import TAGS
from populora_env.generator_drafts import STEPS, VARIABLES
from populora_env.generator_steps import Step, indented
from populora_env.generator_values import MAX_INT
from populora_env.prompts import ANSWER, INPUT, MESSAGE, OUTPUT, PROGRAM
from populora_env.types import Task

END, PAD = "<|end|>", "<|pad|>"
"""End of a completion, and padding."""

_NUMBERS = tuple(str(number) for number in range(-MAX_INT, MAX_INT + 1))
_HEADS = tuple(f"<{task}>\n" for task in Task) + tuple(f"<propose {task}>\n" for task in Task)
_MARKS = tuple(f"{lead}{mark}\n" for mark in (PROGRAM, INPUT, OUTPUT, MESSAGE, ANSWER) for lead in ("", "\n"))
_FRAME = (
    *("def f(", "def g(x):\n    return ", "\n\ndef f(", "):\n    ", "):\n    return ", "\n    ", "\n        "),
    *("\n    return ", "return ", " = ", ", ", ",)", "', '", "': ", ", '", "''", "[]", "{}", "True", "False", "None"),
    *("('", "',)", "([", "],)", "({'", "},)", "])", "})"),
    *(" + ", " - ", " * ", " // ", " % ", " > ", " < ", " == ", " != ", " and ", " or ", "not "),
    *(" if ", " else ", " for ", " in ", "while ", "for i in ", "[i ", "if "),
)
_LEADS = ("", "\n", "\n    ", "):\n    ")
_ASSIGNMENTS = tuple(f"{lead}{name} = " for lead in _LEADS for name in VARIABLES)


def _fragments(step: Step) -> Iterator[str]:
    """Yield what stands between the fields of a step's templates."""
    for template in (indented(step.template), step.helper):
        spelled = re.split(r"\{[a-z]\}", template)
        yield from (text.strip(" ") if text.isspace() else text for text in map(_unescaped, spelled))


def _unescaped(text: str) -> str:
    return text.replace("{{", "{").replace("}}", "}")


_CODE = tuple(text.removeprefix("    ").removeprefix(" = ") for step in STEPS for text in _fragments(step))
PIECES = tuple(
    piece for piece in dict.fromkeys((*_HEADS, *_MARKS, *_FRAME, *_ASSIGNMENTS, *_NUMBERS, *_CODE, *TAGS)) if piece
)
"""Texts that are one token: numbers, and what our programs, problems and traces are made of."""


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Return the tokenizer that `PIECES` define."""
    byte_alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    spelled = [_byte_spelling(piece) for piece in PIECES]
    words = list(dict.fromkeys([*byte_alphabet, *spelled]))
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    longest_first = sorted(PIECES, key=len, reverse=True)
    pattern = "|".join([*(re.escape(piece).replace("\\\n", "\\n") for piece in longest_first), r"[\s\S]"])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=PAD,
        clean_up_tokenization_spaces=False,
        split_special_tokens=True,
        model_max_length=1024,
        padding_side="left",
    )


def _byte_spelling(piece: str) -> str:
    """Return a piece in the byte alphabet of `ByteLevel`, in which the vocabulary is written."""
    ((spelled, _),) = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(piece)
    return spelled
