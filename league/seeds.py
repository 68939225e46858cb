"""Where randomness comes from: generators keyed by (root seed, step, names), never by a generator's state.

A resumed run therefore needs no saved generator, and two purposes never share a stream. Owns no draws.
"""

from __future__ import annotations

import hashlib

import numpy as np

_DIGEST_WORDS = 4


def generator(root: int, step: int, *names: str) -> np.random.Generator:
    """Return a fresh generator for one purpose in one step.

    Args:
        root: Root seed of the run, 0 <= root < 2**128.
        step: Step of the run, 0 <= step < 2**32.
        names: Purpose, member ids and the like; order counts.

    Returns:
        A PCG64 generator, the same in every process and on every machine.

    Raises:
        ValueError: `root` or `step` is out of range, or `names` is empty.
    """
    return np.random.Generator(np.random.PCG64(_sequence(root, step, names)))


def seed(root: int, step: int, *names: str) -> int:
    """Return a seed below 2**63 for one purpose in one step, for generators that are not numpy's.

    Args, errors and guarantees are those of `generator`.
    """
    return int(_sequence(root, step, names).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _sequence(root: int, step: int, names: tuple[str, ...]) -> np.random.SeedSequence:
    if not 0 <= root < 2**128:
        raise ValueError(f"`root` must be in [0, 2**128), got {root!r}")
    if not 0 <= step < 2**32:
        raise ValueError(f"`step` must be in [0, 2**32), got {step!r}")
    if not names:
        raise ValueError("`names` must say what the randomness is for, got none")
    digest = hashlib.blake2b(digest_size=4 * _DIGEST_WORDS)
    for name in names:
        encoded = name.encode()
        # The length goes first, so that ("ab", "c") and ("a", "bc") differ.
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    words = np.frombuffer(digest.digest(), dtype="<u4")
    # SeedSequence pads the entropy to four words when there is a spawn key, so no root can pass for root and step.
    return np.random.SeedSequence(root, spawn_key=(step, *map(int, words)))
