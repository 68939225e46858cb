"""Shares: which requests form one call of a backend, and which rollouts one update.

Pure. Rows that go through a model together touch each other's last bits, so the plan decides who goes with whom, by
slot and by the number of shards that the configuration names, never by where the work is done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from populora_agents.types import DivergedError, Request, Rollout, UpdateReport


def shard_of(slot: int, shards: int) -> int:
    """Return who serves a slot: neighbours go to different shards, so that both sides of a league are spread."""
    return slot % shards


def request_shares(requests: Sequence[Request], slots: Mapping[str, tuple[int, int]], shards: int) -> list[list[int]]:
    """Return the places of each shard's requests, in order; those of one member stay together.

    Args:
        requests: Of any members; those to the bare base are cut into runs of like length.
        slots: Slot and version by member id.
        shards: Shares to make, >= 1.

    Raises:
        ValueError: A request names a member that `slots` does not.
    """
    shares: list[list[int]] = [[] for _ in range(shards)]
    bare = sum(request.adapter is None for request in requests)
    seen = 0
    for place, request in enumerate(requests):
        if request.adapter is None:
            shares[seen * shards // bare].append(place)
            seen += 1
        elif request.adapter.member_id not in slots:
            raise ValueError(f"the backend does not hold member {request.adapter.member_id!r}")
        else:
            shares[shard_of(slots[request.adapter.member_id][0], shards)].append(place)
    return shares


def rollout_shares(rollouts: Sequence[Rollout], slots: Mapping[str, int], shards: int) -> list[list[int]]:
    """Return the places of each shard's rollouts, in order; `slots` is by member id.

    Raises:
        ValueError: A rollout is of a member that `slots` does not name.
    """
    shares: list[list[int]] = [[] for _ in range(shards)]
    for place, rollout in enumerate(rollouts):
        if rollout.member_id not in slots:
            raise ValueError(f"`slots` must name every member, it lacks {rollout.member_id!r}")
        shares[shard_of(slots[rollout.member_id], shards)].append(place)
    return shares


def shared_lessons(
    rollouts: Sequence[Rollout], advantages: ArrayLike, slots: Mapping[str, int], shards: int
) -> list[tuple[list[Rollout], NDArray[np.float64]]]:
    """Return what each shard learns from: its rollouts and their advantages, float64.

    Args:
        rollouts: Of all members, in any order.
        advantages: float [N], one a rollout.
        slots: Slot by member id.
        shards: Shares to make, >= 1.

    Raises:
        ValueError: The lengths differ, or `slots` lacks a member.
    """
    values = np.asarray(advantages, dtype=np.float64)
    if values.shape != (len(rollouts),):
        raise ValueError(f"`advantages` must be {len(rollouts)} numbers, got shape {values.shape!r}")
    shares = rollout_shares(rollouts, slots, shards)
    return [([rollouts[place] for place in places], values[places]) for places in shares]


def one_report(reports: Sequence[UpdateReport | DivergedError], seconds: float) -> UpdateReport:
    """Return what the shards' updates did, as one.

    Args:
        reports: Of each shard; an error where members diverged.
        seconds: Wall clock of all.

    Raises:
        DivergedError: There is one; of several, one that names all members.
    """
    errors = [report for report in reports if isinstance(report, DivergedError)]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise DivergedError(sorted(member for error in errors for member in error.members), "numbers are")
    whole = [report.members for report in reports if isinstance(report, UpdateReport)]
    members = {name: update for part in whole for name, update in part.items()}
    return UpdateReport(members=dict(sorted(members.items())), seconds=seconds)
