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
    format frozenset int isinstance issubclass iter len list map max min next object ord pow print property range
    repr reversed round set slice sorted staticmethod str sum tuple type zip
    False None True NotImplemented Ellipsis
    ArithmeticError AssertionError AttributeError Exception FloatingPointError IndexError KeyError LookupError
    NameError NotImplementedError OverflowError RecursionError RuntimeError StopIteration TypeError
    UnboundLocalError UnicodeDecodeError UnicodeEncodeError UnicodeError ValueError ZeroDivisionError
    """
)
"""Not here: clocks and input, `id` and `hash`, `eval` and its kin, `getattr` and its kin, `super` (its methods begin
with `__`)."""

ONE_ARGUMENT: Final = frozenset({"type", "copy.copy", "copy.deepcopy"})
"""May only be called on the spot, with one argument: a second one makes a class, or a memo full of addresses."""

COMPARED: Final = frozenset({"type"})
"""May only be called as a side of a comparison, by identity or with plain types: `type(type(x))` would be the maker of
classes, and `==` with an object of an own class would hand it the type."""

DUNDER_METHODS: Final = _words(
    """
    __abs__ __add__ __and__ __bool__ __call__ __contains__ __delitem__ __divmod__ __enter__ __eq__ __exit__
    __float__ __floordiv__ __ge__ __getitem__ __gt__ __hash__ __iadd__ __imul__ __index__ __init__ __int__
    __invert__ __isub__ __iter__ __le__ __len__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __next__
    __or__ __pos__ __post_init__ __pow__ __radd__ __repr__ __reversed__ __rmul__ __round__ __rshift__ __rsub__
    __setitem__ __str__ __sub__ __truediv__ __xor__
    """
)
"""Special methods that a program's own classes may define."""

_OPERATORS = """
    abs add and_ concat contains countOf delitem eq floordiv ge getitem gt iadd iand iconcat ifloordiv imod imul index
    indexOf inv invert ior ipow isub itemgetter itruediv ixor le lshift lt mod mul ne neg not_ or_ pos pow rshift
    setitem sub truediv truth xor
"""

MODULES: Final[dict[str, frozenset[str]]] = {
    "abc": _words("ABC abstractmethod"),
    "base64": _words("b16decode b16encode b32decode b32encode b64decode b64encode b85decode b85encode"),
    "binascii": _words("crc32 hexlify unhexlify"),
    "bisect": _words("bisect bisect_left bisect_right insort insort_left insort_right"),
    "calendar": _words("isleap leapdays monthrange weekday"),
    "cmath": _words(
        "acos asin atan cos e exp inf infj isclose isfinite isinf isnan log nan phase pi polar rect sin sqrt tan"
    ),
    "collections": _words("ChainMap Counter OrderedDict abc defaultdict deque namedtuple"),
    "collections.abc": _words("Callable Collection Container Hashable Iterable Iterator Mapping Sequence Set Sized"),
    "copy": _words("copy deepcopy"),
    "dataclasses": _words("asdict astuple dataclass field"),
    "datetime": _words("date datetime time timedelta"),
    "decimal": _words(
        "Decimal ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP"
    ),
    "fractions": _words("Fraction"),
    "functools": _words("cache cmp_to_key lru_cache partial reduce total_ordering"),
    "hashlib": _words("blake2b blake2s md5 sha1 sha224 sha256 sha384 sha512"),
    "heapq": _words("heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest"),
    "itertools": _words(
        """accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile
        filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest"""
    ),
    "json": _words("dumps loads"),
    "math": _words(
        """acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf erfc exp exp2
        expm1 fabs factorial floor fmod frexp fsum gamma gcd hypot inf isclose isfinite isinf isnan isqrt lcm ldexp
        lgamma log log10 log1p log2 modf nan nextafter perm pi pow prod radians remainder sin sinh sqrt sumprod tan
        tanh tau trunc ulp"""
    ),
    "operator": _words(_OPERATORS),
    "re": _words(
        """ASCII DOTALL I IGNORECASE M MULTILINE S VERBOSE X compile escape findall finditer fullmatch match search
        split sub subn"""
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
    "typing": _words(
        "Any Callable Dict FrozenSet Generator Iterable Iterator List Mapping Optional Sequence Set Tuple Union"
    ),
    "unicodedata": _words("bidirectional category combining decimal digit name normalize numeric"),
    "zlib": _words("adler32 compress crc32 decompress"),
}
"""Modules, and which of their attributes may be used. Left out on purpose: `operator.attrgetter`, `functools.wraps`
and `singledispatch`, `typing.get_type_hints`, `string.Formatter`, `dataclasses.fields`, `enum`, which reach attributes,
make methods or evaluate text that the syntax tree does not show; the contexts of `decimal`; everything random."""

ANNOTATIONS_ONLY: Final = "typing"
"""Module whose names are for annotations alone: `List['...'] == List[own]` hands a text that can be evaluated to
`own.__eq__`."""

BANNED_PREFIXES: Final = ("__", "gi_", "cr_", "ag_", "tb_", "f_", "co_")
"""Attributes that begin so lead from a value to its frame, its code or its class, and from there to anything."""

BANNED_ATTRIBUTES: Final = _words(
    """
    astimezone format_map fromtimestamp mro now register samples timestamp today utcfromtimestamp utcnow
    _evaluate _from_iterable _hash
    """
)
"""Clocks, time zones, and format strings that are not seen; classes that claim foreign objects for their own (a
pattern `Own(x)` then reads any attribute); methods of the library that evaluate text, hash, or make sets."""

SET_MAKERS: Final = _words("set frozenset FrozenSet Set")
KEY_VIEWS: Final = _words("keys items")
SET_ALGEBRA: Final = _words("and_ or_ xor sub iand ior ixor isub")
"""Functions of `operator` that work on key views."""

TEXT_MAKERS: Final = _words("args ascii format imod mod namedtuple print repr str")
"""Names that turn an object into text; an exception's `args` may hold text of one."""
ADDRESSED: Final = _words(
    """
    classmethod enumerate filter iter map object property reversed staticmethod zip
    cache cmp_to_key field finditer lru_cache merge partial
    blake2b blake2s md5 sha1 sha224 sha256 sha384 sha512
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
