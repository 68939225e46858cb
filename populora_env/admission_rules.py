"""The rules of admission: their names, their reasons, and the word on a program that breaks one.

Owns no check: those of names are in `admission_names`, those of a syntax tree in `admission`, those of values in
`proposals`.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

RULES: Final = MappingProxyType(
    {
        "import": "only listed modules, and of them only listed names; never a star, in a class body, or two things "
        "under one name",
        "typing": "names of `typing` may stand in annotations, aliases and among base classes only: their values "
        "evaluate text",
        "module": "a module's listed attributes may be read; the module itself is no value and cannot be changed",
        "builtin": "only listed builtins: no clocks, randomness, addresses, no evaluation of text; `hash` only as what "
        "`__hash__` returns",
        "attribute": "attributes that lead to frames, code, classes or clocks are refused",
        "format": "format strings must be constants without attributes: `'{0.gi_frame}'` reads the harness",
        "dunder": "names that begin and end with `__` are refused, but for common special methods of own classes and "
        "`__name__`",
        "call": "some functions may only be called on the spot, and only with what cannot lead elsewhere: `type` to "
        "compare or name what it gives, `getattr` with a constant name, `super` without arguments",
        "identity": "`is` may not stand in a chain of comparisons, where its answer cannot be told from the others",
        "async": "coroutines have no place in a pure function",
        "class": "classes take no keyword but `metaclass=ABCMeta`: a metaclass decides what its attributes mean",
        "scope": "the names of a program could not be resolved",
        "unanswerable": "a plain reading does not give the value: it hangs on what the language leaves open (the "
        "identity of equal values, Python's own error texts, where memory ends), or cannot be written within half of "
        "the answer budget",
        "duplicate_inputs": "the inputs of an induction problem must differ",
    }
)
"""Names of the rules with their reasons; an `inadmissible` verdict names one of them."""


class Refusal(Exception):  # noqa: N818 - a rule's word on a program, not an error of ours
    """A rule that a program breaks."""

    def __init__(self, rule: str, line: int) -> None:
        """Name the rule, one of `RULES`, and the line that breaks it (0: unknown)."""
        super().__init__(rule, line)
        self.rule = rule
        self.line = line
