"""Kinds of zygotes, and how many of each a pool must have by now.

Owns the hash seeds and the count. Starts nothing (that is `pool`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from populora_env.sandbox import frames

HASH_SEEDS: Final = (1, 2, 3, 4, 5, 6, 7, 8)
"""PYTHONHASHSEED values; the first two are always at work, the others start when a job asks for them."""
PLAIN_MALLOC: Final = frozenset(HASH_SEEDS[4:])
"""Hash seeds of the zygotes that do without Python's own allocator."""


class Flavour(IntEnum):
    """What a zygote has loaded."""

    BARE = frames.BARE
    """The language alone: for programs that import nothing."""
    LIBRARY = frames.LIBRARY
    """The standard library, for programs that import."""
    NUMPY = frames.NUMPY
    """The standard library, numpy, and the harness of benchmarks (`harness`)."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What a zygote is for."""

    hash_seed: int
    flavour: Flavour

    @property
    def general(self) -> bool:
        """Whether it also takes jobs that ask for no hash seed; only as many do as there are cores."""
        return self.hash_seed in HASH_SEEDS[:2]


class Wanted:
    """The zygotes that jobs have asked for so far."""

    def __init__(self, general: int) -> None:
        """Want none yet; `general` zygotes of the first two seeds will be, once one of their kind is asked for."""
        self.changed = False
        """Whether something may be missing that was not before."""
        self._general = general
        self._counts: Counter[Kind] = Counter()
        self._asked: set[tuple[Flavour, int | None]] = set()

    def add(self, flavour: Flavour, *, hash_seed: int | None = None) -> None:
        """Note that zygotes of some kind are needed; no seed means those of the first two."""
        if (flavour, hash_seed) in self._asked:
            return
        self._asked.add((flavour, hash_seed))
        if hash_seed is None or Kind(hash_seed, flavour).general:
            seeds = Counter(HASH_SEEDS[number % 2] for number in range(self._general))
        else:
            seeds = Counter({hash_seed: 1})
        for seed, count in seeds.items():
            kind = Kind(seed, flavour)
            if self._counts[kind] < count:
                self._counts[kind] = count
                self.changed = True

    def missing(self, present: Iterable[Kind]) -> list[Kind]:
        """Return the kinds of the zygotes to start beside those that are there."""
        return list((self._counts - Counter(present)).elements())
