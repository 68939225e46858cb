"""Admission: what may be proposed, rule by rule, with the ways round each rule."""

from __future__ import annotations

import pytest

from populora_env.admission import RULES, defines_f, depends_on_hashes, refusal_of
from populora_env.allowlist import MODULES
from populora_env.source import parse_program


def rule(source: str) -> str | None:
    refusal = refusal_of(source, parse_program(source))
    return refusal.rule if refusal else None


def f(expression: str, head: str = "") -> str:
    return f"{head}def f(x):\n    return {expression}\n"


@pytest.mark.parametrize(
    "source",
    [
        f("sorted(x)[::-1]"),
        f("[i * 2 for i in x if i % 2]"),
        f("(lambda y: y + 1)(x)"),
        f("math.isqrt(x) + m.gcd(x, 2)", "import math\nimport math as m\n"),
        f("len(re.findall('1', bin(x)))", "import re\n"),
        f("Counter(x).most_common(1)", "from collections import Counter\n"),
        f("isinstance(x, abc.Sequence)", "from collections import abc\n"),
        f("collections.abc.Iterable", "import collections.abc\n"),
        f("'{:>{w}} {0!r}'.format(x, w=3)"),
        f("f'{x:>10} {x!r}'"),
        f("copy.deepcopy(x)", "import copy\n"),
        f("type(x) is int or type(x) in (str, bytes) or type(x) == type(1)"),
        "def f(x):\n    def g(y):\n        return y + x\n    return g(1)\n",
        "def f(input, id, hash=3):\n    open = input + id\n    return open\n",
        "class P:\n    def __init__(self, a):\n        self.a = a\n"
        "    def __add__(self, o):\n        return self.a\ndef f(x):\n    return P(x) + 1\n",
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    a: int = 0\ndef f(x):\n    return P(x).a\n",
        "import functools\n@functools.lru_cache(None)\ndef f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\n",
        "def f(x):\n    try:\n        return 1 // x\n    except ZeroDivisionError as e:\n        return str(e)\n",
        "def f(x):\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n    g()\n    return n\n",
        "def f(x):\n    match x:\n        case [a, *rest]:\n            return a\n"
        "        case {'k': v, **more}:\n            return v\n",
        "def f(*args, **kwargs):\n    return sum(args)\n",
        "def f(x):\n    yield from x\n",
    ],
)
def test_ordinary_programs_are_admitted(source: str) -> None:
    assert rule(source) is None


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (f("1", "import os\n"), "import"),
        (f("1", "import random\n"), "import"),
        (f("1", "import time\n"), "import"),
        (f("1", "import os.path as math\n"), "import"),
        (f("1", "from math import *\n"), "import"),
        (f("1", "from functools import wraps\n"), "import"),
        (f("1", "from operator import attrgetter\n"), "import"),
        (f("1", "from . import math\n"), "import"),
        (f("1", "from collections import sys\n"), "import"),
        (f("operator.attrgetter('gi_frame')(x)", "import operator\n"), "module"),
        (f("json.decoder", "import json\n"), "module"),
        (f("collections.abc.sys", "import collections.abc\n"), "module"),
        (f("[m][0].loader", "import math\nm = math\n"), "module"),
        (f("math", "import math\n"), "module"),
        (f("collections.abc", "import collections\n"), "module"),
        (f("x", "import math\nmath.pi = 3\n"), "module"),
        (f("x", "import math\ndel math.pi\n"), "module"),
        (f("x", "from collections import Counter\nCounter.hidden = 1\n"), "module"),
        (f("eval('1')"), "builtin"),
        (f("id(x)"), "builtin"),
        (f("hash(x)"), "builtin"),
        (f("open(x)"), "builtin"),
        (f("getattr(x, 'a')"), "builtin"),
        (f("vars()"), "builtin"),
        (f("(lambda: globals())()"), "builtin"),
        (f("[id(y) for y in x]"), "builtin"),
        (f("id(x)", "if 0:\n    id = 1\n"), "builtin"),
        (f("id(x)", "id = 1\ndel id\n"), "builtin"),
        ("class A:\n    g = id\n    id = 2\ndef f(x):\n    return A.g(x)\n", "builtin"),
        ("def g():\n    id = 1\ndef f(x):\n    return id(x)\n", "builtin"),
        ("def f(x):\n    global id\n    return id(x)\n", "builtin"),
        ("def f(x):\n    try:\n        return f(x)\n    except BaseException:\n        return 1\n", "builtin"),
        (f("x.__class__"), "attribute"),
        (f("().__class__.__bases__"), "attribute"),
        (f("x.gi_frame.f_back"), "attribute"),
        (f("x.cr_frame"), "attribute"),
        (f("x.ag_frame"), "attribute"),
        (f("x.tb_frame"), "attribute"),
        (f("x.co_code"), "attribute"),
        (f("x.f_locals"), "attribute"),
        (f("f'{x.gi_frame}'"), "attribute"),
        (f("x._\uff3fclass\uff3f_"), "attribute"),
        (f("x.mro()"), "attribute"),
        (f("datetime.date.today()", "import datetime\n"), "attribute"),
        ("def f(x):\n    match x:\n        case object(gi_frame=y):\n            return y\n", "attribute"),
        (f("'{0.gi_frame}'.format(x)"), "format"),
        (f("'{0[a].b}'.format(x)"), "format"),
        (f("'{:{0.b}}'.format(x)"), "format"),
        (f("('{0.' + 'gi_frame}').format(x)"), "format"),
        (f("x.format(1)"), "format"),
        (f("str.format(x, 1)"), "format"),
        (f("map('{0.gi_frame}'.format, x)"), "format"),
        (f("'{0.a}'.format_map(x)"), "attribute"),
        (f("__builtins__"), "dunder"),
        (f("__import__('os')"), "dunder"),
        ("class A:\n    def __getattr__(self, name):\n        return 1\ndef f(x):\n    return A().z\n", "dunder"),
        ("class A:\n    def __del__(self):\n        pass\ndef f(x):\n    return 1\n", "dunder"),
        ("class A:\n    __slots__ = ()\ndef f(x):\n    return 1\n", "dunder"),
        ("def f(__x):\n    return 1\n", "dunder"),
        (f("type('A', (), {})"), "call"),
        (f("(type)"), "call"),
        (f("type(type(x))('A', (), {})"), "call"),
        (f("[type(x)][0]"), "call"),
        (f("type(type(x)) is x"), "call"),
        (f("map(type, x)"), "call"),
        (f("type(*x)"), "call"),
        (f("deepcopy(x, {})", "from copy import deepcopy\n"), "call"),
        (f("copy.copy", "import copy\n"), "call"),
        ("class A(metaclass=B):\n    pass\ndef f(x):\n    return 1\n", "class"),
        ("async def f(x):\n    return 1\n", "async"),
        ("def f(x):\n    nonlocal y\n    return 1\n", "scope"),
    ],
)
def test_what_breaks_a_rule_is_refused_by_that_rule(source: str, expected: str) -> None:
    assert rule(source) == expected
    assert expected in RULES


def test_no_listed_name_begins_like_a_way_into_frames() -> None:
    for module, names in MODULES.items():
        assert not any(name.startswith(("_", "gi_", "tb_")) for name in names), module


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
        (f("sorted(x.keys())"), False),
        (f("x - 1"), False),
        (f("{1: 2}"), False),
    ],
)
def test_programs_whose_results_may_depend_on_hashes_are_found(source: str, expected: bool) -> None:
    assert depends_on_hashes(parse_program(source)) is expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(): pass", True),
        ("f = lambda x: x", True),
        ("from math import sqrt as f", True),
        ("def g(): pass", False),
        ("f(1)", False),
        ("x.f = 1", False),
    ],
)
def test_programs_without_f_are_found(source: str, expected: bool) -> None:
    assert defines_f(parse_program(source)) is expected
