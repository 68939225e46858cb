"""Which programs are replayed in more than two zygotes."""

from __future__ import annotations

import pytest

from populora_env.sensitivity import depends_on_addresses, depends_on_hashes, may_hold_sets
from populora_env.source import read_program


def f(expression: str, head: str = "") -> str:
    return f"{head}def f(x):\n    return {expression}\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (f("{1, 2}"), True),
        (f("{y for y in x}"), True),
        (f("list(set(x))"), True),
        (f("list(map(frozenset, x))"), True),
        (f("list(x.keys() & {}.keys())"), True),
        (f("list(x.items() - x.items())"), True),
        (f("operator.and_(x.keys(), x.keys())", "import operator\n"), True),
        (f("reduce(xor, [x.keys()])", "from operator import xor\n"), True),
        ("def f(x):\n    k = x.keys()\n    k |= x.keys()\n    return list(k)\n", True),
        ("def f(x):\n    match x:\n        case dict(keys=k):\n            return list(k() & k())\n", True),
        (f("sorted(x.keys())"), False),
        (f("x - 1"), False),
        (f("{1: 2}"), False),
    ],
)
def test_programs_whose_results_may_depend_on_hashes_are_found(source: str, expected: bool) -> None:
    assert depends_on_hashes(read_program(source)[1]) is expected


@pytest.mark.parametrize(
    "source",
    [
        f("str(object())"),
        f("repr(lambda: 1)"),
        f("f'{f}'"),
        f("'%s' % f"),
        f("'{}'.format(f)"),
        f("format(y for y in x)"),
        f("ascii(x.append)"),
        f("str(map(len, x))"),
        f("str(enumerate(x))"),
        f("str(chain(x))", "from itertools import chain\n"),
        f("str(mean)", "from statistics import mean\n"),
        f("str(m)", "from statistics import mean as m\n"),
        f("str(partial(len, x))", "from functools import partial\n"),
        f("list(map(str, [f]))"),
        f("print(f, file=x)"),
        f("operator.mod('%s', f)", "import operator\n"),
        f("namedtuple('A', [f], rename=True)", "from collections import namedtuple\n"),
        "class A:\n    pass\n" + f("str(A())"),
        "def g():\n    yield 1\n" + f("str(g())"),
        "def f(x):\n    try:\n        [].index(f)\n    except ValueError as e:\n        return e.args\n",
        "def f(x):\n    match x:\n        case list(append=g):\n            return str(g)\n",
    ],
)
def test_programs_that_may_write_out_an_address_are_found(source: str) -> None:
    assert depends_on_addresses(read_program(source)[1])


@pytest.mark.parametrize(
    "source",
    [
        f("str(x) + f'{x!r}' + '%d' % x"),
        f("','.join(str(i) for i in x)"),
        f("''.join(map(str, x))"),
        f("str(sum(i for i in x)) + str(list(zip(x, x)))"),
        f("repr(sorted(x)) + str(f(x[1:]))"),
        f("str(math.floor(math.pi)) + string.digits", "import math\nimport string\n"),
        f("str(Counter(x).most_common(1))", "from collections import Counter\n"),
        f("sorted(x, key=lambda y: y % 2)"),
        "def f(x):\n    for i, c in enumerate(x):\n        print(i, c)\n    return str(x)\n",
        "def f(x):\n    try:\n        return 1 // x\n    except ZeroDivisionError as e:\n        return str(e.args)\n",
    ],
)
def test_programs_that_write_out_plain_values_are_not(source: str) -> None:
    assert not depends_on_addresses(read_program(source)[1])


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("({'a': 1, 'b': [2]},)", False),
        ("({1: {}, True: {'c': 2}},)", False),
        ("([1, 2], 'abc')", False),
        ("({1, 2},)", True),
        ("({'a': {1, 2}},)", True),
        ("({'a', 'b'},)", True),
        ("(set(),)", True),
        ("(frozenset({1}),)", True),
        ("({(1, 2): 3},)", True),
        ("('{',)", True),
    ],
)
def test_a_literal_without_sets_is_known_by_its_braces(literal: str, expected: bool) -> None:
    assert may_hold_sets(literal) is expected
