"""Who descends from whom: ids of founders and children, and the rows of the lineage table.

Owns names and rows. Owns no choice of parents (`selection`) and no weights. An id is used once in a run, also after its
member has been replaced.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from league import seeds
from league.selection import Replacement
from league.types import Member, Row, Side

FOUNDER = "founder"
"""What the lineage table names as the operator of members without parents."""
LINEAGE_FILE = "lineage.json"
"""Record of a child that was bred outside a league, beside its weights."""

EXPLORE = (0.8, 1.2)
"""By which a birth scales a hyper-parameter, down or up."""

_MEMBER_ID = re.compile(rf"(?P<side>{'|'.join(Side)})_(?P<number>\d+)")


def found(teachers: int, students: int) -> tuple[Member, ...]:
    """Return the first members of a run, teachers first: `teacher_0`, ..., `student_0`, ...

    Raises:
        ValueError: A side would be empty.
    """
    if teachers < 1 or students < 1:
        raise ValueError(f"each side needs a member, got {teachers!r} teachers and {students!r} students")
    return tuple(
        Member(member_id=f"{side.value}_{slot}", side=side, slot=slot)
        for side, size in ((Side.TEACHER, teachers), (Side.STUDENT, students))
        for slot in range(size)
    )


def found_alone() -> tuple[Member, ...]:
    """Return the one member of a league without sides, which plays both roles."""
    return (Member(member_id=f"{Side.AGENT.value}_0", side=Side.AGENT, slot=0),)


def founder_seed(root: int, member_id: str) -> int:
    """Return the seed of a founder's first weights, as the lineage names it and an arena shall use it."""
    return seeds.seed(root, 0, FOUNDER, member_id)


def side_of(member_id: str) -> Side:
    """Return the side that an id names.

    Raises:
        ValueError: It is not one of ours.
    """
    return Side(_parsed(member_id)["side"])


def next_member_id(side: Side, used: Collection[str]) -> str:
    """Return the side's next id: one above the largest number in use.

    Args:
        side: Of the member to be named.
        used: Ids of all members that ever were, of both sides (`child_id` of the lineage table).

    Raises:
        ValueError: An id in `used` is not one of ours.
    """
    largest = -1
    for member_id in used:
        match = _parsed(member_id)
        if match["side"] == side.value:
            largest = max(largest, int(match["number"]))
    return f"{side.value}_{largest + 1}"


def _parsed(member_id: str) -> re.Match[str]:
    match = _MEMBER_ID.fullmatch(member_id)
    if match is None:
        raise ValueError(f"expected ids like 'teacher_0', got {member_id!r}")
    return match


def bear(
    replacements: Sequence[Replacement], used: Collection[str], *, step: int, explore_seed: int | None = None
) -> tuple[Member, ...]:
    """Return the child of each replacement: a new id, its victim's side and slot, version 0.

    Learning rate and temperature are those of the better parent; where births explore, each is scaled by 0.8 or 1.2,
    with even odds. Source: Jaderberg et al., "Population based training of neural networks", 2017.

    Args:
        replacements: Of one evolution.
        used: Ids of all members that ever were.
        step: Step of birth.
        explore_seed: Root of what a birth draws; None where births do not explore.
    """
    taken = set(used)
    children: list[Member] = []
    for replacement in replacements:
        victim = replacement.victim
        member_id = next_member_id(victim.side, taken)
        taken.add(member_id)
        child = Member(
            member_id=member_id,
            side=victim.side,
            slot=victim.slot,
            born=step,
            learning_rate_scale=replacement.parents[0].learning_rate_scale,
            temperature_scale=replacement.parents[0].temperature_scale,
        )
        children.append(child if explore_seed is None else _explore(child, explore_seed))
    return tuple(children)


def _explore(child: Member, root: int) -> Member:
    """Scale what the child inherited."""
    up = seeds.generator(root, child.born, "explore", child.member_id).random(2) < 0.5
    rate, temperature = (EXPLORE[int(bit)] for bit in up)
    return replace(
        child,
        learning_rate_scale=child.learning_rate_scale * rate,
        temperature_scale=child.temperature_scale * temperature,
    )


def founder_row(member: Member, *, seed: int, adapter_sha256: str) -> Row:
    """Return the lineage row of a founder, without `run_id`; `seed` is that of its first weights."""
    return _row(member, (), FOUNDER, {}, seed, adapter_sha256)


def birth_row(
    child: Member, replacement: Replacement, *, parameters: Mapping[str, float], seed: int, adapter_sha256: str
) -> Row:
    """Return the lineage row of a child, without `run_id`.

    Args:
        child: From `bear`.
        replacement: Its parents and operator.
        parameters: All that the operator was given, defaults included.
        seed: The operator's, below 2**63.
        adapter_sha256: Of the child's first weights.
    """
    parents = [parent.member_id for parent in replacement.parents]
    return _row(child, parents, replacement.operator, parameters, seed, adapter_sha256)


def file_record(
    operator: str,
    parents: Sequence[tuple[str, str]],
    *,
    parameters: Mapping[str, float],
    seed: int,
    adapter_sha256: str,
) -> dict[str, object]:
    """Return what `LINEAGE_FILE` holds of a child that was bred outside a league.

    Args:
        operator: Name or dotted path.
        parents: Folder and sha256 of the weights of each, the better one first.
        parameters: All that the operator was given, defaults included.
        seed: The operator's, below 2**63.
        adapter_sha256: Of the child's weights.
    """
    return {
        "operator": operator,
        "parents": [{"folder": folder, "adapter_sha256": sha256} for folder, sha256 in parents],
        "parameters": {name: float(parameters[name]) for name in sorted(parameters)},
        "seed": seed,
        "adapter_sha256": adapter_sha256,
    }


def _row(
    member: Member,
    parents: Sequence[str],
    operator: str,
    parameters: Mapping[str, float],
    seed: int,
    adapter_sha256: str,
) -> Row:
    return {
        "child_id": member.member_id,
        "step": member.born,
        "slot": member.slot,
        "parents": list(parents),
        "operator": operator,
        "parameters": [{"name": name, "value": float(parameters[name])} for name in sorted(parameters)],
        "seed": seed,
        "learning_rate_scale": member.learning_rate_scale,
        "temperature_scale": member.temperature_scale,
        "adapter_sha256": adapter_sha256,
    }
