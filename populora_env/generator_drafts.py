"""A program under construction: steps that fit, the values they give, and the text they become.

Owns how steps are chosen and run. Every value is found by running the program's own statements; the code that runs here
is ours, nothing a model wrote ever reaches this module.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType
from typing import Any, Final

import numpy as np

from populora_env.generator_blocks import BLOCKS
from populora_env.generator_expressions import EXPRESSIONS
from populora_env.generator_families import RANK, Family
from populora_env.generator_steps import BOOL, Step, indented
from populora_env.generator_values import ARGUMENTS, argument, constants, fits, literal, pick
from populora_env.problems import problem_id
from populora_env.types import Problem, Task

STEPS: Final = (*EXPRESSIONS, *BLOCKS)
"""Every way to make a new value."""
VARIABLES: Final = "abcdehkm"
"""Names of the arguments and of what the steps give, in turn."""
_TRIES: Final = 20
_MAX_TRACE: Final = 7
_SECOND_ARGUMENT: Final = 0.25
_USE_FIRST: Final = 0.7
"""How often a step is looked for that uses the first of two arguments, while none does."""
_KEPT_THOUGH_DULL: Final = 0.15

_GLOBALS: Final[dict[str, Any]] = {
    "__builtins__": {},
    **{kind.__name__: kind for kind in (dict, list, range, str, zip)},
    **{function.__name__: function for function in (abs, divmod, len, max, min, sorted, sum)},
}


def _pool(family: Family, takes: str, *, own: bool) -> tuple[Step, ...]:
    """Return the steps that a program of a family may take, each as often as it weighs."""
    fitting = [
        step
        for step in STEPS
        if step.takes == takes and (step.family is family if own else RANK[step.family] <= RANK[family])
    ]
    return tuple(step for step in fitting for _ in range(step.weight))


_KINDS: Final = tuple({step.takes for step in STEPS})
_OWN: Final = {(family, kind): _pool(family, kind, own=True) for family in Family for kind in _KINDS}
_ANY: Final = {(family, kind): _pool(family, kind, own=False) for family in Family for kind in _KINDS}


@dataclass(slots=True)
class Draft:
    """A program under construction with the values of its variables for every input."""

    family: Family
    kinds: list[str]
    n_arguments: int
    rows: list[dict[str, Any]]
    """Names and their values, one namespace an input."""
    inputs: tuple[str, ...]
    traces: list[str]
    """The lines of `Generated.worked`."""
    steps: list[tuple[Step, str]] = field(default_factory=list)
    """Steps with the text that each has in the program."""
    helper: str = ""
    uses_first: bool = False
    """Whether the first of two arguments is used."""

    @classmethod
    def start(cls, rng: np.random.Generator, family: Family, count: int) -> Draft:
        """Return a program without steps, with `count` inputs."""
        kinds = [pick(rng, ARGUMENTS[family]) for _ in range(1 + int(rng.random() < _SECOND_ARGUMENT))]
        given = [[argument(rng, kind) for kind in kinds] for _ in range(count)]
        rows = [{**_GLOBALS, **dict(zip(VARIABLES, values, strict=False))} for values in given]
        traces = [f"{name} = {value!r}" for name, value in zip(VARIABLES, given[0], strict=False)]
        inputs = tuple(repr(tuple(values)) for values in given)
        return cls(family=family, kinds=kinds, n_arguments=len(kinds), rows=rows, inputs=inputs, traces=traces)

    def grow(self, rng: np.random.Generator, depth: int) -> bool:
        """Add the steps, at least one of them of the family's own; return whether they were found."""
        own = int(rng.integers(depth))
        return all(self._extend(rng, own=place == own, last=place == depth - 1) for place in range(depth))

    def _extend(self, rng: np.random.Generator, *, own: bool, last: bool) -> bool:
        """Add one step whose values stay small for all inputs; return whether one was found."""
        kind = self.kinds[-1]
        pool = _OWN[self.family, kind]
        if not own and (not pool or rng.random() < 0.5):
            pool = _ANY[self.family, kind]
        if self.n_arguments > 1 and not self.uses_first and rng.random() < _USE_FIRST:
            pool = tuple(step for step in pool if step.other == self.kinds[0]) or pool
        for _ in range(_TRIES if pool else 0):
            step = pick(rng, pool)
            # A truth value gives a problem away half the time, so few programs end in one.
            if last and step.gives == BOOL and rng.random() < 0.7:
                continue
            if step.helper and self.helper:
                continue
            if self._try(rng, step):
                return True
        return False

    def _try(self, rng: np.random.Generator, step: Step) -> bool:
        others = [name for name, kind in zip(VARIABLES, self.kinds[:-1], strict=False) if kind == step.other]
        if step.other and not others:
            return False
        new, newest = VARIABLES[len(self.kinds)], VARIABLES[len(self.kinds) - 1]
        names = {"x": newest, "y": pick(rng, others) if others else "", "o": new}
        filled = {**constants(rng, step.fields), **names}
        helper = step.helper.format(**filled)
        code = step.traced.format(**filled)
        if helper:
            code = f"g = lambda x: {helper}\n{code}"
        logs = [_run(code, row, new) for row in self.rows]
        if not all(logs) or (self._is_dull(new, newest) and rng.random() >= _KEPT_THOUGH_DULL):
            return False
        self.kinds.append(step.gives)
        self.steps.append((step, step.template.format(**filled)))
        self.helper = helper or self.helper
        self.uses_first |= names["y"] == VARIABLES[0]
        self.traces += [f"{new} = {value}" for value in logs[0] or ()]
        return True

    def _is_dull(self, new: str, newest: str) -> bool:
        """Return whether a step does nothing, or gives nothing, for every input."""
        return all(row[new] in ("", [], {}, ()) or row[new] == row[newest] for row in self.rows)

    def distinct_inputs(self) -> bool:
        """Return whether no input comes twice."""
        return len(set(self.inputs)) == len(self.inputs)

    def program(self) -> str:
        """Return the source, in normal form."""
        lines = []
        for place, (step, text) in enumerate(self.steps, start=self.n_arguments):
            last = place == len(self.kinds) - 1
            name = VARIABLES[place]
            if step.is_block:
                lines += [text, f"return {name}"] if last else [text]
            else:
                lines.append(f"return {text}" if last else f"{name} = {text}")
        body = indented("\n".join(lines))
        helper = f"def g(x):\n    return {self.helper}\n\n" if self.helper else ""
        return f"{helper}def f({', '.join(VARIABLES[: self.n_arguments])}):\n{body}"

    def worked(self) -> tuple[str, ...]:
        """Return the values on the way; that of a last expression is the answer itself."""
        step, _ = self.steps[-1]
        return tuple(self.traces if step.is_block else self.traces[:-1])

    def problem(self, program: str, task: Task, *, n_visible: int) -> Problem:
        """Return the problem that the program, which is `program()`, poses."""
        message = ", ".join(step.tag for step, _ in self.steps) if task is Task.INDUCTION else ""
        newest = VARIABLES[len(self.kinds) - 1]
        return Problem(
            problem_id=problem_id(task, program, self.inputs, message),
            task=task,
            program=program,
            inputs=self.inputs,
            outputs=tuple(literal(row[newest]) for row in self.rows),
            message=message,
            n_visible=n_visible,
        )


class _TooLongError(Exception):
    """A loop goes on for longer than a player would follow it."""


def _run(code: str, row: dict[str, Any], name: str) -> list[str] | None:
    """Run one of our own steps in a row's namespace; return the values it gave `name`, None where one does not do."""
    log: list[str] = []
    row["trace"] = _tracer(log)
    try:
        exec(_compiled(code), row)
    except (ValueError, IndexError, KeyError, _TooLongError):
        return None
    if not fits(row[name]):
        return None
    return log or [repr(row[name])]


def _tracer(log: list[str]) -> Callable[[Any], None]:
    def trace(value: Any) -> None:
        if len(log) >= _MAX_TRACE:
            raise _TooLongError
        log.append(repr(value))

    return trace


@lru_cache(maxsize=1 << 16)
def _compiled(code: str) -> CodeType:
    return compile(code, "<step>", "exec")
