"""One operator on PEFT folders from anywhere: `python -m league.evolve svd_mix adapters/a adapters/b --out child`.

Owns the way from flags to a folder in the format of PEFT, with `lineage.json` beside the weights, and the exit status:
0 done, 1 the disk failed, 2 something the user has to change. Owns no arithmetic (`operators`) and no format
(`populora_agents.lora`). No league is run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import torch

from league.display import complain, tell
from league.lineage import LINEAGE_FILE, file_record
from league.machine import prepare_torch
from league.operators import OPERATORS, Operator, apply, check_parents, find_operator
from populora_agents.config import LoraConfig
from populora_agents.lora import CONFIG_FILE, WEIGHTS_FILE, Adapter, adapter_sha256, load_adapter, save_adapter

_OURS = {CONFIG_FILE, WEIGHTS_FILE, LINEAGE_FILE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A parent as it lies on disk."""

    folder: str
    """As it was given."""
    adapter: Adapter
    config: LoraConfig
    fields: Mapping[str, Any]
    """All of its `adapter_config.json`."""
    sha256: str
    """Of its file of weights, as it lies there."""


def evolve(
    operator: str,
    folders: Sequence[str],
    out: str | Path,
    *,
    seed: int,
    parameters: Mapping[str, float] | None = None,
    base: str | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Make a child of adapters on disk and write it beside its lineage; all of it or nothing.

    Args:
        operator: Name in the table, or the dotted path of an operator of one's own.
        folders: PEFT folders of the parents, the better one first.
        out: Folder of the child; made, with the first parent's `adapter_config.json`.
        seed: Of all that is drawn, in [0, 2**63).
        parameters: Those that differ from the operator's defaults.
        base: Base of all parents, for files that name it differently; None compares what they say.
        overwrite: Whether an adapter that lies at `out` may be replaced; nothing else ever is.

    Returns:
        What `lineage.json` holds.

    Raises:
        ValueError: A parent that is not a plain LoRA adapter, parents that do not fit each other, an operator or
            parameter that does not exist, or an `out` that may not be written.
        OSError: The disk failed.
    """
    out = Path(out)
    _check_free(out, overwrite=overwrite)
    if not 0 <= seed < 2**63:
        raise ValueError(f"`seed` must be in [0, 2**63), got {seed!r}")
    defaults = find_operator(operator).parameters
    parents = [_load(folder) for folder in folders]
    _check_fit(parents, base)
    generator = torch.Generator().manual_seed(seed)
    child = apply(operator, [parent.adapter for parent in parents], generator, parameters)
    fields = {**parents[0].fields, "inference_mode": True}
    if base is not None:
        fields["base_model_name_or_path"] = base
    config = parents[0].config
    record = file_record(
        operator,
        [(parent.folder, parent.sha256) for parent in parents],
        parameters={**defaults, **(parameters or {})},
        seed=seed,
        adapter_sha256=adapter_sha256(child, config),
    )
    _write(out, child, config, fields, record)
    return record


def _load(folder: str) -> Source:
    try:
        adapter, config = load_adapter(folder)
    except ValueError as error:
        # Not every message names the folder, and of two parents one has to know which.
        raise ValueError(str(error) if folder in str(error) else f"{folder}: {error}") from error
    fields = json.loads((Path(folder) / CONFIG_FILE).read_text(encoding="utf-8"))
    sha256 = hashlib.sha256((Path(folder) / WEIGHTS_FILE).read_bytes()).hexdigest()
    return Source(folder=folder, adapter=adapter, config=config, fields=fields, sha256=sha256)


def _check_fit(parents: Sequence[Source], base: str | None) -> None:
    """Check base, rank and alpha as the files say them, then the factors."""
    for parent in parents[1:]:
        for what, mine, first in (
            ("base", base or _base(parent), base or _base(parents[0])),
            ("rank", parent.config.lora_rank, parents[0].config.lora_rank),
            ("alpha", parent.config.alpha, parents[0].config.alpha),
        ):
            if mine != first:
                hint = ", say --base NAME if it is the same" if what == "base" else ""
                raise ValueError(
                    f"parents differ in {what}: {parents[0].folder} has {first!r}, {parent.folder} has {mine!r}{hint}"
                )
    try:
        check_parents([parent.adapter for parent in parents])
    except ValueError as error:
        named = ", ".join(f"parent {place} is {parent.folder}" for place, parent in enumerate(parents))
        raise ValueError(f"{error} ({named})") from error


def _base(parent: Source) -> Any:
    return parent.fields.get("base_model_name_or_path")


def _check_free(out: Path, *, overwrite: bool) -> None:
    """Raise unless `out` does not exist, is an empty folder, or holds an adapter that may be replaced."""
    if not out.exists() and not out.is_symlink():
        return
    if not out.is_dir() or out.is_symlink():
        raise ValueError(f"--out {out} exists already and is no folder of its own")
    found = {path.name for path in out.iterdir()}
    if not found:
        return
    if not overwrite:
        raise ValueError(f"--out {out} exists already, say --overwrite to replace the adapter in it")
    if CONFIG_FILE not in found:
        raise ValueError(f"--out {out} holds no adapter, so nothing in it is replaced")
    if others := found - _OURS:
        raise ValueError(f"--out {out} holds more than an adapter, for example {min(others)!r}")


def _write(out: Path, child: Adapter, config: LoraConfig, fields: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """Write all files under a hidden name beside `out`, and rename."""
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as scratch:
        new, old = Path(scratch) / "new", Path(scratch) / "old"
        save_adapter(new, child, config, "")
        for name, content in ((CONFIG_FILE, fields), (LINEAGE_FILE, record)):
            text = json.dumps(content, indent=2, sort_keys=True)
            (new / name).write_text(text + "\n", encoding="utf-8")
        if out.exists():
            out.rename(old)
        new.rename(out)
        shutil.rmtree(old, ignore_errors=True)


class _Parser(argparse.ArgumentParser):
    """Tells errors as the other commands do: one line."""

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage."""
        raise ValueError(f"{message} (--help explains the flags)")


class _List(argparse.Action):
    """`--list`: prints the operators and ends, whatever else is said."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        """Print and end."""
        for line in _listing().splitlines():
            tell(line)
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m league.evolve",
        description="Make a child of one or two LoRA adapters in PEFT folders. It has their rank, modules and\n"
        "scaling, and lies in a PEFT folder too, with lineage.json beside the weights.",
        epilog=f"operators, their parents and parameters:\n{_listing()}\n\n{_EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("operator", metavar="OP", help="a name from below, or package.module:function")
    parser.add_argument("parents", metavar="PARENT", nargs="+", help="PEFT folder; of two, the better one first")
    parser.add_argument("--out", metavar="DIR", required=True, help="folder of the child; must not exist, or be empty")
    parser.add_argument("--seed", metavar="N", type=int, required=True, help="of all that is drawn, >= 0")
    parser.add_argument("--list", action=_List, nargs=0, help="print the operators with their parameters, and end")
    parser.add_argument("--base", metavar="NAME", help="base of all parents, where their files name it differently")
    parser.add_argument("--overwrite", action="store_true", help="replace an adapter that lies at --out")
    parser.add_argument("--json", action="store_true", help="print the lineage record as one JSON object")
    group = parser.add_argument_group("parameters of the operators, where they shall differ from the defaults")
    group.add_argument(
        "--param",
        metavar="NAME=VALUE",
        nargs="+",
        action="extend",
        default=[],
        help="any, also of an operator of your own",
    )
    for name, owners in _owners().items():
        group.add_argument(f"--{name}", metavar="X", type=float, dest=f"parameter_{name}", help=f"of {owners}")
    return parser


_EXAMPLES = """for example:
  python -m league.evolve svd_perturb adapters/a --out adapters/child --seed 0 --epsilon 0.05
  python -m league.evolve extrapolate adapters/better adapters/worse --out adapters/child --seed 0 --high 1.2
  python -m league.evolve mine:halve adapters/a --out adapters/child --seed 0 --param factor=0.9"""


def _owners() -> dict[str, str]:
    """Return each parameter of the table, and the operators that have it with their defaults."""
    owners: dict[str, list[str]] = {}
    for operator in OPERATORS.values():
        for name, value in operator.parameters.items():
            owners.setdefault(name, []).append(f"{operator.name} ({value:g})")
    return {name: ", ".join(owners[name]) for name in sorted(owners)}


def _listing() -> str:
    return "\n".join(_line(operator) for operator in OPERATORS.values())


def _line(operator: Operator) -> str:
    defaults = " ".join(f"{name}={value:g}" for name, value in operator.parameters.items())
    parents = "PARENT" if operator.arity == 1 else "PARENT PARENT"
    first = (operator.function.__doc__ or "").partition("\n")[0]
    return f"  {operator.name} {parents}  {defaults}".rstrip() + f"\n      {first}"


def _parameters(given: argparse.Namespace) -> dict[str, float]:
    """Return the parameters that were given, as flags or as NAME=VALUE."""
    flags = {name: getattr(given, f"parameter_{name}") for name in _owners()}
    parameters: dict[str, float] = {name: value for name, value in flags.items() if value is not None}
    for text in given.param:
        name, _, value = text.partition("=")
        try:
            number = float(value)
        except ValueError as error:
            raise ValueError(f"--param takes NAME=VALUE with a number, got {text!r}") from error
        if not name or name in parameters:
            raise ValueError(f"--param takes NAME=VALUE, each name once, got {text!r}")
        parameters[name] = number
    return parameters


def main(arguments: Sequence[str] | None = None) -> int:
    """Do as the command line says; return the exit status."""
    prepare_torch(1)
    try:
        given = _parser().parse_intermixed_args(arguments)
        record = evolve(
            given.operator,
            given.parents,
            given.out,
            seed=given.seed,
            parameters=_parameters(given),
            base=given.base,
            overwrite=given.overwrite,
        )
    except ValueError as error:
        complain(str(error))
        return 2
    except OSError as error:
        complain(str(error))
        return 1
    if given.json:
        tell(json.dumps(record, sort_keys=True))
    else:
        tell(f"{given.out}: child of {' and '.join(given.parents)} by {given.operator}, seed {given.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
