"""The few-shot style: worked turns, and replies that are one code block with inputs written as calls.

For small instruction-tuned models, which copy a form they see far better than one they are told. Owns the wording, as
`prompts` does for the other styles, which lists this one beside them. Reading replies back is in `parsing`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from populora_env.calls import as_call
from populora_env.types import Answer, Message, Problem, Proposal, Task

REQUEST, REPLY = "### Request", "### Reply"
"""Marks between turns, on lines of their own. No normal form of a program and no literal has such a line, and a message
is written on one line, so that nobody can write a turn into another's prompt."""

_SYSTEM = "You write and run short Python functions. Each of your replies is one code block."
_INVENT = """\
Write a short Python function `f`, then one call of it with literal arguments, whose {hard}. Use only built-in types, \
no imports, no printing, no randomness. Reply with one ```python block: the function, an empty line, the call."""
_AGAIN = "Another one, different from those above, whose {hard}."
_HARD = {
    Task.DEDUCTION: "result is not easy to predict",
    Task.ABDUCTION: "arguments are not easy to guess from its result",
}
_SHOW = """\
Show what `f` does. Reply with one ```python block: a comment with a hint for somebody who does not see the function, \
then {n_inputs} different calls of `f` with literal arguments, one a line."""
_PREDICT = "What does this call give? Reply with the value as a Python literal in an ```output block."
_FIND = "Find a call of `f` that gives this value. Reply with the call, with literal arguments, in a ```python block."
_WRITE = """\
Write a function `f` that gives these values, and the right ones for other calls. Reply with the function in a \
```python block."""

_WORKED = (
    ("def f(s, n):\n    return s[n:] + s[:n].upper()", "('hello', 2)", "'lloHE'"),
    ("def f(a):\n    b = [x * x for x in a if x > 2]\n    return sum(b)", "([1, 2, 3, 5],)", "34"),
)
"""Programs of ours, with an input and its output each, for the turns that show how a reply looks."""
_PAIRS = (
    (("('hello', 2)", "'lloHE'"), ("('', 3)", "''"), ("('tree', 0)", "'tree'")),
    (("([1, 2, 3, 5],)", "34"), ("([],)", "0"), ("([2, 7],)", "49")),
)
_HINTS = (
    "The text is turned around a place, and one part changes its case.",
    "Only some of the numbers count, and those more than once.",
)
_WORDS = ("hello", "", "banana", "xyz", "a b", "Q", "kiwi", "12ab", "tree", "Moon")


class FewShotStyle:
    """See `prompts.PromptStyle`. The prompt is the whole exchange as a text; `messages` cuts it into turns."""

    stop: tuple[str, ...] = ("\n```\n",)

    def proposer_prompt(self, task: Task, references: Sequence[Problem], n_inputs: int) -> str:
        """The turns of a proposal are the references; an induction proposal has worked ones of ours."""
        turns: list[str] = []
        if task is Task.INDUCTION:
            show = _SHOW.format(n_inputs=n_inputs)
            for number, (program, _, _) in enumerate(_WORKED):
                calls = "\n".join(as_call(given) for given in _some_inputs(number, n_inputs))
                turns += [f"{_python(program)}\n\n{show}", _python(f"# {_HINTS[number]}\n{calls}")]
            return _exchange([*turns, f"{_python(references[0].program)}\n\n{show}"])
        shown = [(one.program, one.inputs[0]) for one in references] or [(one[0], one[1]) for one in _WORKED]
        for program, given in shown:
            turns += [(_AGAIN if turns else _INVENT).format(hard=_HARD[task]), _program_and_call(program, given)]
        return _exchange([*turns, _AGAIN.format(hard=_HARD[task])])

    def solver_prompt(self, problem: Problem) -> str:
        """Two worked turns of ours, then the problem."""
        turns: list[str] = []
        for number, (program, given, gives) in enumerate(_WORKED):
            reply = {
                Task.DEDUCTION: f"```output\n{gives}\n```",
                Task.ABDUCTION: _python(as_call(given)),
                Task.INDUCTION: _python(program),
            }
            turns += [_question(problem.task, program, _PAIRS[number], _HINTS[number]), reply[problem.task]]
        pairs = list(zip(problem.inputs, problem.outputs, strict=True))
        shown = pairs[: problem.n_visible] if problem.task is Task.INDUCTION else pairs
        return _exchange([*turns, _question(problem.task, problem.program, shown, problem.message)])

    def messages(self, prompt: str) -> tuple[Message, ...]:
        """Cut the prompt at its marks."""
        turns = re.split(f"\n\n(?:{REPLY}|{REQUEST})\n\n", prompt)
        said = [Message(role="assistant" if number % 2 else "user", content=turn) for number, turn in enumerate(turns)]
        return (Message(role="system", content=_SYSTEM), *said)

    def write_proposal(self, proposal: Proposal) -> str:
        """See `PromptStyle`."""
        if proposal.task is not Task.INDUCTION:
            return _program_and_call(proposal.program, proposal.inputs[0])
        calls = "\n".join(as_call(given) for given in proposal.inputs)
        return _python(f"# {_one_line(proposal.message)}\n{calls}")

    def write_answer(self, answer: Answer) -> str:
        """See `PromptStyle`."""
        if answer.task is Task.DEDUCTION:
            return f"```output\n{answer.text}\n```"
        return _python(as_call(answer.text) if answer.task is Task.ABDUCTION else answer.text)


def _question(task: Task, program: str, pairs: Sequence[tuple[str, str]], message: str) -> str:
    """Ask for the output of the first pair, its input, or the program behind all of them."""
    (given, gives), *_ = pairs
    if task is Task.DEDUCTION:
        return f"{_program_and_call(program, given)}\n\n{_PREDICT}"
    if task is Task.ABDUCTION:
        return f"{_python(program)}\n\n```output\n{gives}\n```\n\n{_FIND}"
    calls = "\n".join(f"{as_call(given)} == {gives}" for given, gives in pairs)
    return f"{_python(f'# {_one_line(message)}' + chr(10) + calls)}\n\n{_WRITE}"


def _exchange(turns: Sequence[str]) -> str:
    """Join requests and replies, in turn, the last one a request."""
    marks = [f"\n\n{REQUEST if number % 2 else REPLY}\n\n" for number in range(len(turns) - 1)]
    return "".join(part for pair in zip(turns, [*marks, ""], strict=True) for part in pair)


def _python(text: str) -> str:
    return f"```python\n{text}\n```"


def _program_and_call(program: str, given: str) -> str:
    return _python(f"{program}\n\n{as_call(given)}")


def _one_line(message: str) -> str:
    return " ".join(message.split())


def _some_inputs(number: int, count: int) -> list[str]:
    """Return different inputs of one of the worked programs, however many are asked for."""
    if number == 0:
        return [f"({_WORDS[i % len(_WORDS)]!r}, {(i % 3) + 3 * (i // len(_WORDS))})" for i in range(count)]
    return [f"({[(i * k + 1) % 7 for k in range(1, i % 5)] + [i] * (i > 0)!r},)" for i in range(count)]
