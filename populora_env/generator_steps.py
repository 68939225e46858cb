"""What a step of one of our programs is: a template that makes one new variable from the newest one.

Owns the type and how a template becomes code; the tables of steps are in `generator_expressions` and
`generator_blocks`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from populora_env.generator_families import Family

INT, BOOL, STR, LIST, TUPLE, DICT = "int", "bool", "str", "list", "tuple", "dict"
"""Kinds of values; lists and tuples hold ints, dicts map texts to ints."""

_INDENT: Final = "    "
_CHANGES: Final = re.compile(r"\{o\}( = | \+= | -= |\.|\[)")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step: an expression, or a block of statements that assigns the new variable.

    Templates have these fields: `{x}` the newest variable, `{y}` an earlier one of kind `other`, `{o}` the new one
    (blocks only); constants `{k}` `{l}` in 1..9, `{m}` in 2..3, `{n}` in 2..5, letters `{c}` `{d}`, a short text `{s}`.
    """

    tag: str
    """Name of the operation, as the messages of induction problems use it."""
    family: Family
    takes: str
    gives: str
    template: str
    """The expression, or the lines of the block."""
    other: str = ""
    """Kind of `{y}`; empty where there is none."""
    weight: int = 2
    """How often it is drawn, relative to the others."""
    helper: str = ""
    """What the helper function `g(x)` returns, in terms of x; empty where there is none."""
    is_block: bool = False

    @cached_property
    def fields(self) -> frozenset[str]:
        """Names of the constants that the templates need."""
        return frozenset(re.findall(r"\{([a-z])\}", self.template + self.helper)) - {"x", "y", "o"}

    @cached_property
    def traced(self) -> str:
        """The template as statements that call `trace` with the new variable after each change of it."""
        if not self.is_block:
            return "{o} = " + self.template
        lines: list[str] = []
        for line in self.template.split("\n"):
            lines.append(line)
            body = line.lstrip()
            if _CHANGES.match(body):
                lines.append(line[: len(line) - len(body)] + "trace({o})")
        return "\n".join(lines)


def indented(text: str) -> str:
    """Return the lines as they stand in a function's body."""
    return "\n".join(_INDENT + line for line in text.split("\n"))
