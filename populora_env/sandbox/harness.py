"""What stands around a benchmark's program inside of a child: plain values, calls that are kept, streams in memory.

Loaded into the zygotes with numpy and called by programs that `populora_env.scoring` writes. Nothing here carries
trust while a candidate runs beside it: whatever a candidate does to it, what comes out is a value that the candidate
could have returned. Where a benchmark's own test runs (`record`, `replay`), no candidate is in the process.
"""

from __future__ import annotations

import builtins
import io
import json
import random
import sys
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from populora_env.encoding import EncodeError, decode, encode
from populora_env.sandbox.spelling import decode_arguments, encode_arguments, stand_in, stripped

_SCALARS = frozenset({type(None), bool, int, float, complex, str, bytes})
_SCALAR_MAKERS: tuple[Any, ...] = (bool, int, float, complex, str, bytes)
_BOXES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (list, list),
    (tuple, tuple),
    (set, set),
    (frozenset, frozenset),
)
_LONGEST_TEXT = 1 << 14
"""Characters from which on a text is not sent as it is; in UTF-8 it must fit a frame."""
_TEST_SEED = 0
"""A test that draws its inputs must draw the same ones in both of its runs."""


def plain(value: Any) -> Any:
    """Return a value in exact builtin types where it is of a subclass of one, or a scalar of numpy; else as it is."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, np.generic):
        return value.item()
    for kind, make in _BOXES:
        if isinstance(value, kind):
            if type(value) is kind and _SCALARS.issuperset(map(type, value)):  # type: ignore[call-overload]
                return value
            return make(plain(item) for item in value)  # type: ignore[attr-defined]
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    for make in _SCALAR_MAKERS:
        if isinstance(value, make):
            return make(value)
    return value


def takes(function: Callable[..., Any], inputs: tuple[bytes, ...]) -> Callable[[int], Any]:
    """Return what calls the function with arguments that were encoded for it."""
    return lambda number: function(*decode_arguments(inputs[number]))


def returns(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with plain results, and in place of one that is too large for a frame what stands for it."""

    def returned(*arguments: Any) -> Any:
        value = plain(function(*arguments))
        try:
            encode(value)
        except EncodeError:
            return stand_in(value)
        return value

    return returned


def finds(function: Callable[..., Any]) -> Callable[..., bool]:
    """Return the function with results that say whether it found something: a bool as it is, else whether not None."""

    def found(*arguments: Any) -> bool:
        value = function(*arguments)
        return value if isinstance(value, bool) else value is not None

    return found


def record(check: FunctionType, source: str, entry: str) -> Callable[[], tuple[bytes, ...]]:
    """Return what runs a test on the function of a right program and gives back the encoded arguments of its calls."""

    def recorded() -> tuple[bytes, ...]:
        calls: list[bytes] = []
        names: dict[str, Any] = {"__name__": "solution"}
        exec(compile(source, "<solution>", "exec", dont_inherit=True), names)

        def candidate(*arguments: Any) -> Any:
            calls.append(encode_arguments(arguments))
            return plain(names[entry](*arguments))

        _test(check, entry, candidate)
        return tuple(calls)

    return recorded


def replay(check: FunctionType, entry: str) -> Callable[..., bool]:
    """Return what runs a test on results that are known: `f(arguments, results)`, both encoded, one a call."""

    def replayed(arguments: tuple[bytes, ...], results: tuple[bytes, ...]) -> bool:
        known = zip(arguments, results, strict=True)

        def candidate(*given: Any) -> Any:
            expected, result = next(known)
            if encode_arguments(given) != expected:
                raise LookupError("the test asks what it did not ask before")
            return decode(result)

        _test(check, entry, candidate)
        return next(known, None) is None

    return replayed


def _test(check: FunctionType, entry: str, candidate: Callable[..., Any]) -> None:
    """Run a test, which may call the function by its own name too."""
    random.seed(_TEST_SEED)
    np.random.seed(_TEST_SEED)
    check.__globals__[entry] = candidate
    check(candidate)


def reads(function: Callable[..., Any], texts: tuple[str, ...]) -> Callable[[int], Any]:
    """Return what calls the function with the arguments that a text holds, one a line, in JSON."""
    returned = returns(function)
    return lambda number: returned(*map(json.loads, texts[number].splitlines()))


def runs(source: str, texts: tuple[str, ...]) -> Callable[[int], Any]:
    """Return what runs a whole program with a text at its standard input, and gives what it printed."""
    return lambda number: _fitting(_run(source, texts[number]))


def _fitting(text: str) -> Any:
    return text if len(text) <= _LONGEST_TEXT else stand_in(stripped(text))


def _run(source: str, text: str) -> str:
    module = ModuleType("__main__")
    module.__dict__.update(__builtins__=builtins, exit=sys.exit, quit=sys.exit)
    sys.modules["__main__"] = module
    kept = io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode("utf-8", "surrogatepass")), "utf-8")
    sys.stdout = io.TextIOWrapper(kept, "utf-8", errors="surrogateescape", write_through=True)
    try:
        exec(compile(source, "<program>", "exec", dont_inherit=True), module.__dict__)
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    sys.stdout.flush()
    return kept.getvalue().decode("utf-8", "replace")
