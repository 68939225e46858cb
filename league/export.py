"""One member as a folder for the hub: `python -m league.export RUN MEMBER DIR`.

Owns which files are taken and the exit status: 0 done, 1 the disk failed, 2 something the user has to change. The text
of the card is in `card`. Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from league.card import Export, model_card
from league.config_file import ConfigError, load_config
from league.display import complain, tell
from league.lineage import side_of
from league.standings import standings
from league.storage import (
    ADAPTERS,
    COMMITS,
    CONFIG,
    VERSIONS,
    StorageError,
    committed_steps,
    read_object,
    read_rows,
)
from league.types import Row
from populora_agents.bases import NANO_VERSIONS
from populora_agents.lora import CONFIG_FILE, WEIGHTS_FILE, load_adapter

CARD_FILE = "README.md"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Weights of a member as a committed step left them."""

    version: int
    step: int
    """That was the last to write them."""
    sha256: str


def export_member(
    run: Path, member_id: str, out: Path, *, version: int | None = None, base: str | None = None
) -> Export:
    """Write a member's adapter as PEFT loads it, with a model card; all of it or nothing.

    Args:
        run: The run folder; the run may still be going on.
        member_id: A member that is or was in the league.
        out: Made; must not exist, or be an empty folder.
        version: Of its weights; None is the newest saved.
        base: Hub id of the base model, where the run names a folder of this machine.

    Raises:
        ValueError: There is no such member or version, its weights are not those that were committed, `base` is no
            hub id, or `out` exists.
        StorageError: `run` is no run folder, or is damaged.
        OSError: The disk failed.
    """
    if base is not None and not _HUB_ID.fullmatch(base):
        raise ValueError(f"`base` must be a hub id (owner/model), got {base!r}")
    if out.is_symlink() or (out.exists() and (not out.is_dir() or any(out.iterdir()))):
        raise ValueError(f"{str(out)!r} exists already; choose another folder")
    saved = find_weights(run, member_id, version)
    folder = run / ADAPTERS / member_id / str(saved.version)
    weights = (folder / WEIGHTS_FILE).read_bytes()
    if hashlib.sha256(weights).hexdigest() != saved.sha256:
        raise ValueError(f"{folder / WEIGHTS_FILE} is not the file that was committed")
    load_adapter(folder)
    said = str(read_object(run / VERSIONS, "base")["base"])
    name, on_hub = _public(base or said)
    fields: dict[str, Any] = read_object(folder / CONFIG_FILE) | {"base_model_name_or_path": name}
    export = _describe(run, member_id, saved, name, on_hub, fields)
    _write(out, weights, fields, model_card(export))
    return export


def find_weights(run: Path, member_id: str, version: int | None = None) -> Saved:
    """Return the asked-for weights of a member; no version is the newest saved.

    Raises:
        ValueError: There is no such member or version.
        StorageError: `run` is no run folder, or is damaged.
    """
    found: dict[int, Saved] = {}
    members: set[str] = set()
    for step in committed_steps(run):
        for name, sha256 in read_object(run / COMMITS / f"step={step}.json", ADAPTERS)[ADAPTERS].items():
            member, number, file = name.split("/")
            members.add(member)
            if member == member_id and file == WEIGHTS_FILE and (run / ADAPTERS / name).is_file():
                found[int(number)] = Saved(version=int(number), step=step, sha256=sha256)
    if member_id not in members:
        raise ValueError(f"there is no member {member_id!r} in {str(run)!r}; it has {', '.join(sorted(members))}")
    if not found or (version is not None and version not in found):
        raise ValueError(f"{member_id} has no version {version} in {str(run)!r}; it has {sorted(found)}")
    return found[max(found) if version is None else version]


def _public(base: str) -> tuple[str, bool]:
    """Return a base's name without this machine's folders, and whether it is one of the hub's."""
    if base in NANO_VERSIONS:
        return base, False
    if _HUB_ID.fullmatch(base) and not Path(base).exists():
        return base, True
    return Path(base).name or "base", False


def _describe(run: Path, member_id: str, saved: Saved, base: str, on_hub: bool, fields: dict[str, Any]) -> Export:
    tables = {name: _until(read_rows(run, name), saved.step) for name in ("ratings", "matches", "lineage")}
    try:
        caution = load_config((run / CONFIG).read_text(encoding="utf-8")).evolve.caution
    except (ConfigError, UnicodeDecodeError) as error:
        raise StorageError(f"{run / CONFIG} is damaged: {error}") from error
    # A member that was replaced has a standing too: that of its last match.
    ratings = [row for row in tables["ratings"] if row["event"] != "retire"]
    (standing,) = (
        one
        for one in standings(ratings, tables["matches"], tables["lineage"], caution=caution)
        if one.member_id == member_id
    )
    return Export(
        standing=standing,
        version=saved.version,
        step=saved.step,
        run_id=str(read_object(run / VERSIONS, "run_id")["run_id"]),
        base=base,
        on_hub=on_hub,
        fields=fields,
        sha256=saved.sha256,
        lineage=ancestry(tables["lineage"], member_id),
        caution=caution,
        example=_example(_until(read_rows(run, "problems"), saved.step), tables["matches"], member_id),
    )


def _until(rows: Sequence[Row], step: int) -> list[Row]:
    return [row for row in rows if row["step"] <= step]


def ancestry(lineage: Sequence[Row], member_id: str) -> list[Row]:
    """Return the rows of a member and all its ancestors, as they stand in the lineage: oldest first."""
    wanted = {member_id}
    for row in reversed(lineage):
        if row["child_id"] in wanted:
            wanted |= set(row["parents"])
    return [row for row in lineage if row["child_id"] in wanted]


def _example(problems: Sequence[Row], matches: Sequence[Row], member_id: str) -> Row | None:
    """Return the last problem of middling difficulty that the member wrote or met."""
    side = side_of(member_id)
    met = {row["match_id"] for row in matches if row[side.match_column] == member_id}
    own = [row for row in problems if row["valid"] and row["match_id"] in met and row["solve_rate"] is not None]
    return min(reversed(own), key=lambda row: abs(row["solve_rate"] - 0.5), default=None)


def _write(out: Path, weights: bytes, fields: dict[str, Any], card: str) -> None:
    """Write all files under a hidden name beside `out`, and rename."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as scratch:
        new = Path(scratch) / "new"
        new.mkdir()
        (new / WEIGHTS_FILE).write_bytes(weights)
        (new / CONFIG_FILE).write_text(json.dumps(fields, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        (new / CARD_FILE).write_text(card, encoding="utf-8")
        new.rename(out)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do as the command line says; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m league.export",
        description="Write one member of a run as a folder for the hub: adapter in PEFT's format, and a model card. "
        "Nothing is uploaded; that is: hf upload OWNER/NAME DIR",
    )
    parser.add_argument("run", metavar="RUN", type=Path, help="run folder, for example runs/first")
    parser.add_argument("member", metavar="MEMBER", help="for example student_5; also one that was replaced")
    parser.add_argument("out", metavar="DIR", type=Path, help="folder to make; must not exist, or be empty")
    parser.add_argument("--version", metavar="N", type=int, help="of its weights (default: the newest saved)")
    parser.add_argument("--base", metavar="OWNER/MODEL", help="hub id of the base, where the run names a folder")
    given = parser.parse_args(arguments)
    try:
        export = export_member(given.run, given.member, given.out, version=given.version, base=given.base)
    except (ValueError, StorageError) as error:
        complain(str(error))
        return 2
    except OSError as error:
        complain(f"cannot export to {str(given.out)!r}: {error.strerror}")
        return 1
    tell(f"{given.out}: {given.member}, version {export.version}, an adapter of {export.base}")
    if not export.on_hub and export.base not in NANO_VERSIONS:
        tell(f"the base {export.base!r} is no hub id: say --base OWNER/MODEL, so that others can load the adapter")
    return 0


if __name__ == "__main__":
    sys.exit(main())
