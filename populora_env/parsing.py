"""Reading what players write: from any text to a proposal or an answer, or to `Malformed`.

Owns extraction, length and encoding. Owns no judgement: whether a literal is one and what a program does is the
verifier's to say. Every `str` is legal; nothing here raises on one, nothing here evaluates one.
"""

from __future__ import annotations

from collections.abc import Sequence

from populora_env.calls import split_calls
from populora_env.config import GameConfig
from populora_env.prompts import ANSWER, ANSWER_FENCE, INPUT, MESSAGE, OUTPUT, PROGRAM
from populora_env.source import SourceError, is_plain_text, normalise
from populora_env.types import Answer, Malformed, Problem, Proposal, Task

MAX_MESSAGE_CHARS = 512
"""Longest hint of an induction proposal."""

Block = tuple[str, str]
"""Kind (`program`, `input`, `output`, `message`) and text."""


def parse_proposal(text: str, *, task: Task, references: Sequence[Problem], config: GameConfig) -> Proposal | Malformed:
    """Read a proposal; its program comes back in normal form. An induction proposal is about `references[0]`'s.

    Raises:
        ValueError: An induction proposal without a reference; that is the caller's mistake, not the player's.
    """
    if task is Task.INDUCTION and not references:
        raise ValueError("an induction proposal needs a reference whose program it is about")
    if refusal := _refuse(text, config):
        return refusal
    if config.style == "few_shot":
        return _proposal_of_calls(text, task, references, config)
    induction = task is Task.INDUCTION
    expected = ["input"] * config.induction_inputs + ["message"] if induction else ["program", "input"]
    blocks = _read(text, expected, config)
    if [kind for kind, _ in blocks] != expected:
        return Malformed(reason=f"expected these blocks: {', '.join(expected)}")
    inputs = tuple(body for kind, body in blocks if kind == "input")
    if induction:
        message = blocks[-1][1]
        if len(message) > MAX_MESSAGE_CHARS:
            return Malformed(reason=f"message is longer than {MAX_MESSAGE_CHARS} characters")
        return Proposal(task=task, program=references[0].program, inputs=inputs, message=message)
    try:
        program = normalise(blocks[0][1])
    except SourceError as error:
        return Malformed(reason=str(error))
    return Proposal(task=task, program=program, inputs=inputs)


def parse_answer(text: str, *, task: Task, config: GameConfig) -> Answer | Malformed:
    """Read an answer: what follows the last answer mark. Free reasoning may stand before it."""
    if refusal := _refuse(text, config):
        return refusal
    if config.style == "compact":
        body = _after_answer_mark(text)
    elif config.style == "chat":
        body = _last_block(_fenced_blocks(text), _KIND_OF_FENCE[ANSWER_FENCE[task]])
    else:
        body = _answer_of_calls(text, task)
    if body is None or not body.strip():
        return Malformed(reason="no answer")
    if task is not Task.INDUCTION and len(body.strip()) > config.max_answer_chars:
        return Malformed(reason=f"answer is longer than {config.max_answer_chars} characters")
    return Answer(task=task, text=body.strip("\n") if task is Task.INDUCTION else body.strip())


def is_worked(text: str) -> bool:
    """Return whether an answer in the compact style has anything but blanks before its last answer mark."""
    before = text[: max(0, text.rfind(ANSWER))]
    if not before or before.isspace():
        return False
    lines = text.split("\n")
    marks = _answer_marks(lines)
    return bool(marks) and any(line.strip() for line in lines[: marks[-1]])


def _proposal_of_calls(
    text: str, task: Task, references: Sequence[Problem], config: GameConfig
) -> Proposal | Malformed:
    """Read a proposal of the few-shot style: the last Python block, whose calls of `f` at its end are the inputs."""
    block = _last_block(_fenced_blocks(text, open_end=True), "program")
    if block is None:
        return Malformed(reason="expected a ```python block")
    try:
        program, inputs = split_calls(block)
    except SourceError as error:
        return Malformed(reason=str(error))
    wanted = config.induction_inputs if task is Task.INDUCTION else 1
    if len(inputs) < wanted:
        return Malformed(reason=f"expected {wanted} calls of `f` at the end of the block, got {len(inputs)}")
    if task is not Task.INDUCTION:
        return Proposal(task=task, program=program, inputs=inputs[:1])
    message = _comments(block)
    if not message or len(message) > MAX_MESSAGE_CHARS:
        return Malformed(reason=f"expected a comment of at most {MAX_MESSAGE_CHARS} characters, got {len(message)}")
    return Proposal(task=task, program=references[0].program, inputs=inputs[:wanted], message=message)


def _answer_of_calls(text: str, task: Task) -> str | None:
    """Read an answer of the few-shot style: the last output block, or the last Python block."""
    blocks = _fenced_blocks(text, open_end=True)
    body = _last_block(blocks, "output" if task is Task.DEDUCTION else "program")
    if body is None or task is Task.DEDUCTION:
        return body
    try:
        program, inputs = split_calls(body)
    except SourceError:
        return None
    return program if task is Task.INDUCTION else next(iter(inputs), None)


def _comments(block: str) -> str:
    """Return the comment lines of a block as one line."""
    lines = [line.strip() for line in block.split("\n")]
    return " ".join(" ".join(line.lstrip("#").split()) for line in lines if line.startswith("#")).strip()


def _last_block(blocks: Sequence[Block], wanted: str) -> str | None:
    return next((body for kind, body in reversed(blocks) if kind == wanted), None)


def _refuse(text: str, config: GameConfig) -> Malformed | None:
    if len(text) > config.max_action_chars:
        return Malformed(reason=f"longer than {config.max_action_chars} characters")
    if not is_plain_text(text):
        return Malformed(reason="holds a NUL or a lone surrogate")
    return None


def _read(text: str, expected: list[str], config: GameConfig) -> list[Block]:
    """Return the blocks of a proposal; in chat, whatever else was fenced before them is reasoning."""
    if config.style == "chat":
        return [block for block in _fenced_blocks(text) if block[0] in expected][-len(expected) :]
    body = _after_answer_mark(text)
    return _marked_blocks(body) if body is not None else []


def _after_answer_mark(text: str) -> str | None:
    lines = text.split("\n")
    marks = _answer_marks(lines)
    return "\n".join(lines[marks[-1] + 1 :]) if marks else None


def _answer_marks(lines: Sequence[str]) -> list[int]:
    """Return the numbers of the lines that are answer marks."""
    return [number for number, line in enumerate(lines) if line.rstrip() == ANSWER]


_KIND_OF_MARK = {PROGRAM: "program", INPUT: "input", OUTPUT: "output", MESSAGE: "message"}


def _marked_blocks(text: str) -> list[Block]:
    blocks: list[tuple[str, list[str]]] = []
    for line in text.split("\n"):
        if kind := _KIND_OF_MARK.get(line.rstrip()):
            blocks.append((kind, []))
        elif blocks:
            blocks[-1][1].append(line)
        elif line.strip():
            return []
    return [(kind, _strip(kind, lines)) for kind, lines in blocks]


_KIND_OF_FENCE = {"python": "program", "py": "program", "input": "input", "output": "output", "message": "message"}


def _fenced_blocks(text: str, *, open_end: bool = False) -> list[Block]:
    """Return the fenced blocks; with `open_end` the text's end closes the last one, as a stop string cuts its fence."""
    blocks: list[Block] = []
    kind: str | None = None
    lines: list[str] = []
    inside = False
    for line in text.split("\n"):
        mark = line.strip()
        if not mark.startswith("```"):
            if inside:
                lines.append(line)
        elif inside and mark == "```":
            if kind is not None:
                blocks.append((kind, _strip(kind, lines)))
            inside = False
        else:
            inside, kind, lines = True, _KIND_OF_FENCE.get(mark[3:].strip().lower()), []
    if inside and open_end and kind is not None:
        blocks.append((kind, _strip(kind, lines)))
    return blocks


def _strip(kind: str, lines: list[str]) -> str:
    text = "\n".join(lines)
    return text.strip("\n") if kind == "program" else text.strip()
