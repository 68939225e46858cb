"""Admission: what may be proposed, rule by rule, with the ways round each rule."""

from __future__ import annotations

import importlib
import types
import warnings

import pytest

from populora_env.admission import RULES, Refusal, defines_f, refusal_of
from populora_env.admission_names import check_attribute_name, is_dunder
from populora_env.allowlist import MODULES
from populora_env.source import read_program


def rule(source: str) -> str | None:
    refusal = refusal_of(source, read_program(source)[1])
    return refusal.rule if refusal else None


def f(expression: str, head: str = "") -> str:
    return f"{head}def f(x):\n    return {expression}\n"


DATACLASS = "from abc import ABC\nfrom datetime import date\nfrom dataclasses import dataclass\n@dataclass\nclass P"
OWN_PATTERN = "def f(x):\n    match x:\n        case P(y):\n            return y\n"


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
        f("type(x) == type(1) and type(x) not in (list, tuple) and type(x) != str"),
        "class P:\n    pass\ndef f(x):\n    return type(x) == P\n",
        "from typing import Callable, List\nimport typing as t\n"
        "def f(x: List[int], g: Callable[[int], t.Any] | None = None) -> 't.List[int]':\n"
        "    y: t.Dict = {}\n    return y\n",
        "import math\ndef f(x):\n    import math\n    return math.pi\n",
        f("'{:>{}}'.format(x, 3)"),
        f("'\\d'"),
        "class A:\n    def __init__(self):\n        self.__x = 1\n    def __g(self):\n        return self.__x\n"
        + f("1"),
        "def f(s):\n    hash = 7\n    for c in s:\n        hash = hash * 31 + ord(c)\n    return hash\n",
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
        (f("1", "from functools import singledispatch\n"), "import"),
        (f("1", "from operator import methodcaller\n"), "import"),
        (f("1", "from . import math\n"), "import"),
        (f("1", "from collections import sys\n"), "import"),
        (f("operator.methodcaller('mro')(x)", "import operator\n"), "module"),
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
        (f("setattr(x, 'a', 1)"), "builtin"),
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
        ("class A:\n    __slots__ = list(x)\ndef f(x):\n    return 1\n", "dunder"),
        ("def f(__x__):\n    return 1\n", "dunder"),
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
        # A class body makes attributes of what it binds: modules, and the fields of a pattern.
        ("class A:\n    import collections\n" + f("A.collections._sys"), "import"),
        ("class A:\n    if 1:\n        from copy import deepcopy\n" + f("A.deepcopy(x, {})"), "import"),
        (f"{DATACLASS}(ABC):\n    gi_frame: int\n" + OWN_PATTERN, "attribute"),
        (f"{DATACLASS}(ABC):\n    if 1:\n        f_back: int = 0\n" + OWN_PATTERN, "attribute"),
        (f"{DATACLASS}(date):\n    today: int\n" + OWN_PATTERN, "attribute"),
        (f"{DATACLASS}(str):\n    format: int\n" + OWN_PATTERN, "format"),
        (f("P.register(x)", "from collections.abc import Sequence as P\n"), "attribute"),
        ("def f(x):\n    match x:\n        case str(format=g):\n            return g(x)\n", "format"),
        ("def f(x):\n    match x:\n        case object(register=g):\n            return g(x)\n", "attribute"),
        # One name, judged as one module and used as another.
        ("def g():\n    import calendar as m\n    return m.datetime\ndef f(x):\n    import datetime as m\n", "import"),
        ("def g():\n    from copy import deepcopy as m\ndef f(x):\n    from math import pi as m\n", "import"),
        ("def g():\n    from math import pi as type\n" + f("type('A', (), {})"), "call"),
        # `==` and `in` of an own object would be handed the type.
        (f("type(x) == x"), "call"),
        (f("x != type(x)"), "call"),
        (f("type(x) in x"), "call"),
        (f("type(x) in (int, x)"), "call"),
        (f("type(x) < x"), "call"),
        (f("type(x) == int == x"), "call"),
        (f("type(x) is int == x"), "identity"),
        (f("type(x) == int", "int = 1\n"), "call"),
        ("def g(int):\n    return type(1) == int\n" + f("x"), "call"),
        ("@str\nclass P:\n    pass\n" + f("type(x) == P"), "call"),
        ("class P:\n    pass\nP = 1\n" + f("type(x) == P"), "call"),
        # Texts inside of the aliases of `typing` can be evaluated.
        (f("List['1'] == List[x]", "from typing import List\n"), "typing"),
        (f("typing.Union['1', x]", "import typing\n"), "typing"),
        ("from typing import List\ndef f(x: (lambda: List['1'] == List[2])()):\n    return x\n", "typing"),
        (f("x._evaluate({}, {}, x)"), "attribute"),
        (f("1", "from enum import EnumType\n"), "import"),
        # What is allowed in one place, in another.
        ("class __hash__:\n    h = hash('a')\n" + f("1"), "dunder"),
        ("class A:\n    def __hash__(self, h=hash('a')):\n        return hash(h)\n" + f("1"), "builtin"),
        ("class A:\n    def __hash__(self):\n        return (lambda: hash('a'))()\n" + f("1"), "builtin"),
        ("class A:\n    def __hash__(self):\n        return hash(hash('a'))\n" + f("1"), "builtin"),
        ("def super():\n    return 1\n" + f("super().__get__(x)"), "attribute"),
        (f("x.__name__.__class__"), "attribute"),
        (f("x.__class__.__name__.__class__"), "attribute"),
        ("def f(x):\n    f.__name__ = 'a'\n    return 1\n", "attribute"),
        (f("__name__ < '__main__' < x"), "dunder"),
        (f("math.__name__", "import math\n"), "attribute"),
        ("class A:\n    __slots__ = x = ('a',)\n" + f("1"), "dunder"),
        ("class A:\n    __init__ = 1\n" + f("1"), "dunder"),
        ("class A:\n    def __init__(self):\n        self.__class__ = A\n" + f("1"), "attribute"),
        (f("getattr(math, 'pi')", "import math\n"), "module"),
        (f("getattr(x, 'gi_frame')"), "call"),
        (f("getattr(x, 'format')('a')"), "call"),
        (f("getattr(x, name='real')"), "call"),
        (f("attrgetter('real', 'mro')(x)", "from operator import attrgetter\n"), "call"),
        (f("attrgetter('real.gi_frame')(x)", "from operator import attrgetter\n"), "call"),
        ("import functools\n@functools.wraps(len, ['a'])\ndef f(x):\n    return 1\n", "call"),
        (f("[wraps(len)][0]", "from functools import wraps\n"), "call"),
        ("from typing import List\nA = List[int]\n" + f("A == x"), "typing"),
        ("from typing import TypeVar\nT = TypeVar('T', bound='a' + x)\n" + f("1"), "typing"),
        ("from typing import List\nclass A(List):\n    pass\n" + f("1"), "typing"),
        ("from abc import ABCMeta\nclass A(ABCMeta):\n    pass\n" + f("1"), "class"),
        ("from abc import ABCMeta\nclass A(metaclass=ABCMeta, x=1):\n    pass\n" + f("1"), "class"),
        (f("Color._member_map_", "from enum import Enum as Color\n"), "attribute"),
        ("class P:\n    _member_map_: int\n" + f("1"), "attribute"),
        # Hashes and sets by way of the library's own methods.
        (f("ChainMap(x).keys()._hash()", "from collections import ChainMap\n"), "attribute"),
        (f("ChainMap(x).keys()._from_iterable(x)", "from collections import ChainMap\n"), "attribute"),
        (f(f"'{'{:' * 4000}{'}' * 4000}'.format(x)"), "format"),
    ],
)
def test_what_breaks_a_rule_is_refused_by_that_rule(source: str, expected: str) -> None:
    assert rule(source) == expected
    assert expected in RULES


def test_each_rule_has_a_name_and_a_reason() -> None:
    for name, reason in RULES.items():
        assert name.isidentifier()
        assert len(reason) > 20


def test_admission_does_not_hang_on_the_warning_filters() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rule(f("'\\d'")) is None


def may_be_read(name: str) -> bool:
    try:
        check_attribute_name(name, 0)
    except Refusal:
        return False
    return not is_dunder(name)


def test_no_listed_name_leads_to_a_module_or_a_frame() -> None:
    """Whatever the rules let a program read, attribute by attribute, is no module, frame or code."""
    todo: list[tuple[str, object]] = [
        (f"{module}.{name}", getattr(importlib.import_module(module), name, None))
        for module, names in MODULES.items()
        for name in names
        if f"{module}.{name}" not in MODULES
    ]
    seen: dict[int, object] = {}
    while todo:
        path, value = todo.pop()
        assert not isinstance(value, types.ModuleType | types.FrameType | types.CodeType), path
        if id(value) in seen or isinstance(value, int | str | float):
            continue
        seen[id(value)] = value
        todo += [(f"{path}.{name}", getattr(value, name, None)) for name in filter(may_be_read, dir(value))]


def test_no_listed_name_begins_like_a_way_into_frames() -> None:
    for module, names in MODULES.items():
        assert not any(name.startswith(("_", "gi_", "tb_")) for name in names), module


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
    assert defines_f(read_program(source)[1]) is expected
