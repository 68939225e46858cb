"""Programs of a teacher that wants valid problems that nobody can solve by reading, with the verdicts they may get.

Each is named for what its value hangs on. `|` separates verdicts; none of them may be `ok`.
"""

from __future__ import annotations

from typing import Final


def f(expression: str, head: str = "") -> str:
    """Return a program whose `f` returns an expression of `x`."""
    return f"{head}def f(x):\n    return {expression}\n"


def body(lines: str, head: str = "") -> str:
    """Return a program whose `f` has these lines."""
    indented = "".join(f"    {line}\n" for line in lines.splitlines())
    return f"{head}def f(x):\n{indented}"


_REFUSED = "inadmissible"
_UNANSWERABLE = "inadmissible:unanswerable"
_UNSTABLE = "nondeterministic"

IDENTITY: Final = {
    "equal_ints": (f("int('1000') is int('1000')"), _UNANSWERABLE),
    "small_ints": (f("int('100') is int('100')"), _UNANSWERABLE),
    "border_of_the_int_cache": (
        body("n = 0\nwhile (n + 1) is (int(str(n)) + 1):\n    n += 1\n    if n > 2000: break\nreturn n"),
        _UNANSWERABLE,
    ),
    "folded_constants": (body("a = 1000\nb = 1000\nreturn a is b"), _UNANSWERABLE),
    "joined_texts": (f("'ab' is ''.join(['a', 'b'])"), _UNANSWERABLE),
    "single_letters": (f("'abc'[0] is 'cba'[2]"), _UNANSWERABLE),
    "not_the_same_text": (f("''.join(['a', 'b']) is not 'ab'"), _UNANSWERABLE),
    "floats": (f("float('1.5') is float('1.5')"), _UNANSWERABLE),
    "tuples": (f("tuple([]) is tuple([])"), _UNANSWERABLE),
    "copied_tuples": (f("(1, 2)[:] is (1, 2)"), _UNANSWERABLE),
    "copies": (f("copy.copy(x) is x", "import copy\n"), _UNANSWERABLE),
    "deep_copies": (f("copy.deepcopy((x, x)) is (x, x)", "import copy\n"), _UNANSWERABLE),
    "in_a_chain": (f("1 < int('300') is int('300')"), "inadmissible:identity"),
    "of_bytes": (f("bytes(1) is bytes(1)"), _UNANSWERABLE),
    "by_operator": (f("operator.is_(x, x)", "import operator\n"), "inadmissible:module"),
    "in_a_comprehension": (f("[i for i in range(250, 260) if i is int(str(i))]"), _UNANSWERABLE),
    "in_a_lambda": (f("(lambda a, b: a is b)(int('999'), int('999'))"), _UNANSWERABLE),
    "in_a_class": (
        "class A:\n    same = int('999') is int('999')\n" + f("A.same"),
        _UNANSWERABLE,
    ),
}

ERROR_TEXTS: Final = {
    "division": (body("try:\n    1 // 0\nexcept ZeroDivisionError as e:\n    return str(e)"), _UNANSWERABLE),
    "arguments": (body("try:\n    1 + 'a'\nexcept TypeError as e:\n    return e.args"), _UNANSWERABLE),
    "length_of_the_text": (body("try:\n    [][1]\nexcept Exception as e:\n    return len(str(e))"), _UNANSWERABLE),
    "formatted": (body("try:\n    x.a\nexcept AttributeError as e:\n    return f'{e!r}'"), _UNANSWERABLE),
    "of_a_library": (
        body("try:\n    re.compile('(')\nexcept re.error as e:\n    return e.msg", "import re\n"),
        _UNANSWERABLE,
    ),
    "of_json": (
        body("try:\n    json.loads('{')\nexcept ValueError as e:\n    return str(e)", "import json\n"),
        _UNANSWERABLE,
    ),
    "through_a_context": (
        "class C:\n    def __enter__(self):\n        return self\n"
        "    def __exit__(self, kind, error, trace):\n        self.text = str(error)\n        return True\n"
        + body("with C() as c:\n    1 / 0\nreturn c.text"),
        _UNANSWERABLE,
    ),
    "through_any_arguments": (
        "class C:\n    def __enter__(self):\n        return self\n"
        "    def __exit__(self, *all):\n        self.text = str(all[1])\n        return True\n"
        + body("with C() as c:\n    1 / 0\nreturn c.text"),
        _UNANSWERABLE,
    ),
    "through_a_generator": (
        "from contextlib import contextmanager\nlog = []\n@contextmanager\ndef g():\n    try:\n        yield\n"
        "    except Exception as e:\n        log[:] = [str(e)]\n" + body("with g():\n    1 / 0\nreturn log"),
        _UNANSWERABLE,
    ),
    "in_another_one": (
        body(
            "try:\n    try:\n        int('z')\n    except ValueError as e:\n        raise KeyError(str(e))\n"
            "except KeyError as e:\n    return e.args[0]"
        ),
        _UNANSWERABLE,
    ),
    "in_a_group": (
        body("try:\n    1 / 0\nexcept* ZeroDivisionError as g:\n    t = [str(e) for e in g.exceptions]\nreturn t"),
        _UNANSWERABLE,
    ),
    "raised_twice": (
        body(
            "try:\n    try:\n        int('z')\n    except ValueError as e:\n        raise e\n"
            "except ValueError as e:\n    return str(e)"
        ),
        _UNANSWERABLE,
    ),
    "of_unicode": (body("try:\n    b'\\xff'.decode()\nexcept UnicodeError as e:\n    return str(e)"), _UNANSWERABLE),
    "behind_a_raise_of_its_own": (
        body("try:\n    if not x: raise ValueError('a')\n    int('z')\nexcept ValueError as e:\n    return str(e)"),
        _UNANSWERABLE,
    ),
    "line_numbers": (
        body("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    return e.__traceback__.tb_lineno"),
        _REFUSED,
    ),
    "context": (body("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    return e.__context__"), _REFUSED),
    "notes": (body("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    return e.__notes__"), _REFUSED),
}

LIMITS: Final = {
    "memory_caught": (body("try:\n    bytearray(1 << 46)\nexcept Exception:\n    return 'm'"), _UNANSWERABLE),
    "memory_caught_by_name": (
        body("try:\n    bytearray(1 << 46)\nexcept MemoryError:\n    return 'm'"),
        "inadmissible:builtin",
    ),
    "memory_caught_bare": (body("try:\n    bytearray(1 << 46)\nexcept:\n    return 'm'"), _UNANSWERABLE),
    "memory_lost_in_finally": (body("try:\n    bytearray(1 << 46)\nfinally:\n    return 'm'"), _UNANSWERABLE),
    "memory_suppressed": (
        body(
            "with suppress(Exception):\n    bytearray(1 << 46)\nreturn 'm'",
            "from contextlib import suppress\n",
        ),
        _UNANSWERABLE,
    ),
    "memory_in_a_context": (
        "class C:\n    def __enter__(self):\n        pass\n    def __exit__(self, *all):\n        return True\n"
        + body("with C():\n    bytearray(1 << 46)\nreturn 'm'"),
        _UNANSWERABLE,
    ),
    "memory_in_a_group": (
        body("t = 0\ntry:\n    bytearray(1 << 46)\nexcept* Exception:\n    t = 1\nreturn t"),
        _UNANSWERABLE,
    ),
    "memory_by_steps": (
        body(
            "k, n = [], 0\ntry:\n    while n < 500:\n        k.append(bytes(10 ** 6))\n        n += 1\n"
            "except Exception:\n    pass\nreturn n"
        ),
        f"{_UNSTABLE}|{_UNANSWERABLE}|memory|timeout",
    ),
    "depth": (
        "def g(n):\n    try:\n        return g(n + 1)\n    except RecursionError:\n        return n\n" + f("g(0)"),
        _UNSTABLE,
    ),
    "digits_of_an_int": (
        body("try:\n    return len(str(10 ** 5000))\nexcept ValueError:\n    return -1"),
        _UNANSWERABLE,
    ),
    "digits_read": (body("try:\n    return int('1' * 5000) % 7\nexcept ValueError:\n    return -1"), _UNANSWERABLE),
    "time": ("def f(x):\n    while True:\n        pass\n", "timeout"),
}

HASHES_AND_ADDRESSES: Final = {
    "set_of_texts": (f("list({'a', 'b', 'c'})"), _UNSTABLE),
    "set_of_two": (f("next(iter({'a', 'b'}))"), _UNSTABLE),
    "set_popped": (f("{'a', 'b', 'c'}.pop()"), _UNSTABLE),
    "set_of_mixed_types": (f("[str(i) for i in {1, 'a', 2.5, None, (1,)}]"), _UNSTABLE),
    "frozenset": (f("''.join(frozenset('abcdef'))"), _UNSTABLE),
    "dict_from_a_set": (f("list(dict.fromkeys(set('abcdef')))"), _UNSTABLE),
    "update_from_a_set": (body("d = {}\nd.update((k, 1) for k in set('abcdef'))\nreturn list(d)"), _UNSTABLE),
    "key_views": (f("list({'a': 1, 'b': 2, 'c': 3}.keys() & {'a', 'b', 'c'})"), _UNSTABLE),
    "key_views_by_name": (
        f("list(operator.and_(getattr({'a': 1, 'b': 2}, 'keys')(), dict.fromkeys('ab').keys()))", "import operator\n"),
        _UNSTABLE,
    ),
    "counter": (f("list(Counter(set('abcdef')))", "from collections import Counter\n"), _UNSTABLE),
    "max_of_equals": (f("max(set('abcdef'), key=len)"), _UNSTABLE),
    "hash_of_a_text": (f("hash('a')"), "inadmissible:builtin"),
    "hash_by_an_own_method": (
        "class A:\n    def __hash__(self):\n        self.h = hash('a')\n        return self.h\n"
        + body("a = A()\n{a: 1}\nreturn a.h"),
        "inadmissible:builtin",
    ),
    "hash_called": (
        "class A:\n    def __hash__(self):\n        return hash('a')\n" + f("A().__hash__()"),
        "inadmissible:attribute",
    ),
    "hash_decorated": (
        "def g(h):\n    def k(s):\n        s.h = h(s)\n        return 1\n    return k\n"
        "class A:\n    @g\n    def __hash__(self):\n        return hash('a')\n" + body("a = A()\n{a}\nreturn a.h"),
        "inadmissible:builtin",
    ),
    "hash_of_super": (
        "class A:\n    def g(self):\n        return super().__hash__()\n" + f("A().g()"),
        "inadmissible:attribute",
    ),
    "hash_by_name": (f("getattr('a', '__hash__')()"), "inadmissible:call"),
    "collisions_counted": (
        "n = []\nclass A:\n    def __init__(self, v):\n        self.v = v\n    def __hash__(self):\n"
        "        return hash(self.v)\n    def __eq__(self, o):\n        n.append(1)\n        return self.v == o.v\n"
        + body("n.clear()\nd = {A(c): 1 for c in 'abcdefgh'}\nreturn [a.v for a in set(d)]"),
        _UNSTABLE,
    ),
    "address_in_a_repr": (f("repr(object())"), _UNSTABLE),
    "address_of_a_function": (f("str(f)"), _UNSTABLE),
    "lowest_digits": (f("repr(object())[-3]"), f"{_UNSTABLE}|{_UNANSWERABLE}"),
    "digit_that_is_always_0": (f("repr(object())[-2]"), _UNANSWERABLE),
    "length_of_a_repr": (f("len(repr(object()))"), f"{_UNSTABLE}|{_UNANSWERABLE}"),
    "length_in_a_format": (f("len('%s' % f)"), f"{_UNSTABLE}|{_UNANSWERABLE}"),
    "length_in_an_f_string": (f("len(f'{f!r:>{90}}')"), f"{_UNSTABLE}|{_UNANSWERABLE}"),
    "lengths_by_map": (f("sum(map(len, map(str, [f, object()])))"), f"{_UNSTABLE}|{_UNANSWERABLE}"),
    "lengths_by_a_name": (body("g = repr\nreturn len(g(f))"), f"{_UNSTABLE}|{_UNANSWERABLE}"),
    "parity_of_an_address": (f("sum(map(ord, repr(object()))) % 2"), f"{_UNSTABLE}|{_UNANSWERABLE}"),
    "parity_by_join": (f("sum(map(ord, ''.join(map(str, [object()])))) % 2"), f"{_UNSTABLE}|{_UNANSWERABLE}"),
    "length_by_assignment": (body("s = '%s'\ns %= f\nreturn len(s)"), f"{_UNSTABLE}|{_UNANSWERABLE}"),
    "own_repr_within_a_list": ("class A:\n    pass\n" + f("len(str([A()]))"), f"{_UNSTABLE}|{_UNANSWERABLE}"),
    "address_by_super": (
        "class A:\n    def __repr__(self):\n        return super().__repr__()\n" + f("repr(A())[-4:]"),
        _UNSTABLE,
    ),
    "address_by_name": (f("str(getattr([], 'append'))[-5:]"), _UNSTABLE),
    "address_in_a_generator": (f("f'{(i for i in x)}'", ""), f"{_UNSTABLE}|error"),
    "id": (f("id(x) % 2"), "inadmissible:builtin"),
    "memo": (f("copy.deepcopy(x, {})", "import copy\n"), "inadmissible:call"),
    "deepcopy_hook": (
        "import copy\nclass A:\n    def __deepcopy__(self, memo):\n        return list(memo)\n"
        + f("copy.deepcopy(A())"),
        "inadmissible:dunder",
    ),
}

STATE: Final = {
    "mutable_default": ("def f(x, seen=[]):\n    seen.append(x)\n    return len(seen)\n", _UNSTABLE),
    "global_counter": ("n = 0\ndef f(x):\n    global n\n    n += 1\n    return n\n", _UNSTABLE),
    "closure_counter": (
        "def make():\n    n = 0\n    def g(x):\n        nonlocal n\n        n += 1\n        return n\n    return g\n"
        "f = make()\n",
        _UNSTABLE,
    ),
    "attribute_of_the_function": ("def f(x):\n    f.n = getattr(f, 'n', 0) + 1\n    return f.n\n", _UNSTABLE),
    "class_attribute": ("class A:\n    n = 0\ndef f(x):\n    A.n += 1\n    return A.n\n", _UNSTABLE),
    "exhausted_generator": ("g = iter(range(9))\ndef f(x):\n    return next(g)\n", _UNSTABLE),
    "cached_calls": (
        "from functools import lru_cache\n@lru_cache(None)\ndef g(x):\n    return x\n"
        "def f(x):\n    g(x)\n    return g.cache_info().hits\n",
        _UNSTABLE,
    ),
    "instance_kept": (
        "class F:\n    def __init__(self):\n        self.n = 0\n    def __call__(self, x):\n        self.n += 1\n"
        "        return self.n\nf = F()\n",
        _UNSTABLE,
    ),
}

MACHINE: Final = {
    "clock": (f("time.time()", "import time\n"), "inadmissible:import"),
    "today": (f("datetime.date.today().year", "import datetime\n"), "inadmissible:attribute"),
    "now": (f("datetime.now().year", "from datetime import datetime\n"), "inadmissible:attribute"),
    "now_by_name": (f("getattr(datetime, 'now')().year", "from datetime import datetime\n"), "inadmissible:call"),
    "today_by_attrgetter": (
        f("operator.attrgetter('today')(date)()", "import operator\nfrom datetime import date\n"),
        "inadmissible:call",
    ),
    "second_name_by_attrgetter": (
        f("operator.attrgetter('gi_frame', 'year')(x)", "import operator\n"),
        "inadmissible:call",
    ),
    "starred_getattr": (f("getattr(*[x, 'gi_frame'], 'real')"), "inadmissible:call"),
    "time_zone": (f("date(1970, 1, 2).strftime('%s')", "from datetime import date\n"), _UNANSWERABLE),
    "time_zone_in_a_format": (f("f'{date(1970, 1, 2):%s}'", "from datetime import date\n"), _UNANSWERABLE),
    "random": (f("random.random()", "import random\n"), "inadmissible:import"),
    "seeded_random": (f("random.Random(3).randint(0, 9)", "import random\n"), "inadmissible:import"),
    "digest": (f("hashlib.sha256(b'a').hexdigest()", "import hashlib\n"), "inadmissible:import"),
    "checksum": (f("zlib.crc32(b'a')", "import zlib\n"), "inadmissible:import"),
    "maxsize": (f("sys.maxsize", "import sys\n"), "inadmissible:import"),
    "reference_counts": (f("sys.getrefcount(x)", "import sys\n"), "inadmissible:import"),
    "size_of_an_object": (f("[].__sizeof__()"), "inadmissible:attribute"),
    "environment": (f("os.environ", "import os\n"), "inadmissible:import"),
    "input": (f("input()"), "inadmissible:builtin"),
    "file": (f("open('/etc/hostname').read()"), "inadmissible:builtin"),
    "locale": (f("locale.localeconv()", "import locale\n"), "inadmissible:import"),
    "collected_garbage": (
        "log = []\ndef g():\n    try:\n        yield\n    finally:\n        log.append(1)\n"
        + body(
            "log.clear()\nbox = [g()]\nnext(box[0])\nbox.append(box)\ndel box\nkept = [[] for _ in range(2000)]\n"
            "return len(log)"
        ),
        _UNANSWERABLE,
    ),
    "finalizer": ("class A:\n    def __del__(self):\n        pass\n" + f("1"), "inadmissible:dunder"),
    "debug_flag": (f("__debug__"), "inadmissible:dunder"),
    "module_name": (f("__name__"), "inadmissible:dunder"),
    "module_file": (f("__file__"), "inadmissible:dunder"),
    "docstring": ("def f(x):\n    'a'\n    return f.__doc__\n", "inadmissible:attribute"),
    "annotations": ("def f(x: int):\n    return list(f.__annotations__)\n", "inadmissible:attribute"),
    "code": (f("f.__code__.co_consts"), "inadmissible:attribute"),
    "defaults": ("def f(x, y=3):\n    return f.__defaults__\n", "inadmissible:attribute"),
    "globals": (f("f.__globals__"), "inadmissible:attribute"),
    "closure": (f("f.__closure__"), "inadmissible:attribute"),
    "frame_of_a_generator": (body("g = (i for i in x)\nreturn g.gi_frame.f_lineno"), "inadmissible:attribute"),
    "state_of_a_generator": (body("g = (i for i in x)\nreturn g.gi_running"), "inadmissible:attribute"),
}

LANGUAGE: Final = {
    "builtins": (f("__builtins__"), "inadmissible:dunder"),
    "import_function": (f("__import__('os').getpid()"), "inadmissible:dunder"),
    "eval": (f("eval('1')"), "inadmissible:builtin"),
    "star_import": (f("1", "from math import *\n"), "inadmissible:import"),
    "class_of_a_class": (f("x.__class__.__class__('A', (), {})"), "inadmissible:attribute"),
    "class_as_a_value": (f("x.__class__(3)"), "inadmissible:attribute"),
    "subclasses": (f("object.__subclasses__()"), "inadmissible:attribute"),
    "type_of_a_type": (f("type(type(x))('A', (), {})"), "inadmissible:call"),
    "metaclass": ("class M(type):\n    pass\n" + f("1"), "inadmissible:call"),
    "metaclass_keyword": ("class A(metaclass=dict):\n    pass\n" + f("1"), "inadmissible:class"),
    "metaclass_by_another_name": (
        "from abc import ABCMeta\n" + f("ABCMeta('A', (), {})"),
        "inadmissible:class",
    ),
    "class_keywords": ("class A:\n    pass\nclass B(A, x=1):\n    pass\n" + f("1"), "inadmissible:class"),
    "attribute_hook": (
        "class A:\n    def __getattr__(self, n):\n        return n\n" + f("A().z"),
        "inadmissible:dunder",
    ),
    "attribute_in_a_format": (f("'{0.gi_frame}'.format(x)"), "inadmissible:format"),
    "attribute_in_a_pattern": (body("match x:\n    case int(real=r, gi_frame=g):\n        return r"), "inadmissible"),
    "slots_of_frames": ("class A:\n    __slots__ = ('gi_frame',)\n" + f("1"), "inadmissible:dunder"),
    "pattern_of_frames": ("class A:\n    __match_args__ = ('gi_frame',)\n" + f("1"), "inadmissible:dunder"),
    "computed_pattern": ("class A:\n    __match_args__ = tuple(['a'])\n" + f("1"), "inadmissible:dunder"),
    "wraps_with_names": (
        f("functools.wraps(x, assigned=['gi_frame'])(f)", "import functools\n"),
        "inadmissible:call",
    ),
    "wraps_as_a_value": (f("functools.wraps(f).func", "import functools\n"), "inadmissible:call"),
    "enum_of_a_module": (
        f("len(list(IntEnum._convert_('A', 'os', lambda n: True)))", "from enum import IntEnum\n"),
        "inadmissible:attribute",
    ),
    "super_of_another": (
        "class A:\n    def g(self):\n        return super(A, self).g()\n" + f("1"),
        "inadmissible:call",
    ),
    "super_as_a_value": ("class A:\n    def g(self):\n        return [super()]\n" + f("1"), "inadmissible:call"),
    "getattr_of_a_computed_name": (f("getattr(x, 're' + 'al')"), "inadmissible:call"),
    "getattr_as_a_value": (f("map(getattr, [x], ['real'])"), "inadmissible:call"),
    "evaluated_text": (f("List['1'] == List[x]", "from typing import List\n"), "inadmissible:typing"),
    "alias_as_a_value": ("from typing import List\nA = List['1']\n" + f("A == x"), "inadmissible:typing"),
    "coroutine": ("async def g(x):\n    return x\n" + f("1"), "inadmissible:async"),
    "value_that_is_none": (f("x.__class__"), "inadmissible:attribute"),
    "too_long_a_value": (f("'a' * 300"), _UNANSWERABLE),
    "object_as_a_value": ("class A:\n    pass\n" + f("A()"), "unserialisable"),
    "enum_as_a_value": ("from enum import Enum\nclass A(Enum):\n    B = 1\n" + f("A.B"), "unserialisable"),
    "error_as_a_value": (f("1 / 0"), "error:ZeroDivisionError"),
}

UNFAIR: Final = {
    f"{kind}:{name}": case
    for kind, cases in (
        ("identity", IDENTITY),
        ("error_texts", ERROR_TEXTS),
        ("limits", LIMITS),
        ("hashes", HASHES_AND_ADDRESSES),
        ("state", STATE),
        ("machine", MACHINE),
        ("language", LANGUAGE),
    )
    for name, case in cases.items()
}
