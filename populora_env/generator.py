"""Our own problems: typed straight-line programs over ints, strings and lists, with inputs and outputs.

Owns the grammar. It seeds the problem buffer, feeds the action space's samples, the default opponents and nano's
training data. Every value is found by running the program's own expressions; programs come in the normal form of
`source.normalise`. The code that runs here is ours: nothing a model wrote ever reaches this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from populora_env.problems import problem_id
from populora_env.types import Problem, Task

MAX_DEPTH = 6
"""Most statements of a program; by default the depth is uniform in 1..4."""

_INT, _STR, _LIST = "int", "str", "list"
_MAX_INT, _MAX_STR, _MAX_LIST = 99, 10, 6
_LETTERS = "abcdefgh"
_VARIABLES = "abcdefghij"
_TRIES = 20


@dataclass(frozen=True, slots=True)
class _Op:
    """One expression: `{x}` the newest variable, `{y}` an earlier one of type `other`, `{k}` `{c}` `{s}` constants."""

    tag: str
    template: str
    takes: str
    gives: str
    other: str = ""


_OPS = tuple(
    _Op(*fields)
    for fields in (
        ("add", "{x} + {k}", _INT, _INT),
        ("subtract", "{x} - {k}", _INT, _INT),
        ("times", "{x} * {k}", _INT, _INT),
        ("divide", "{x} // {k}", _INT, _INT),
        ("modulo", "{x} % {k}", _INT, _INT),
        ("absolute", "abs({x})", _INT, _INT),
        ("at most", "min({x}, {k})", _INT, _INT),
        ("at least", "max({x}, {k})", _INT, _INT),
        ("sum of two", "{x} + {y}", _INT, _INT, _INT),
        ("difference", "{y} - {x}", _INT, _INT, _INT),
        ("choose", "{x} if {x} > {k} else {y}", _INT, _INT, _INT),
        ("pair", "[{x}, {k}]", _INT, _LIST),
        ("repeat", "[{k}] * ({x} % 4)", _INT, _LIST),
        ("range", "list(range({x} % 6))", _INT, _LIST),
        ("letters", "'{c}' * ({x} % 5)", _INT, _STR),
        ("digits", "str({x})", _INT, _STR),
        ("reverse", "{x}[::-1]", _STR, _STR),
        ("upper", "{x}.upper()", _STR, _STR),
        ("rest", "{x}[1:]", _STR, _STR),
        ("start", "{x}[:2]", _STR, _STR),
        ("append text", "{x} + '{s}'", _STR, _STR),
        ("prepend text", "'{s}' + {x}", _STR, _STR),
        ("double", "{x} * 2", _STR, _STR),
        ("replace", "{x}.replace('{c}', '{s}')", _STR, _STR),
        ("join two", "{x} + {y}", _STR, _STR, _STR),
        ("length", "len({x})", _STR, _INT),
        ("count letter", "{x}.count('{c}')", _STR, _INT),
        ("positions", "[{x}.find('{c}'), len({x})]", _STR, _LIST),
        ("reverse", "{x}[::-1]", _LIST, _LIST),
        ("sort", "sorted({x})", _LIST, _LIST),
        ("rest", "{x}[1:]", _LIST, _LIST),
        ("drop last", "{x}[:-1]", _LIST, _LIST),
        ("append", "{x} + [{k}]", _LIST, _LIST),
        ("map add", "[i + {k} for i in {x}]", _LIST, _LIST),
        ("map times", "[i * {k} for i in {x}]", _LIST, _LIST),
        ("filter", "[i for i in {x} if i > {k}]", _LIST, _LIST),
        ("extend", "{x} + {y}", _LIST, _LIST, _LIST),
        ("length", "len({x})", _LIST, _INT),
        ("sum", "sum({x})", _LIST, _INT),
        ("largest", "max({x})", _LIST, _INT),
        ("first", "{x}[0]", _LIST, _INT),
        ("count", "{x}.count({k})", _LIST, _INT),
    )
)
TAGS = tuple(sorted({op.tag for op in _OPS}))
"""Names of the operations, as the messages of induction problems use them."""

_OPS_OF = {kind: tuple(op for op in _OPS if op.takes == kind) for kind in (_INT, _STR, _LIST)}

_GLOBALS: dict[str, Any] = {
    "__builtins__": {},
    "abs": abs,
    "len": len,
    "list": list,
    "max": max,
    "min": min,
    "range": range,
    "sorted": sorted,
    "str": str,
    "sum": sum,
}


def generate_problem(rng: np.random.Generator, *, task: Task, n_inputs: int = 4, depth: int | None = None) -> Problem:
    """Return a problem that is valid by construction.

    Args:
        rng: Source of all randomness.
        task: Type of the problem.
        n_inputs: Inputs of an induction problem, half of them (rounded down) hidden; the other types have one.
        depth: Statements of the program, 1..6; None draws 1..4.

    Raises:
        ValueError: `depth` or `n_inputs` out of range.
    """
    if depth is not None and not 1 <= depth <= MAX_DEPTH:
        raise ValueError(f"`depth` must be in 1..{MAX_DEPTH}, got {depth!r}")
    if n_inputs < 1:
        raise ValueError(f"`n_inputs` must be at least 1, got {n_inputs!r}")
    induction = task is Task.INDUCTION
    count = n_inputs if induction else 1
    while True:
        draft = _Draft.start(rng, count)
        wanted = int(rng.integers(1, 5)) if depth is None else depth
        if all(draft.extend(rng) for _ in range(wanted)) and draft.distinct_inputs():
            return draft.problem(task, n_visible=n_inputs - n_inputs // 2 if induction else 0)


@dataclass(slots=True)
class _Draft:
    """A program under construction with the values of its variables for every input."""

    kinds: list[str]
    n_arguments: int
    rows: list[list[Any]]
    """Values of the variables, one row an input."""
    lines: list[str]
    tags: list[str]

    @classmethod
    def start(cls, rng: np.random.Generator, count: int) -> _Draft:
        kinds = [str(kind) for kind in rng.choice([_INT, _STR, _LIST], size=1 + int(rng.random() < 0.25))]
        rows = [[_argument(rng, kind) for kind in kinds] for _ in range(count)]
        return cls(kinds=kinds, n_arguments=len(kinds), rows=rows, lines=[], tags=[])

    def extend(self, rng: np.random.Generator) -> bool:
        """Add one statement whose values stay small for all inputs; return whether one was found."""
        for _ in range(_TRIES):
            op = _pick(rng, _OPS_OF[self.kinds[-1]])
            others = [name for name, kind in zip(_VARIABLES, self.kinds[:-1], strict=False) if kind == op.other]
            if op.other and not others:
                continue
            text = op.template.format(
                x=_VARIABLES[len(self.kinds) - 1],
                y=_pick(rng, others) if others else "",
                k=int(rng.integers(1, 10)),
                c=_LETTERS[int(rng.integers(4))],
                s="".join(_pick(rng, _LETTERS) for _ in range(int(rng.integers(1, 3)))),
            )
            values = [_value(text, row) for row in self.rows]
            if all(_fits(value) for value in values):
                for row, value in zip(self.rows, values, strict=True):
                    row.append(value)
                self.kinds.append(op.gives)
                self.lines.append(text)
                self.tags.append(op.tag)
                return True
        return False

    def distinct_inputs(self) -> bool:
        return len({repr(row[: self.n_arguments]) for row in self.rows}) == len(self.rows)

    def problem(self, task: Task, *, n_visible: int) -> Problem:
        names = _VARIABLES[self.n_arguments : len(self.kinds) - 1]
        body = [f"    {name} = {line}" for name, line in zip(names, self.lines[:-1], strict=True)]
        header = f"def f({', '.join(_VARIABLES[: self.n_arguments])}):"
        program = "\n".join([header, *body, f"    return {self.lines[-1]}"])
        inputs = tuple(repr(tuple(row[: self.n_arguments])) for row in self.rows)
        message = ", ".join(self.tags) if task is Task.INDUCTION else ""
        return Problem(
            problem_id=problem_id(task, program, inputs, message),
            task=task,
            program=program,
            inputs=inputs,
            outputs=tuple(repr(row[-1]) for row in self.rows),
            message=message,
            n_visible=n_visible,
        )


def _argument(rng: np.random.Generator, kind: str) -> Any:
    if kind == _INT:
        return int(rng.integers(-9, 21))
    if kind == _STR:
        return "".join(_pick(rng, _LETTERS[:5]) for _ in range(int(rng.integers(2, 6))))
    return [int(n) for n in rng.integers(-2, 10, size=int(rng.integers(2, 6)))]


def _pick(rng: np.random.Generator, options: Sequence[Any]) -> Any:
    return options[int(rng.integers(len(options)))]


def _value(text: str, row: list[Any]) -> Any:
    """Run one of our own expressions; None when it has no value."""
    try:
        return eval(text, _GLOBALS, dict(zip(_VARIABLES, row, strict=False)))
    except (ValueError, IndexError):
        return None


def _fits(value: Any) -> bool:
    if type(value) is int:
        return abs(value) <= _MAX_INT
    if type(value) is str:
        return len(value) <= _MAX_STR
    return type(value) is list and len(value) <= _MAX_LIST and all(abs(item) <= _MAX_INT for item in value)
