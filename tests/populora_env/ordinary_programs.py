"""Programs such as people and models write every day: all must be admitted, and give the value that is named."""

from __future__ import annotations

from typing import Any, Final

ORDINARY: Final[dict[str, tuple[str, str, Any]]] = {
    "sorting": (
        """
def f(x):
    return sorted(x, key=lambda p: (-p[1], p[0]))
""",
        "([('a', 1), ('b', 2)],)",
        None,
    ),
    "counting_words": (
        """
def f(s):
    d = {}
    for w in s.lower().split():
        d[w] = d.get(w, 0) + 1
    return max(d, key=d.get)
""",
        "('a B b',)",
        "b",
    ),
    "slices": (
        """
def f(x):
    x[1:2] = [7, 8]
    del x[0]
    return x[::-1]
""",
        "([1, 2, 3],)",
        [3, 8, 7],
    ),
    "comprehensions": (
        """
def f(n):
    return [(i, j) for i in range(n) if i % 2 for j in range(i)]
""",
        "(4,)",
        [(1, 0), (3, 0), (3, 1), (3, 2)],
    ),
    "dict_comprehension": (
        """
def f(s):
    return {c: s.count(c) for c in s}
""",
        "('aab',)",
        {"a": 2, "b": 1},
    ),
    "set_result": (
        """
def f(x):
    return {i % 3 for i in x}
""",
        "([1, 2, 4],)",
        {1, 2},
    ),
    "set_sorted": (
        """
def f(a, b):
    return sorted(set(a) & set(b))
""",
        "('abc', 'bcd')",
        ["b", "c"],
    ),
    "set_length": (
        """
def f(x):
    return len(set(x)) == len(x)
""",
        "([1, 1],)",
        False,
    ),
    "walrus": (
        """
def f(x):
    return [y for i in x if (y := i * i) > 2]
""",
        "([1, 2],)",
        [4],
    ),
    "star_arguments": (
        """
def f(*args, **kwargs):
    return sum(args)
""",
        "(1, 2, 3)",
        6,
    ),
    "unpacking": (
        """
def f(x):
    a, *b, c = x
    return [*b, a, c]
""",
        "([1, 2, 3, 4],)",
        [2, 3, 1, 4],
    ),
    "while_loop": (
        """
def f(n):
    s = 0
    while n:
        s, n = s + n % 10, n // 10
    return s
""",
        "(123,)",
        6,
    ),
    "loop_with_else": (
        """
def f(n):
    for d in range(2, n):
        if n % d == 0:
            break
    else:
        return True
    return False
""",
        "(7,)",
        True,
    ),
    "recursion": (
        """
def f(n):
    return n if n < 2 else f(n - 1) + f(n - 2)
""",
        "(15,)",
        610,
    ),
    "nested_functions": (
        """
def f(n):
    def go(k, acc):
        return acc if k == 0 else go(k - 1, acc * k)
    return go(n, 1)
""",
        "(5,)",
        120,
    ),
    "closure": (
        """
def f(x):
    n = 0
    def g():
        nonlocal n
        n += x
    g()
    g()
    return n
""",
        "(3,)",
        6,
    ),
    "lambda": (
        """
f = lambda x, y=2: x ** y
""",
        "(3,)",
        9,
    ),
    "composition": (
        """
def compose(*fs):
    def g(x):
        for h in fs:
            x = h(x)
        return x
    return g
f = compose(lambda x: x + 1, str, lambda s: s * 2)
""",
        "(1,)",
        "22",
    ),
    "generator": (
        """
def g(n):
    a, b = 0, 1
    for _ in range(n):
        yield a
        a, b = b, a + b
def f(n):
    return list(g(n))
""",
        "(5,)",
        [0, 1, 1, 2, 3],
    ),
    "generator_methods": (
        """
def g():
    t = 0
    while True:
        x = yield t
        if x is None:
            return t
        t += x
def f(x):
    it = g()
    next(it)
    for i in x:
        it.send(i)
    try:
        it.send(None)
    except StopIteration as stop:
        return stop.value
""",
        "([1, 2],)",
        3,
    ),
    "yield_from": (
        """
def g(x):
    for i in x:
        yield from i
def f(x):
    return [*g(x)]
""",
        "([[1], [2]],)",
        [1, 2],
    ),
    "error_caught": (
        """
def f(x):
    try:
        return 10 // x
    except ZeroDivisionError:
        return None
    finally:
        x = 1
""",
        "(0,)",
        None,
    ),
    "error_of_its_own": (
        """
class TooBig(ValueError):
    def __init__(self, n):
        super().__init__(f'too big: {n}')
        self.n = n
def g(n):
    if n > 3:
        raise TooBig(n)
    return n
def f(x):
    out = []
    for i in x:
        try:
            out.append(g(i))
        except TooBig as e:
            out.append((str(e), e.n))
    return out
""",
        "([1, 5],)",
        [1, ("too big: 5", 5)],
    ),
    "error_with_its_text": (
        """
def f(x):
    try:
        if x < 0:
            raise ValueError('negative')
    except (ValueError, TypeError) as e:
        return f'error: {e}'
""",
        "(-1,)",
        "error: negative",
    ),
    "error_chain": (
        """
def f(x):
    try:
        try:
            return x['a']
        except KeyError as e:
            raise RuntimeError('no key') from e
    except RuntimeError as e:
        return str(e)
""",
        "({},)",
        "no key",
    ),
    "missing_key": (
        """
def f(x):
    try:
        return x['a']
    except KeyError as e:
        return e.args[0]
""",
        "({},)",
        "a",
    ),
    "assertion": (
        """
def f(x):
    try:
        assert x > 0, 'small'
        return x
    except AssertionError as e:
        return str(e)
""",
        "(0,)",
        "small",
    ),
    "name_of_an_error": (
        """
def f(x):
    try:
        int(x)
    except Exception as e:
        return type(e).__name__
""",
        "('z',)",
        "ValueError",
    ),
    "infinite_recursion": (
        """
def g(n):
    return g(n + 1)
def f(x):
    try:
        return g(x)
    except RecursionError:
        return 'deep'
""",
        "(0,)",
        "deep",
    ),
    "none_and_flags": (
        """
def f(x=None, y=True):
    return x is None and y is not False
""",
        "()",
        True,
    ),
    "same_list": (
        """
def f(x):
    a = [x]
    b = a
    return a is b and a is not [x]
""",
        "(1,)",
        True,
    ),
    "sentinel": (
        """
_missing = object()
def g(d, k, default=_missing):
    v = d.get(k, _missing)
    return 'none' if v is _missing else v
def f(d):
    return g(d, 'a')
""",
        "({},)",
        "none",
    ),
    "types": (
        """
def f(x):
    return [type(i) is int for i in x] + [isinstance(x, (list, tuple))]
""",
        "([1, True],)",
        None,
    ),
    "class": (
        """
class Stack:
    def __init__(self):
        self._items = []
    def push(self, x):
        self._items.append(x)
        return self
    def __len__(self):
        return len(self._items)
def f(n):
    s = Stack()
    for i in range(n):
        s.push(i)
    return len(s)
""",
        "(3,)",
        3,
    ),
    "private_attributes": (
        """
class Account:
    def __init__(self, b):
        self.__balance = b
    @property
    def balance(self):
        return self.__balance
    def __fee(self):
        return 1
    def take(self, n):
        self.__balance -= n + self.__fee()
def f(b):
    a = Account(b)
    a.take(3)
    return a.balance
""",
        "(10,)",
        6,
    ),
    "inheritance": (
        """
class A:
    def __init__(self, n):
        self.n = n
    def area(self):
        return self.n
class B(A):
    def __init__(self, n, k):
        super().__init__(n)
        self.k = k
    def area(self):
        return super().area() * self.k
def f(x):
    return [s.area() for s in (A(x), B(x, 3))]
""",
        "(2,)",
        [2, 6],
    ),
    "operators": (
        """
class V:
    def __init__(self, x, y):
        self.x, self.y = x, y
    def __add__(self, o):
        return V(self.x + o.x, self.y + o.y)
    def __rmul__(self, k):
        return V(k * self.x, k * self.y)
    def __iadd__(self, o):
        self.x += o.x
        return self
    def __eq__(self, o):
        return (self.x, self.y) == (o.x, o.y)
    def __hash__(self):
        return hash((self.x, self.y))
    def __repr__(self):
        return f'{self.__class__.__name__}({self.x}, {self.y})'
def f(a, b):
    v = V(a, b) + 2 * V(1, 1)
    v += V(5, 5)
    return repr(v), len({v, V(a, b)})
""",
        "(1, 2)",
        ("V(8, 4)", 2),
    ),
    "context_manager": (
        """
class Log:
    def __init__(self):
        self.lines = []
    def __enter__(self):
        self.lines.append('in')
        return self
    def __exit__(self, kind, error, trace):
        self.lines.append(kind is not None)
        return True
def f(x):
    with Log() as log:
        1 // x
    return log.lines
""",
        "(0,)",
        ["in", True],
    ),
    "contextlib": (
        """
from contextlib import contextmanager, suppress
log = []
@contextmanager
def tag(n):
    log.append(n)
    try:
        yield n
    finally:
        log.append(-n)
def f(x):
    log.clear()
    with suppress(KeyError), tag(x) as t:
        {}[t]
    return log
""",
        "(2,)",
        [2, -2],
    ),
    "dataclass": (
        """
from __future__ import annotations
from dataclasses import dataclass, field, replace, asdict
@dataclass(order=True)
class P:
    name: str
    tags: list[str] = field(default_factory=list)
    def __post_init__(self):
        self.tags.append(self.name)
def f(x):
    return asdict(replace(P(x), name='b')), P('a') < P('b')
""",
        "('a',)",
        ({"name": "b", "tags": ["a", "b"]}, True),
    ),
    "frozen_dataclass": (
        """
from dataclasses import dataclass
@dataclass(frozen=True)
class K:
    a: int
    b: int = 2
def f(x):
    d = {K(1): 'x', K(1, 2): 'y'}
    return len(d), d[K(x)]
""",
        "(1,)",
        (1, "y"),
    ),
    "enum": (
        """
from enum import Enum, auto, IntEnum
class Color(Enum):
    RED = auto()
    BLUE = auto()
    @property
    def low(self):
        return self.name.lower()
class Level(IntEnum):
    LOW = 1
    HIGH = 5
def f(x):
    return [c.low for c in Color], Color(x).value, Level.HIGH > Level.LOW, Color['RED'] is Color.RED
""",
        "(2,)",
        (["red", "blue"], 2, True, True),
    ),
    "named_tuple": (
        """
from collections import namedtuple
from typing import NamedTuple
P = namedtuple('P', 'x y')
class Q(NamedTuple):
    a: int
    b: str = 'z'
    def both(self):
        return f'{self.a}{self.b}'
def f(n):
    p = P(n, y=2)._replace(x=5)
    return p.x + p.y, Q(n).both(), Q(1) == (1, 'z')
""",
        "(1,)",
        (7, "1z", True),
    ),
    "abstract_class": (
        """
from abc import ABC, ABCMeta, abstractmethod
class Shape(ABC):
    @abstractmethod
    def area(self):
        ...
class Other(metaclass=ABCMeta):
    pass
class Square(Shape):
    def __init__(self, a):
        self.a = a
    def area(self):
        return self.a ** 2
def f(a):
    try:
        Shape()
    except TypeError:
        return Square(a).area()
""",
        "(3,)",
        9,
    ),
    "class_methods": (
        """
class T:
    made = 0
    def __init__(self, v):
        self.v = v
    @classmethod
    def of(cls, s):
        return cls(int(s))
    @staticmethod
    def twice(v):
        return 2 * v
    @property
    def v2(self):
        return self.twice(self.v)
    @v2.setter
    def v2(self, n):
        self.v = n // 2
def f(s):
    t = T.of(s)
    t.v2 = 10
    return t.v, t.v2
""",
        "('3',)",
        (5, 10),
    ),
    "slots": (
        """
class P:
    __slots__ = ('x', 'y')
    __match_args__ = ('x', 'y')
    def __init__(self, x, y):
        self.x = x
        self.y = y
def f(a):
    match P(a, 2):
        case P(0, y):
            return y
        case P(x, y=2):
            return x + 1
""",
        "(4,)",
        5,
    ),
    "linked_list": (
        """
class Node:
    def __init__(self, v, nxt=None):
        self.v = v
        self.next = nxt
def f(x):
    head = None
    for v in x:
        head = Node(v, head)
    out = []
    while head is not None:
        out.append(head.v)
        head = head.next
    return out
""",
        "([1, 2, 3],)",
        [3, 2, 1],
    ),
    "iterator_class": (
        """
class Down:
    def __init__(self, n):
        self.n = n
    def __iter__(self):
        return self
    def __next__(self):
        if self.n <= 0:
            raise StopIteration
        self.n -= 1
        return self.n
def f(n):
    return list(Down(n))
""",
        "(3,)",
        [2, 1, 0],
    ),
    "container_class": (
        """
class Grid(dict):
    def __missing__(self, k):
        return 0
def f(x):
    g = Grid()
    for p in x:
        g[p] += 1
    return dict(g)
""",
        "([(0, 1), (0, 1)],)",
        {(0, 1): 2},
    ),
    "descriptor": (
        """
class Positive:
    def __set_name__(self, owner, name):
        self.name = '_' + name
    def __get__(self, obj, kind=None):
        return getattr(obj, '_a', 0)
    def __set__(self, obj, v):
        obj._a = abs(v)
class P:
    a = Positive()
def f(x):
    p = P()
    p.a = x
    return p.a
""",
        "(-3,)",
        3,
    ),
    "decorator": (
        """
import functools
def twice(fn):
    @functools.wraps(fn)
    def inner(*args):
        return fn(fn(*args))
    return inner
@twice
def inc(x):
    return x + 1
def f(x):
    return inc(x), inc.__name__
""",
        "(1,)",
        (3, "inc"),
    ),
    "decorator_with_arguments": (
        """
from functools import wraps
def times(n):
    def deco(fn):
        @wraps(fn)
        def g(x):
            for _ in range(n):
                x = fn(x)
            return x
        return g
    return deco
@times(3)
def f(x):
    return x * 2
""",
        "(1,)",
        8,
    ),
    "memoised": (
        """
from functools import lru_cache, cache
@lru_cache(maxsize=None)
def g(n):
    return n if n < 2 else g(n - 1) + g(n - 2)
def f(n):
    return g(n)
""",
        "(50,)",
        12586269025,
    ),
    "cached_property": (
        """
from functools import cached_property
class A:
    @cached_property
    def v(self):
        return [1]
def f(x):
    a = A()
    a.v.append(x)
    return a.v
""",
        "(2,)",
        [1, 2],
    ),
    "total_ordering": (
        """
from functools import total_ordering
@total_ordering
class V:
    def __init__(self, n):
        self.n = n
    def __eq__(self, o):
        return self.n == o.n
    def __lt__(self, o):
        return self.n < o.n
def f(x):
    return max(map(V, x)).n
""",
        "([1, 3, 2],)",
        3,
    ),
    "functools": (
        """
from functools import reduce, partial, cmp_to_key
def f(x):
    return reduce(lambda a, b: a * b, x, 1), partial(pow, 2)(3), sorted(x, key=cmp_to_key(lambda a, b: b - a))
""",
        "([1, 3, 2],)",
        (6, 8, [3, 2, 1]),
    ),
    "match_statement": (
        """
def f(x):
    match x:
        case []:
            return 'empty'
        case [int(a), *rest] if a > 1:
            return a, rest
        case {'k': v, **more}:
            return v, more
        case str() | bytes():
            return 'text'
        case _:
            return None
""",
        "([2, 3],)",
        (2, [3]),
    ),
    "collections": (
        """
from collections import Counter, defaultdict, deque, OrderedDict
def f(s):
    d = defaultdict(list)
    for i, c in enumerate(s):
        d[c].append(i)
    q = deque(s, maxlen=2)
    q.rotate(1)
    return Counter(s).most_common(1), dict(d), list(q), list(OrderedDict.fromkeys(s))
""",
        "('aab',)",
        ([("a", 2)], {"a": [0, 1], "b": [2]}, ["b", "a"], ["a", "b"]),
    ),
    "heapq": (
        """
import heapq
def f(g, s):
    seen, h = {}, [(0, s)]
    while h:
        d, u = heapq.heappop(h)
        if u in seen:
            continue
        seen[u] = d
        for v, w in g.get(u, []):
            heapq.heappush(h, (d + w, v))
    return seen
""",
        "({'a': [('b', 2)], 'b': [('c', 1)]}, 'a')",
        {"a": 0, "b": 2, "c": 3},
    ),
    "itertools": (
        """
import itertools as it
def f(x):
    return (list(it.permutations(x, 2))[:2], list(it.accumulate(x)),
            [(k, len(list(g))) for k, g in it.groupby(x)], list(it.islice(it.count(3), 2)), [*it.pairwise(x)])
""",
        "([1, 1, 2],)",
        ([(1, 1), (1, 2)], [1, 2, 4], [(1, 2), (2, 1)], [3, 4], [(1, 1), (1, 2)]),
    ),
    "regular_expressions": (
        """
import re
PATTERN = re.compile(r'(\\w)(\\d+)', re.IGNORECASE)
def f(s):
    m = PATTERN.search(s)
    return m.group(1), m.span(), re.sub(r'\\d', lambda t: t[0] * 2, s), re.split('[ab]', s)
""",
        "('a12b',)",
        ("a", (0, 3), "a1122b", ["", "12", ""]),
    ),
    "mathematics": (
        """
import math
from fractions import Fraction
from decimal import Decimal
def f(n):
    exact = str(Fraction(n, 8)), str(Decimal('1.10') + 1)
    return math.isqrt(n), math.gcd(n, 8), math.floor(math.pi), *exact, math.inf > n
""",
        "(20,)",
        (4, 4, 3, "5/2", "2.10", True),
    ),
    "text_tools": (
        """
import string, textwrap
def f(s):
    low = [c for c in s if c in string.ascii_lowercase]
    return low, textwrap.shorten('one two three', 12), s.translate(str.maketrans('a', 'b'))
""",
        "('aB',)",
        (["a"], "one [...]", "bB"),
    ),
    "bisect": (
        """
import bisect
def f(x, v):
    bisect.insort(x, v)
    return x, bisect.bisect_left(x, 3)
""",
        "([1, 4], 3)",
        ([1, 3, 4], 1),
    ),
    "operator": (
        """
from operator import itemgetter, attrgetter, mul
from collections import namedtuple
P = namedtuple('P', ['n', 'v'])
def f(x):
    return sorted(x, key=itemgetter(1)), max([P(1, 2), P(0, 5)], key=attrgetter('v')).n, mul(2, 3)
""",
        "([(1, 2), (0, 1)],)",
        ([(0, 1), (1, 2)], 0, 6),
    ),
    "json": (
        """
import json
def f(s):
    d = json.loads(s)
    d['b'] = [1]
    return json.dumps(d, sort_keys=True)
""",
        "('{\"a\": null}',)",
        '{"a": null, "b": [1]}',
    ),
    "json_error": (
        """
import json
def f(s):
    try:
        return json.loads(s)
    except json.JSONDecodeError:
        return 'bad'
""",
        "('{',)",
        "bad",
    ),
    "dates": (
        """
from datetime import date, timedelta
def f(y):
    d = date(y, 2, 28) + timedelta(days=1)
    return d.isoformat(), d.weekday(), d.strftime('%d/%m/%Y')
""",
        "(2024,)",
        ("2024-02-29", 3, "29/02/2024"),
    ),
    "copies": (
        """
import copy
def f(x):
    y = copy.deepcopy(x)
    y[0].append(1)
    return x, y, y is not x
""",
        "([[0]],)",
        None,
    ),
    "formatting": (
        """
def f(x):
    return f'{x:>6.2f}|{x!r}|{x:,}', '{:05d}'.format(7), '%s-%03d' % ('a', 5), format(255, 'x')
""",
        "(1234.5,)",
        None,
    ),
    "bytes": (
        """
def f(s):
    b = bytearray(s.encode())
    b[0] ^= 1
    return bytes(b), int.from_bytes(b, 'big'), b.hex()
""",
        "('ab',)",
        None,
    ),
    "bits": (
        """
def f(n):
    return bin(n).count('1'), n >> 1, n & -n, ~n, n.bit_length()
""",
        "(12,)",
        (2, 6, 4, -13, 4),
    ),
    "type_hints": (
        """
from typing import Callable, Dict, Generic, List, Optional, TypeVar, Union
T = TypeVar('T')
Vector = List[float]
class Box(Generic[T]):
    def __init__(self, item: T) -> None:
        self.item = item
    def map(self, g: Callable[[T], T]) -> 'Box[T]':
        return Box(g(self.item))
def f(x: Optional[int] = None, y: Union[int, str] = 1) -> Dict[str, List[int]]:
    v: Vector = [1.0]
    return {'a': [Box(x).map(lambda i: i + 1).item, len(v)]}
""",
        "(1,)",
        {"a": [2, 1]},
    ),
    "typed_dict": (
        """
from typing import TypedDict, Protocol
class D(TypedDict):
    a: int
class Sized(Protocol):
    def size(self) -> int: ...
def f(x):
    d: D = {'a': x}
    return d
""",
        "(1,)",
        {"a": 1},
    ),
    "main_guard": (
        """
def f(x):
    return x + 1

if __name__ == '__main__':
    print(f(1))
""",
        "(1,)",
        2,
    ),
    "printing": (
        """
def f(x):
    print('debug', x, sep=' ')
    return x
""",
        "(1,)",
        1,
    ),
    "text_buffer": (
        """
import io
def f(x):
    out = io.StringIO()
    for i in x:
        print(i, end=';', file=out)
    return out.getvalue()
""",
        "([1, 2],)",
        "1;2;",
    ),
    "queue": (
        """
from queue import Queue, PriorityQueue
def f(x):
    q, p = Queue(), PriorityQueue()
    for i in x:
        q.put(i)
        p.put(i)
    return [q.get() for _ in x], [p.get() for _ in x], q.empty()
""",
        "([3, 1],)",
        ([3, 1], [1, 3], True),
    ),
    "duck_typing": (
        """
def f(x):
    return [hasattr(i, '__len__') for i in x], getattr(x, 'real', 'none'), callable(len)
""",
        "([1, 'a'],)",
        None,
    ),
    "simple_namespace": (
        """
from types import SimpleNamespace
def f(x):
    n = SimpleNamespace(a=x)
    n.b = 2
    return n.a + n.b
""",
        "(1,)",
        3,
    ),
    "matrix": (
        """
def f(m):
    return [list(r) for r in zip(*m)], [sum(a * b for a, b in zip(r, r)) for r in m]
""",
        "([[1, 2], [3, 4]],)",
        ([[1, 3], [2, 4]], [5, 25]),
    ),
    "dynamic_programming": (
        """
def f(a, b):
    t = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, c in enumerate(a):
        for j, d in enumerate(b):
            t[i + 1][j + 1] = t[i][j] + 1 if c == d else max(t[i][j + 1], t[i + 1][j])
    return t[-1][-1]
""",
        "('abcd', 'bd')",
        2,
    ),
    "state_machine": (
        """
STATES = {('a', 0): 'b', ('b', 1): 'a'}
def f(x, s='a'):
    for i in x:
        s = STATES.get((s, i), s)
    return s
""",
        "([0, 1, 0],)",
        "b",
    ),
    "statistics": (
        """
import statistics
def f(x):
    return statistics.mean(x), statistics.median(x), statistics.mode(x)
""",
        "([1, 2, 2, 3],)",
        (2, 2.0, 2),
    ),
    "complex_numbers": (
        """
import cmath
def f(z):
    return abs(z), z.conjugate(), cmath.phase(1 + 0j)
""",
        "(3+4j,)",
        (5.0, (3 - 4j), 0.0),
    ),
    "big_ints": (
        """
def f(n):
    return pow(3, n, 1000), n ** 20
""",
        "(10,)",
        (49, 100000000000000000000),
    ),
}
"""By name: the program, the literal of its arguments, and its value (None: any)."""
