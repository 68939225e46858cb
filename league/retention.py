"""Which saved adapters a run keeps when it does not keep them all.

Pure. Owns the choice. Owns no files; `storage` removes the others once a step with a state is committed, so that what a
resumed run begins with is always among the newest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What is kept of each member, beside its first weights and those that it had as a parent."""

    newest: int
    """Newest saved versions, >= 1; of a member that was replaced, its last ones."""
    every: int = 0
    """Versions saved in steps that this divides, >= 0; 0 is none."""


def kept(
    saved: Mapping[int, Iterable[str]],
    births: Iterable[tuple[int, Iterable[str]]],
    retention: Retention,
    *,
    needed: Iterable[str] = (),
) -> set[str]:
    """Return which adapters stay, as `MEMBER/VERSION`.

    Args:
        saved: Adapters that each committed step saved, by step.
        births: Step of birth and parents of every child; the parents stay as they were then, so that the child can be
            made again.
        retention: How many more.
        needed: Adapters that the last state needs: past members that may still be met.
    """
    parents = {(step, parent) for step, names in births for parent in names}
    versions: dict[str, set[int]] = {}
    stay = set(needed)
    for step, names in saved.items():
        for name in names:
            member, _, version = name.partition("/")
            versions.setdefault(member, set()).add(int(version))
            if (retention.every and step % retention.every == 0) or (step, member) in parents:
                stay.add(name)
    for member, numbers in versions.items():
        stay |= {f"{member}/{version}" for version in {min(numbers), *_newest(numbers, retention.newest)}}
    return stay


def _newest(numbers: Set[int], count: int) -> list[int]:
    return sorted(numbers)[-count:]
