"""Programs in what models write: a code block of a message, or a continuation of a prompt.

Owns the way from text to source. Pure, and judges nothing: what is no program fails later, in the sandbox.
"""

from __future__ import annotations

import re
from typing import Final

from league.evaluation.types import Manner

_FENCE = re.compile(r"^[ \t]*```[ \t]*([\w+-]*)[ \t]*\n(.*?)(?:^[ \t]*```|\Z)", re.DOTALL | re.MULTILINE)
_PYTHON = {"", "python", "python3", "py"}
OUTER: Final = ("\nif __name__", "\ndef main(", "\nprint(")
"""Where a continuation of a function leaves it; with what follows they are the strings EvalPlus stops at."""
HUMANEVAL_STOP: Final = (*OUTER, "\ndef ", "\nclass ", "\nimport ", "\nfrom ", "\nassert ")
MBPP_STOP: Final = (*OUTER, '\n"""', "\nassert")


def code_block(text: str, entry: str | None = None) -> str:
    """Return the source that a message holds.

    Of its code blocks in Python the last that defines `entry`, else the first; without blocks all of it. A block
    that is cut off counts.
    """
    blocks = [str(found[2]) for found in _FENCE.finditer(text) if found[1].lower() in _PYTHON]
    if not blocks:
        return text
    if entry is not None:
        defining = [block for block in blocks if defines(block, entry)]
        if defining:
            return defining[-1]
    return blocks[0]


def defines(source: str, entry: str) -> bool:
    """Return whether a source seems to define a function, or assign to a name, at its top level."""
    name = re.escape(entry)
    return re.search(rf"^(?:async )?def {name}\b|^class {name}\b|^{name}\s*=", source, re.MULTILINE) is not None


def cut(text: str, stop: tuple[str, ...]) -> str:
    """Return a text up to the first of the strings; a backend that stops there gives the same."""
    ends = [place for word in stop if (place := text.find(word)) >= 0]
    return text[: min(ends)] if ends else text


def solution(text: str, manner: Manner, *, prompt: str, entry: str, stop: tuple[str, ...]) -> str:
    """Return the program that an answer to a prompt makes.

    A continuation follows the prompt. A block of a message stands behind what comes before the function in the prompt
    (imports and helpers); if it is only the function's body it continues the prompt.

    Args:
        text: What was written.
        manner: How it was asked for.
        prompt: Python that a continuation follows.
        entry: Name of the function.
        stop: Where a continuation ends.
    """
    if manner == "base":
        return prompt + cut(text, stop)
    block = code_block(text, entry)
    if defines(block, entry):
        return f"{preamble(prompt, entry)}{block}"
    return prompt + block


def preamble(prompt: str, entry: str) -> str:
    """Return what stands before the function in a prompt; nothing where the prompt does not begin one."""
    found = re.search(rf"^def {re.escape(entry)}\b", prompt, re.MULTILINE)
    return prompt[: found.start()] if found else ""
