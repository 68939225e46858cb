"""What a proposed program may name: builtins, modules with their attributes, methods of its own classes.

Owns the lists alone; `admission` applies them. An entry belongs here if its result depends on nothing but its
arguments (no clock, no randomness, no address or hash, no global state) and it gives no way to run text or to read
an attribute by a name that the syntax tree does not show.
"""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


BUILTINS: Final = _words(
    """
    abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate filter float
    format frozenset getattr hasattr int isinstance issubclass iter len list map max min next object ord pow print
    property range repr reversed round set slice sorted staticmethod str sum super tuple type zip
    False None True NotImplemented Ellipsis
    ArithmeticError AssertionError AttributeError BufferError ConnectionError EOFError Exception FileExistsError
    FileNotFoundError FloatingPointError IndexError KeyError LookupError NameError NotImplementedError OSError
    OverflowError PermissionError RecursionError RuntimeError StopIteration TimeoutError TypeError UnboundLocalError
    UnicodeDecodeError UnicodeEncodeError UnicodeError UserWarning ValueError Warning ZeroDivisionError
    """
)
"""Not here: clocks and input, `id`, `eval` and its kin, `setattr`; `hash` is for `__hash__` alone. `MemoryError` and
`BaseException` are not, since a value must not hang on where memory ends."""

ONE_ARGUMENT: Final = frozenset({"type", "copy.copy", "copy.deepcopy"})
"""May only be called on the spot, with one argument: a second one makes a class, or a memo full of addresses."""

COMPARED: Final = frozenset({"type"})
"""May only be called as a side of a comparison, by identity or with plain types, or for its `__name__`:
`type(type(x))` would be the maker of classes, and `==` with an object of an own class would hand it the type."""

READERS: Final = frozenset({"getattr"})
"""May only be called on the spot, with a constant name that is admitted as an attribute: as plain as the attribute."""
ASKERS: Final = frozenset({"hasattr"})
"""May only be called on the spot, with a constant name of any kind: whether an attribute is there leads nowhere."""
READER_MAKERS: Final = frozenset({"operator.attrgetter"})
"""May only be called on the spot, with nothing but constant names that are admitted as attributes."""

BARE: Final = frozenset({"super"})
"""May only be called on the spot, without arguments, to read an attribute."""

DECORATORS: Final = frozenset({"functools.wraps"})
"""May only be called as a decorator, with one argument: with more it copies attributes whose names are not seen, and
what it gives leads to the function that does so."""

METACLASS: Final = "abc.ABCMeta"
"""The one metaclass that a class may have."""

DUNDER_METHODS: Final = _words(
    """
    __abs__ __add__ __and__ __bool__ __bytes__ __call__ __ceil__ __complex__ __contains__ __delitem__ __divmod__
    __enter__ __eq__ __exit__ __float__ __floor__ __floordiv__ __format__ __ge__ __get__ __getitem__ __gt__ __hash__
    __iadd__ __iand__ __ifloordiv__ __ilshift__ __imatmul__ __imod__ __imul__ __index__ __init__ __int__ __invert__
    __ior__ __ipow__ __irshift__ __isub__ __iter__ __itruediv__ __ixor__ __le__ __len__ __lshift__ __lt__ __matmul__
    __missing__ __mod__ __mul__ __ne__ __neg__ __new__ __next__ __or__ __pos__ __post_init__ __pow__ __radd__ __rand__
    __rdivmod__ __repr__ __reversed__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__ __round__
    __rpow__ __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __set__ __set_name__ __setitem__ __str__ __sub__
    __truediv__ __trunc__ __xor__
    """
)
"""Special methods that a program's own classes may define, and call of `super()`."""
SECRET_METHODS: Final = frozenset({"__hash__"})
"""Of these, those that may not be called: hashes of objects are addresses, those of texts hang on the seed."""
SUNDER_ATTRIBUTES: Final = _words("_ _value_ _name_ _missing_ _ignore_ _order_ _generate_next_value_")
"""Names of the form `_x_` that are allowed; others are the inner ways of enums, one of which reads whole modules."""

_OPERATORS = """
    abs add and_ attrgetter concat contains countOf delitem eq floordiv ge getitem gt iadd iand iconcat ifloordiv imod
    imul index indexOf inv invert ior ipow isub itemgetter itruediv ixor le lshift lt mod mul ne neg not_ or_ pos pow
    rshift setitem sub truediv truth xor
"""

MODULES: Final[dict[str, frozenset[str]]] = {
    "__future__": _words("annotations"),
    "abc": _words("ABC ABCMeta abstractmethod"),
    "base64": _words("b16decode b16encode b32decode b32encode b64decode b64encode b85decode b85encode"),
    "binascii": _words("hexlify unhexlify"),
    "bisect": _words("bisect bisect_left bisect_right insort insort_left insort_right"),
    "calendar": _words("isleap leapdays monthrange weekday"),
    "cmath": _words(
        "acos asin atan cos e exp inf infj isclose isfinite isinf isnan log nan phase pi polar rect sin sqrt tan"
    ),
    "collections": _words("ChainMap Counter OrderedDict abc defaultdict deque namedtuple"),
    "collections.abc": _words(
        """Callable Collection Container Generator Hashable Iterable Iterator Mapping MutableMapping MutableSequence
        MutableSet Reversible Sequence Set Sized"""
    ),
    "contextlib": _words("contextmanager nullcontext suppress"),
    "copy": _words("copy deepcopy"),
    "dataclasses": _words("FrozenInstanceError asdict astuple dataclass field replace"),
    "datetime": _words("date datetime time timedelta timezone"),
    "decimal": _words(
        "Decimal ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP"
    ),
    "enum": _words("Enum Flag IntEnum IntFlag StrEnum auto unique"),
    "fractions": _words("Fraction"),
    "functools": _words("cache cached_property cmp_to_key lru_cache partial reduce total_ordering wraps"),
    "heapq": _words("heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest"),
    "itertools": _words(
        """accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile
        filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest"""
    ),
    "io": _words("StringIO"),
    "json": _words("JSONDecodeError dumps loads"),
    "math": _words(
        """acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf erfc exp exp2
        expm1 fabs factorial floor fmod frexp fsum gamma gcd hypot inf isclose isfinite isinf isnan isqrt lcm ldexp
        lgamma log log10 log1p log2 modf nan nextafter perm pi pow prod radians remainder sin sinh sqrt sumprod tan
        tanh tau trunc ulp"""
    ),
    "numbers": _words("Complex Integral Number Rational Real"),
    "operator": _words(_OPERATORS),
    "queue": _words("Empty LifoQueue PriorityQueue Queue"),
    "re": _words(
        """ASCII DOTALL I IGNORECASE M MULTILINE Match Pattern S VERBOSE X compile error escape findall finditer
        fullmatch match search split sub subn"""
    ),
    "statistics": _words(
        """fmean geometric_mean harmonic_mean mean median median_high median_low mode multimode pstdev pvariance stdev
        variance"""
    ),
    "string": _words(
        """ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits printable punctuation
        whitespace"""
    ),
    "struct": _words("calcsize pack unpack"),
    "textwrap": _words("dedent fill indent shorten wrap"),
    "types": _words("MappingProxyType SimpleNamespace"),
    "typing": _words(
        """Any Callable ClassVar Collection Container Counter DefaultDict Deque Dict Final FrozenSet Generator Generic
        Hashable Iterable Iterator List Literal Mapping MutableMapping MutableSequence NamedTuple NoReturn Optional
        OrderedDict Protocol Reversible Self Sequence Set Sized Tuple Type TypeAlias TypeVar TypedDict Union"""
    ),
    "unicodedata": _words("bidirectional category combining decimal digit name normalize numeric"),
}
"""Modules, and which of their attributes may be used. Left out on purpose: `functools.singledispatch`,
`operator.methodcaller`, `typing.get_type_hints`, `string.Formatter`, `dataclasses.fields` and `make_dataclass`, which
reach attributes, make methods or evaluate text that the syntax tree does not show; the contexts of `decimal`; digests,
compression and all that is random, seeded or not: no reader can work out what they give."""

ANNOTATIONS_ONLY: Final = "typing"
"""Module whose names are for annotations, aliases of types and base classes: `List['...'] == List[own]` hands a text
that can be evaluated to `own.__eq__`."""
TYPING_BASES: Final = frozenset({"typing.Generic", "typing.NamedTuple", "typing.Protocol", "typing.TypedDict"})
"""Names of `typing` that may stand among the bases of a class."""

BANNED_PREFIXES: Final = ("gi_", "cr_", "ag_", "tb_", "f_", "co_")
"""Attributes that begin so lead from a value to its frame or its code, as those of the form `__x__` lead to its class,
and from there to anything."""

BANNED_ATTRIBUTES: Final = _words(
    """
    astimezone format_map fromtimestamp mro now register samples timestamp today utcfromtimestamp utcnow
    _convert _evaluate _from_iterable _hash
    """
)
"""Clocks, time zones, and format strings that are not seen; classes that claim foreign objects for their own (a
pattern `Own(x)` then reads any attribute); methods of the library that evaluate text, hash, or make sets."""

SET_MAKERS: Final = _words("set frozenset FrozenSet Set")
KEY_VIEWS: Final = _words("keys items")
SET_ALGEBRA: Final = _words("and_ or_ xor sub iand ior ixor isub")
"""Functions of `operator` that work on key views."""

TEXT_MAKERS: Final = _words("__format__ __repr__ __str__ args ascii format imod mod namedtuple print repr str")
"""Names that turn an object into text; an exception's `args` may hold text of one."""
ADDRESSED: Final = _words(
    """
    classmethod enumerate filter iter map object property reversed staticmethod zip
    attrgetter cache cached_property cmp_to_key field finditer getattr lru_cache merge partial super
    contextmanager nullcontext suppress Queue LifoQueue PriorityQueue StringIO SimpleNamespace
    accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile filterfalse
    groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest
    """
)
"""What makes objects that are shown with their address."""
CONSUMERS: Final = _words(
    "all any bytes Counter deque dict extend frozenset fsum join len list max min next prod set sorted sum tuple update"
)
"""What goes through an iterable and keeps nothing of it."""
PLAIN_ATTRIBUTES: Final = _words(
    """
    ascii_letters ascii_lowercase ascii_uppercase digits hexdigits octdigits printable punctuation whitespace
    e inf infj nan pi tau args day days denominator hour imag minute month numerator real second seconds year
    """
)
"""Attributes, and names of modules, that are no functions."""
