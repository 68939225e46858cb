"""What a glance at the words of a program lets pass, the checks of its syntax tree let pass too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from populora_env.admission import defines_f, refusal_of
from populora_env.generator import generate_problem
from populora_env.glance import needs_no_tree
from populora_env.restatement import hangs_on_interpreter
from populora_env.sensitivity import depends_on_addresses, depends_on_hashes, may_leave_traces
from populora_env.sharing import leaves_nothing
from populora_env.source import SourceError, read_program
from populora_env.types import Task

_PIECES = (
    *("def f(", "f(", "x", "y", "f", "max", "str", "print", "count", "keys", "set", "type", "map", "id", "__name__"),
    *("(", ")", "[", "]", "{", "}", ":", ",", ".", ".upper(", ".keys(", ".format(", "=", "+", "-", "&", "%", "@", ";"),
    *(
        "{x: 1}",
        "{'a': x}",
        "{}",
        "{1, 2}",
        "{x:=1}",
        "g",
        "g(",
        "def g(x):\n    return x\n\n",
        "\n\ndef f(x):\n    return x",
    ),
    *(" ", "\n", "\n    ", "\n    return ", " if ", " else ", " for ", " in ", " not ", " is ", " lambda ", "'a'", "1"),
    *("1.5", '"b"', "f'{x}'", "'", "\\", "#", "import re", "class A:", "yield ", "while x:", ":=", "**", "->"),
)


def _agrees_with_the_tree(program: str) -> bool:
    """Return whether the checks of the tree have nothing to say; what is no program comes out when it runs."""
    try:
        compile(program, "<program>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return True
    try:
        _, nodes = read_program(program)
    except SourceError:
        return False
    bad = depends_on_hashes(nodes) or depends_on_addresses(nodes) or may_leave_traces(nodes)
    bad |= hangs_on_interpreter(nodes) or not leaves_nothing(nodes) or not defines_f(nodes)
    return not bad and refusal_of(program, nodes) is None


def _generated(count: int) -> list[str]:
    rng = np.random.default_rng(5)
    return [generate_problem(rng, task=Task.DEDUCTION).program for _ in range(count)]


def test_most_programs_of_our_generator_need_no_tree_and_all_that_pass_agree() -> None:
    programs = _generated(400)
    passing = [program for program in programs if needs_no_tree(program)]
    assert len(passing) > 0.9 * len(programs)
    assert all(map(_agrees_with_the_tree, passing))


@pytest.mark.parametrize(
    "program",
    [
        "def g(x):\n    return x",
        "x = 1\ndef f(x):\n    return x",
        "def g(x):\n    return x\n\ndef f(x):\n    return str(g)",
        "def g(x):\n    return x\n\ndef f(x):\n    return [g]",
        "def g(x):\n    def f(y):\n        return y\n    return f(x)",
        "def g(x):\n    return x\n\ndef h(x):\n    return x\n\ndef f(x):\n    return g(h(x))",
        "def g(x):\n    return x\n\ndef f(x):\n    g = x\n    return g(x)",
        "def f(x):\n    return {x:=1}",
        "def f(x):\n    return {x, 1}",
        "def f(x):\n    return {lambda: 1}",
        "def f(x):\n    return str(f)",
        "def f(x):\n    return (i for i in x), str(x)",
        "def f(x):\n    return '%s' % map(len, x)",
        "def f(x):\n    return x.count, str(x)",
        "def f(x):\n    return {x}",
        "def f(x):\n    return set(x)",
        "def f(x, y):\n    return x.keys() & y.keys()",
        "def f(x):\n    return x is 1",
        "def f(x):\n    return f'{x}'",
        "def f(x):\n    return '{0.a}'.format(x)",
        "def f(x):\n    return x.real",
        "def f(x):\n    return x.gi_frame.f_back()",
        "def f(x):\n    return open(x)",
        "def f(id):\n    return id",
        "def f(x):\n    return type(x)",
        "def f(x):\n    import os\n    return x",
        "def f(x):\n    return lambda: x",
        "def f(x):\n    def g(y):\n        return y\n    return g(x)",
        "def f(x):\n    '''f'''\n    return x",
        "def f(x):\n    return '\\n'",
        "def f(x):\n    return x  # done",
        "def f(x):\n    return " + "-" * 99 + "x",
        "def f(x):\n    return " + "x + " * 30 + "x",
        "def f(x):\n    return x" + "[x" * 30 + "]" * 30,
        "def f(x):\n    return 'é'",
        "def f(x):\n    return rb'a'",
        "def f(x):\n    return '" + "a" * 20_000 + "'",
    ],
)
def test_what_a_check_may_have_to_say_something_of_needs_a_tree(program: str) -> None:
    assert not needs_no_tree(program)


@given(st.lists(st.sampled_from(_PIECES), max_size=14).map("".join))
@settings(max_examples=400)
def test_whatever_passes_agrees(tail: str) -> None:
    for program in (f"def f(x):\n    return x{tail}", f"def f(x):\n    {tail}\n    return x", f"def f(x{tail}"):
        assert not needs_no_tree(program) or _agrees_with_the_tree(program)


@given(st.integers(0, 199), st.data())
@settings(max_examples=300)
def test_programs_that_were_tampered_with_agree(number: int, data: st.DataObject) -> None:
    program = _PROGRAMS[number]
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(program)))
        gone = data.draw(st.integers(0, 3))
        program = program[:place] + data.draw(st.sampled_from(_PIECES)) + program[place + gone :]
    assert not needs_no_tree(program) or _agrees_with_the_tree(program)


_PROGRAMS = _generated(200)
