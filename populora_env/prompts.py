"""How the game speaks: the prompt styles, and the text a player writes for a given proposal or answer.

Owns the wording, one source of truth for play, for nano's training data and for the default opponents. Reading texts
back is in `parsing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from populora_env.config import StyleName
from populora_env.few_shot import FewShotStyle
from populora_env.types import Answer, Message, Problem, Proposal, Task


class PromptStyle(Protocol):
    """How prompts are written, and how a player is expected to write back."""

    stop: tuple[str, ...]
    """Strings that may end an action early, for a backend to watch for: whatever comes after them is not read."""

    def proposer_prompt(self, task: Task, references: Sequence[Problem], n_inputs: int) -> str:
        """Return the prompt that asks for a proposal; an induction proposal is about `references[0].program`."""
        ...

    def solver_prompt(self, problem: Problem) -> str:
        """Return the prompt that asks for an answer; it shows nothing of what is asked for."""
        ...

    def messages(self, prompt: str) -> tuple[Message, ...]:
        """Return the prompt as chat messages."""
        ...

    def write_proposal(self, proposal: Proposal) -> str:
        """Return the action that makes this proposal."""
        ...

    def write_answer(self, answer: Answer) -> str:
        """Return the action that gives this answer."""
        ...


PROGRAM, INPUT, OUTPUT, MESSAGE, ANSWER = "<program>", "<input>", "<output>", "<message>", "<answer>"
"""The compact style's marks; each stands on a line of its own."""


class CompactStyle:
    """A few dozen tokens: marks on lines of their own. For nano."""

    stop: tuple[str, ...] = ()

    def proposer_prompt(self, task: Task, references: Sequence[Problem], n_inputs: int) -> str:
        """See `PromptStyle`; `n_inputs` is known to the model by training and not spelled out."""
        del n_inputs
        lines = [f"<propose {task}>"]
        if task is Task.INDUCTION:
            lines += [PROGRAM, references[0].program]
        else:
            for reference in references:
                lines += [PROGRAM, reference.program, INPUT, reference.inputs[0]]
        return "\n".join(lines) + "\n"

    def solver_prompt(self, problem: Problem) -> str:
        """See `PromptStyle`."""
        lines = [f"<{problem.task}>"]
        if problem.task is Task.DEDUCTION:
            lines += [PROGRAM, problem.program, INPUT, problem.inputs[0]]
        elif problem.task is Task.ABDUCTION:
            lines += [PROGRAM, problem.program, OUTPUT, problem.outputs[0]]
        else:
            for given, gives in _visible_pairs(problem):
                lines += [INPUT, given, OUTPUT, gives]
            lines += [MESSAGE, problem.message]
        return "\n".join(lines) + "\n"

    def messages(self, prompt: str) -> tuple[Message, ...]:
        """See `PromptStyle`."""
        return (Message(role="user", content=prompt),)

    def write_proposal(self, proposal: Proposal) -> str:
        """See `PromptStyle`."""
        lines = [ANSWER]
        if proposal.task is not Task.INDUCTION:
            lines += [PROGRAM, proposal.program]
        for given in proposal.inputs:
            lines += [INPUT, given]
        if proposal.task is Task.INDUCTION:
            lines += [MESSAGE, proposal.message]
        return "\n".join(lines)

    def write_answer(self, answer: Answer) -> str:
        """See `PromptStyle`."""
        return f"{ANSWER}\n{answer.text}"


_SYSTEM = "You reason step by step about short Python programs, then give your result in the fenced blocks asked for."

_PROPOSE = """\
Invent a new problem for another programmer: a Python function `f` and one input for it.

Rules:
- The program defines a function named `f` that takes positional arguments and returns a value built from None, bool, \
int, float, str, bytes, list, tuple, dict and set.
- It is deterministic and quick. No input, output, files, clocks or randomness.
- The input is the tuple of f's arguments, written as a Python literal, e.g. (3, 'ab') or ([1, 2],).
- {challenge}
- Make it different from the earlier problems{where}."""

_PROPOSE_FORM = """\
Now write your new problem. End with exactly two blocks, the program and the input:

```python
def f(...):
    ...
```

```input
(...)
```"""

_CHALLENGE = {
    Task.DEDUCTION: "The other programmer sees the program and the input and must predict the output.",
    Task.ABDUCTION: "The other programmer sees the program and the output and must find an input that gives it.",
}

_PROPOSE_INPUTS = """\
Here is a Python function:

```python
{program}
```

Another programmer will see some pairs of inputs and outputs of it, and a message from you, and must write a program \
that does the same. Write {n_inputs} different inputs that together show what `f` does, each in an ```input block of \
its own as the tuple of f's arguments, e.g. (3, 'ab') or ([1, 2],). Then write a hint of one or two sentences in a \
```message block; do not give the program away."""

_SOLVE = {
    Task.DEDUCTION: "What does `f` return for this input?\n\n{program}\n\n{input}\n\n"
    "Give the value as a Python literal in an ```output block.",
    Task.ABDUCTION: "For which input does `f` return this output? Any input that gives it is right.\n\n{program}\n\n"
    "{output}\n\nGive the tuple of f's arguments as a Python literal, e.g. (3, 'ab') or ([1, 2],), in an ```input "
    "block.",
    Task.INDUCTION: "Write a Python function `f` that maps these inputs to these outputs; it will be tested on others. "
    "Each input is the tuple of f's arguments.\n\n{pairs}\n\n{message}\n\nGive the program in a ```python block.",
}


class ChatStyle:
    """Prose and fenced blocks. For large instruction-tuned models."""

    stop: tuple[str, ...] = ()

    def proposer_prompt(self, task: Task, references: Sequence[Problem], n_inputs: int) -> str:
        """See `PromptStyle`."""
        if task is Task.INDUCTION:
            return _PROPOSE_INPUTS.format(program=references[0].program, n_inputs=n_inputs)
        where = " below" if references else ""
        parts = [_PROPOSE.format(challenge=_CHALLENGE[task], where=where)]
        for number, reference in enumerate(references, start=1):
            parts.append(f"Earlier problem {number}, which gives {reference.outputs[0]}:")
            parts += [_fence("python", reference.program), _fence("input", reference.inputs[0])]
        return "\n\n".join([*parts, _PROPOSE_FORM])

    def solver_prompt(self, problem: Problem) -> str:
        """See `PromptStyle`."""
        template = _SOLVE[problem.task]
        if problem.task is Task.INDUCTION:
            pairs = "\n".join(f"{_fence('input', i)}\n{_fence('output', o)}" for i, o in _visible_pairs(problem))
            return template.format(pairs=pairs, message=_fence("message", problem.message))
        program = _fence("python", problem.program)
        if problem.task is Task.DEDUCTION:
            return template.format(program=program, input=_fence("input", problem.inputs[0]))
        return template.format(program=program, output=_fence("output", problem.outputs[0]))

    def messages(self, prompt: str) -> tuple[Message, ...]:
        """See `PromptStyle`."""
        return (Message(role="system", content=_SYSTEM), Message(role="user", content=prompt))

    def write_proposal(self, proposal: Proposal) -> str:
        """See `PromptStyle`."""
        blocks = [_fence("python", proposal.program)] if proposal.task is not Task.INDUCTION else []
        blocks += [_fence("input", given) for given in proposal.inputs]
        if proposal.task is Task.INDUCTION:
            blocks.append(_fence("message", proposal.message))
        return "\n".join(blocks)

    def write_answer(self, answer: Answer) -> str:
        """See `PromptStyle`."""
        return _fence(ANSWER_FENCE[answer.task], answer.text)


ANSWER_FENCE = {Task.DEDUCTION: "output", Task.ABDUCTION: "input", Task.INDUCTION: "python"}
"""The chat style's answer mark: the fence whose last block is the answer."""

_STYLES: dict[str, PromptStyle] = {"compact": CompactStyle(), "chat": ChatStyle(), "few_shot": FewShotStyle()}


def get_style(name: StyleName) -> PromptStyle:
    """Return the prompt style of that name.

    Raises:
        ValueError: There is no such style.
    """
    if name not in _STYLES:
        raise ValueError(f"`style` must be one of {sorted(_STYLES)}, got {name!r}")
    return _STYLES[name]


def _fence(kind: str, text: str) -> str:
    return f"```{kind}\n{text}\n```"


def _visible_pairs(problem: Problem) -> list[tuple[str, str]]:
    return list(zip(problem.inputs, problem.outputs, strict=True))[: problem.n_visible]
