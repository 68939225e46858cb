"""Canonical bytes of values: what counts as a value (exact builtin types only), and when two are equal (equal bytes).

Equal bytes mean: 1 != True != 1.0, -0.0 != 0.0, one NaN, the order of dicts and sets ignored. Owns no literals (that
is `values`) and no judgement. No pickle, repr or JSON: no method of a user's class ever runs here.

The zygote loads this file too, so it imports what is there before anything is imported, and `math` and `struct` (see
`sandbox/zygote.py`). Bytes of a value (n, m in decimal, in ASCII):

    n t f                None, True, False           l<n>: items        list
    i<hex>;              int, lower-case, sign       u<n>: items        tuple
    r<8 bytes>           float, big-endian           e<n>: items        set, by their bytes
    c<16 bytes>          complex                     z<n>: items        frozenset, by their bytes
    s<n>: b<n>:          str (UTF-8), bytes          d<n>: key value    dict, by the bytes of the keys
"""

from __future__ import annotations

import itertools
import math
import struct

TYPE_CHECKING = False
"""True to type checkers alone: importing `typing` would make every fork of the zygote dearer."""
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Final, TypeAlias

    Value: TypeAlias = Any
    """None, bool, int, float, complex, str, bytes, list, tuple, dict, set or frozenset of values; exact types only."""
else:
    Value = object

_NAN = struct.pack(">d", math.nan)


class Limits:
    """Bounds of one encoded value."""

    __slots__ = ("max_bytes", "max_depth", "max_nodes")

    def __init__(self, *, max_bytes: int = 64 * 1024, max_nodes: int = 20_000, max_depth: int = 64) -> None:
        """Keep the bounds.

        Args:
            max_bytes: Length of the encoding.
            max_nodes: Values in it, containers included.
            max_depth: Containers around the innermost value.
        """
        self.max_bytes = max_bytes
        self.max_nodes = max_nodes
        self.max_depth = max_depth


LIMITS: Final = Limits()
"""The bounds that hold wherever no others are given."""


class EncodeError(ValueError):
    """The object is no value, or is beyond the limits."""


class TooLargeError(EncodeError):
    """The value would take more bytes than the limit."""


class DecodeError(ValueError):
    """The bytes are not the canonical encoding of a value within the limits."""


def encode(value: Value, *, limits: Limits = LIMITS) -> bytes:
    """Return the canonical bytes of a value; equal values give equal bytes.

    Raises:
        TooLargeError: More bytes than the limit.
        EncodeError: Not of an exact builtin type, beyond another limit, or two keys or elements that encode the same.
    """
    data = _encode_small(value, _SMALL_DEPTH) if limits is LIMITS else None
    if data is not None and len(data) <= _SMALL_BYTES:
        return data
    try:
        return _Encoder(limits).encode(value, 0)
    except TooLargeError:
        _check_shape(value, limits)
        raise


_SMALL_INT, _SMALL_LENGTH, _SMALL_DEPTH, _SMALL_BYTES = 1 << 60, 64, 2, 4096


def _encode_small(value: Value, depth: int) -> bytes | None:
    """Return the bytes of a value far below the limits, None for any other: most are small, and this is fast."""
    kind = type(value)
    if kind is int:
        if -_SMALL_INT < value < _SMALL_INT:
            return b"i%x;" % value
    elif kind is str:
        if len(value) <= _SMALL_LENGTH and value.isascii():
            return b"s%d:%b" % (len(value), value.encode())
    elif (kind is list or kind is tuple) and depth and len(value) <= _SMALL_LENGTH:
        parts = [part for item in value if (part := _encode_small(item, depth - 1)) is not None]
        if len(parts) == len(value):
            return b"%b%d:%b" % (_CONTAINERS[kind], len(parts), b"".join(parts))
    return None


def _check_shape(value: Value, limits: Limits) -> None:
    """Check the nodes and the nesting alone: a value that breaks those limits too is no value, large or not."""
    level, nodes, depth = [value], 1, 0
    while level := _inside(level, limits.max_nodes + 1):
        nodes += len(level)
        depth += 1
        if nodes > limits.max_nodes or depth > limits.max_depth:
            raise EncodeError("value has too many nodes, or is nested too deeply")


def _inside(level: list[Value], most: int) -> list[Value]:
    items = (item for box in level if type(box) in _CONTAINERS for item in _items(box))
    return list(itertools.islice(items, most))


def _items(box: Value) -> Iterable[Value]:
    return itertools.chain(box.keys(), box.values()) if type(box) is dict else box


class _Encoder:
    """One encoding, with what is left of its budget."""

    __slots__ = ("bytes_left", "max_depth", "nodes_left")

    def __init__(self, limits: Limits) -> None:
        self.bytes_left = limits.max_bytes
        self.nodes_left = limits.max_nodes
        self.max_depth = limits.max_depth

    def spend(self, size: int) -> None:
        """Take `size` bytes off the budget; called before the bytes are made."""
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise TooLargeError("value is too large")

    def encode(self, value: Value, depth: int) -> bytes:
        self.nodes_left -= 1
        if self.nodes_left < 0:
            raise EncodeError("value has too many nodes")
        kind = type(value)
        if kind in _CONTAINERS:
            return self._container(_CONTAINERS[kind], value, depth)
        return self._scalar(kind, value)

    def _scalar(self, kind: type, value: Value) -> bytes:
        if value is None or kind is bool:
            self.spend(1)
            return b"n" if value is None else b"t" if value else b"f"
        if kind is int:
            self.spend(value.bit_length() // 4 + 4)
            return b"i%x;" % value if value >= 0 else b"i-%x;" % -value
        if kind is float:
            self.spend(9)
            return b"r" + _pack_float(value)
        if kind is complex:
            self.spend(17)
            return b"c" + _pack_float(value.real) + _pack_float(value.imag)
        if kind is str or kind is bytes:
            self.spend(len(value))
            data: bytes = value.encode("utf-8", "surrogatepass") if kind is str else value
            self.spend(len(data) - len(value) + 8)
            return (b"s%d:" if kind is str else b"b%d:") % len(data) + data
        raise EncodeError("not a value of an exact builtin type")

    def _container(self, tag: bytes, value: Value, depth: int) -> bytes:
        if depth >= self.max_depth:
            raise EncodeError("value is nested too deeply")
        if len(value) > self.nodes_left:
            raise EncodeError("value has too many nodes")
        self.spend(8)
        head = tag + b"%d:" % len(value)
        inner = depth + 1
        if tag == b"d":
            pairs = sorted((self.encode(key, inner), self.encode(item, inner)) for key, item in value.items())
            _refuse_twins([key for key, _ in pairs])
            return head + b"".join(key + item for key, item in pairs)
        parts = [self.encode(item, inner) for item in value]
        if tag in (b"e", b"z"):
            parts.sort()
            _refuse_twins(parts)
        return head + b"".join(parts)


_CONTAINERS: Final[dict[type, bytes]] = {list: b"l", tuple: b"u", set: b"e", frozenset: b"z", dict: b"d"}


def _pack_float(value: float) -> bytes:
    return _NAN if value != value else struct.pack(">d", value)


def _refuse_twins(parts: list[bytes]) -> None:
    for left, right in itertools.pairwise(parts):
        if left == right:
            raise EncodeError("two keys or elements encode the same")


def decode(data: bytes, *, limits: Limits = LIMITS) -> Value:
    """Return the value whose canonical bytes are `data`; `encode(decode(data)) == data`.

    Raises:
        DecodeError: Anything but the canonical bytes of one value within the limits.
    """
    if len(data) > limits.max_bytes:
        raise DecodeError(f"value has {len(data)} bytes, at most {limits.max_bytes} are read")
    reader = _Reader(data, limits)
    value = reader.read(0)
    if reader.at != len(data):
        raise DecodeError("bytes follow the value")
    return value


_MAX_DIGITS = 9
"""Digits of the longest length that is read."""


class _Reader:
    """A position in canonical bytes."""

    __slots__ = ("at", "data", "max_depth", "nodes_left")

    def __init__(self, data: bytes, limits: Limits) -> None:
        self.data = data
        self.at = 0
        self.nodes_left = limits.max_nodes
        self.max_depth = limits.max_depth

    def read(self, depth: int) -> Value:
        self.nodes_left -= 1
        if self.nodes_left < 0:
            raise DecodeError("value has too many nodes")
        tag = self._take(1)
        if tag in _CONSTANTS:
            return _CONSTANTS[tag]
        if tag in _ITEMS_OF:
            if depth >= self.max_depth:
                raise DecodeError("value is nested too deeply")
            return self._container(tag, depth + 1)
        return self._scalar(tag)

    def _scalar(self, tag: bytes) -> Value:
        if tag == b"i":
            return self._int()
        if tag == b"r":
            return self._float()
        if tag == b"c":
            return complex(self._float(), self._float())
        if tag == b"b":
            return self._take(self._length())
        if tag == b"s":
            try:
                return self._take(self._length()).decode("utf-8", "surrogatepass")
            except UnicodeDecodeError as error:
                raise DecodeError("text is not UTF-8") from error
        raise DecodeError(f"unknown tag {tag!r}")

    def _container(self, tag: bytes, depth: int) -> Value:
        count = self._length()
        if count > self.nodes_left:
            raise DecodeError("value has too many nodes")
        if tag == b"d":
            return self._dict(count, depth)
        if tag not in (b"e", b"z"):
            return _ITEMS_OF[tag](self.read(depth) for _ in range(count))
        last = b""
        items = []
        for _ in range(count):
            item, last = self._ascending(last, depth)
            items.append(item)
        return _hashed(_ITEMS_OF[tag], items, count)

    def _dict(self, count: int, depth: int) -> Value:
        last = b""
        pairs = []
        for _ in range(count):
            key, last = self._ascending(last, depth)
            pairs.append((key, self.read(depth)))
        return _hashed(dict, pairs, count)

    def _ascending(self, last: bytes, depth: int) -> tuple[Value, bytes]:
        """Read a key or element, whose bytes must be greater than those of the one before."""
        start = self.at
        item = self.read(depth)
        raw = self.data[start : self.at]
        if raw <= last:
            raise DecodeError("keys or elements are out of order")
        return item, raw

    def _take(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise DecodeError("value is cut short")
        self.at += size
        return self.data[self.at - size : self.at]

    def _int(self) -> int:
        digits = self._until(b";", len(self.data))
        try:
            value = int(digits, 16)
        except ValueError as error:
            raise DecodeError("number is not canonical") from error
        if b"%x" % value != digits:
            raise DecodeError("number is not canonical")
        return value

    def _length(self) -> int:
        digits = self._until(b":", self.at + _MAX_DIGITS + 1)
        if not digits.isdigit() or (digits[0] == ord("0") and len(digits) > 1):
            raise DecodeError("length is not canonical")
        return int(digits)

    def _until(self, mark: bytes, end: int) -> bytes:
        """Return what stands before `mark`, which must come before place `end`."""
        found = self.data.find(mark, self.at, end)
        if found < 0:
            raise DecodeError("number is cut short")
        digits = self.data[self.at : found]
        self.at = found + 1
        return digits

    def _float(self) -> float:
        data = self._take(8)
        (value,) = struct.unpack(">d", data)
        if value != value and data != _NAN:
            raise DecodeError("NaN is not canonical")
        return float(value)


_CONSTANTS: Final[dict[bytes, Value]] = {b"n": None, b"t": True, b"f": False}
_ITEMS_OF: Final[dict[bytes, Callable[[Iterable[Value]], Value]]] = {
    b"l": list,
    b"u": tuple,
    b"e": set,
    b"z": frozenset,
    b"d": dict,
}


def _hashed(make: Callable[[Iterable[Value]], Value], items: list[Value], count: int) -> Value:
    try:
        value = make(items)
    except TypeError as error:
        raise DecodeError("key or element is not hashable") from error
    if len(value) != count:
        raise DecodeError("two keys or elements are equal")
    return value
