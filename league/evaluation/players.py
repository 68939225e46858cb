"""Who is asked: the bare base, the members of a run, and those of a baseline run, side by side over one base.

Owns the way from run folders to a stack and a backend. Owns no questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from league.export import find_weights
from league.storage import ADAPTERS, VERSIONS, read_object, read_rows
from league.types import Side
from populora_agents.backends.torch import TorchBackend
from populora_agents.bases import Base
from populora_agents.config import LoraConfig
from populora_agents.lora import Adapter, load_adapter
from populora_agents.stack import AdapterStack
from populora_agents.types import AdapterVersion

Group = Literal["base", "member", "baseline"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """Somebody who is asked."""

    name: str
    group: Group
    adapter: AdapterVersion | None
    """None is the bare base."""
    folder: Path | None = None
    """Of the adapter, in PEFT's format."""


BARE = Player(name="base", group="base", adapter=None)


def base_of(run: Path) -> str:
    """Return the name of the base that a run was played on.

    Raises:
        StorageError: `run` is no run folder, or is damaged.
    """
    return str(read_object(run / VERSIONS, "base")["base"])


def members_of(run: Path, group: Group, side: Side | None = None) -> list[Player]:
    """Return the members that are in the league of a run by now, with their newest saved weights.

    Args:
        run: The run folder; the run may still be going on.
        group: What they count as.
        side: None is both.

    Raises:
        StorageError: `run` is no run folder, or is damaged.
        ValueError: A member has no saved weights, or there is none.
    """
    last = {row["member_id"]: row["event"] for row in read_rows(run, "ratings")}
    names = [member_id for member_id, event in last.items() if event != "retire"]
    chosen = sorted(name for name in names if side is None or name.startswith(f"{side.value}_"))
    if not chosen:
        raise ValueError(f"{str(run)!r} has no members{f' on the side {side.value}' if side else ''}")
    players = []
    for member_id in chosen:
        version = find_weights(run, member_id).version
        name = member_id if group == "member" else f"{group}/{member_id}"
        players.append(
            Player(
                name=name,
                group=group,
                adapter=AdapterVersion(member_id=name, version=version),
                folder=run / ADAPTERS / member_id / str(version),
            )
        )
    return players


def seat(base: Base, players: Sequence[Player]) -> TorchBackend:
    """Return a backend that speaks for all players; the base carries their adapters from now on.

    Raises:
        ValueError: An adapter that does not fit the base, or adapters of different rank, alpha or targets.
    """
    adapted = [player for player in players if player.folder is not None]
    loaded: list[tuple[Adapter, LoraConfig]] = [load_adapter(player.folder) for player in adapted if player.folder]
    stack, slots = None, {}
    if loaded:
        first = loaded[0][1]
        stack = AdapterStack(base.model, first, slots=len(loaded))
        for slot, (player, (adapter, config)) in enumerate(zip(adapted, loaded, strict=True)):
            if config != first:
                raise ValueError(
                    f"{player.name} has the LoRA settings {config}, {adapted[0].name} has {first}; players of one "
                    "evaluation need the same: evaluate the runs one by one"
                )
            stack.load(slot, adapter)
            if player.adapter is not None:
                slots[player.adapter.member_id] = (slot, player.adapter.version)
    return TorchBackend(base, stack, slots)
