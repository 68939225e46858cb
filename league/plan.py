"""What a run would do and take, worked out before anything is written: `python -m league.run --dry-run`.

Owns counts, bounds and the look for a measured pace. Owns no printing of its own (`display`) and guesses nothing: where
no earlier run of the same base has been timed, the time is not known.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from league.config import RunConfig, describe_members, known
from league.config_file import ConfigError, load_config
from league.hall_of_fame import most_past_matches
from league.learning import lora_config
from league.storage import CONFIG, VERSIONS, StorageError, read_metrics, read_object
from populora_agents.bases import Base
from populora_agents.lora import check_rank, target_modules

_TRAINED_BYTES = 16
"""A factor's weight, gradient and two moments, in float32."""
_WEIGHT_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one step asks of the base, at most."""

    matches: int
    proposals: int
    attempts: int
    """Of members, if every proposal is valid."""
    tokens: int
    """Sampled, if every completion takes all the room it has; prompts come on top."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How long an earlier run of the same base took."""

    run: Path
    steps: int
    """That were timed."""
    step_s: float
    """Median, in seconds."""
    work: Work
    """Of one of its steps."""
    threads: int


def plan(config: RunConfig, base: Base, out: Path) -> list[str]:
    """Return the plan of a run, a line each.

    Args:
        config: Resolved, with the number of threads.
        base: The base model.
        out: Where the run folder would be; runs beside it are looked through for one of the same base.

    Raises:
        ValueError: The base has no such targets, or the rank is too large for them.
    """
    lora = lora_config(config)
    check_rank(base.model, lora)
    adapted = target_modules(base.model, lora.targets).values()
    lines = plan_lines(
        config,
        base=base.name,
        base_bytes=sum(weights.numel() * weights.element_size() for weights in base.model.parameters()),
        adapter_parameters=sum(lora.lora_rank * sum(linear.weight.shape) for linear in adapted),
        pace=find_pace(out.parent, base.name),
    )
    return list(lines)


def work(config: RunConfig) -> Work:
    """Return what one step of a resolved configuration asks for."""
    play = config.play
    matches = config.matches + most_past_matches(config.matches, config.match.past_opponents)
    proposals = matches * len(config.tasks) * play.groups * known(play.proposals)
    return _work(config, matches, proposals, yardstick=config.measure.yardstick)


def cross_work(config: RunConfig) -> Work:
    """Return what one cross table of a resolved configuration asks for."""
    matches = config.teachers * config.students
    return _work(config, matches, matches * config.measure.cross_eval_problems, yardstick=0)


def _work(config: RunConfig, matches: int, proposals: int, *, yardstick: int) -> Work:
    play = config.play
    attempts = proposals * known(play.attempts)
    answers = attempts + min(yardstick, proposals)
    tokens = proposals * known(play.proposal_tokens) + answers * known(play.answer_tokens)
    return Work(matches=matches, proposals=proposals, attempts=attempts, tokens=tokens)


def find_pace(folder: Path, base: str) -> Pace | None:
    """Return the pace of the latest run of a base among the run folders in `folder`, None when there is none."""
    for run in sorted((path.parent for path in folder.glob(f"*/{CONFIG}")), key=_changed, reverse=True):
        try:
            if read_object(run / VERSIONS, "base")["base"] != base:
                continue
            config = load_config((run / CONFIG).read_text(encoding="utf-8"))
            lines = [line["seconds"] for line in read_metrics(run) if line["step"]]
            seconds = [sum(took.values()) - took.get("cross_eval", 0.0) for took in lines]
            if seconds:
                return Pace(
                    run=run,
                    steps=len(seconds),
                    step_s=statistics.median(seconds),
                    work=work(config),
                    threads=config.machine.threads,
                )
        except (StorageError, ConfigError, OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # not one of ours, or damaged: it tells nothing
    return None


def _changed(run: Path) -> float:
    return (run / CONFIG).stat().st_mtime


def plan_lines(
    config: RunConfig, *, base: str, base_bytes: int, adapter_parameters: int, pace: Pace | None
) -> Iterator[str]:
    """Yield what a run of a resolved configuration would do, a line each.

    Args:
        config: Resolved, with the number of threads.
        base: Its name.
        base_bytes: Of its weights in memory.
        adapter_parameters: Of one member.
        pace: Of an earlier run of the base.
    """
    asked, steps, members = work(config), known(config.steps), config.members
    past = config.stack_slots - members
    against_past = f" ({past:,} of them against past members)" if past else ""
    yield f"base         {base}, {_size(base_bytes)} of weights"
    yield f"members      {describe_members(config)}, {adapter_parameters:,} parameters each"
    yield f"steps        {steps:,}"
    yield (
        f"a step       {asked.matches:,} matches{against_past}, {asked.proposals:,} proposals, "
        f"at most {asked.attempts:,} attempts, "
        f"at most {asked.tokens:,} sampled tokens (prompts not counted)"
    )
    every, tables = config.measure.cross_eval_every, 0.0
    if every:
        cross = cross_work(config)
        tables = steps // every * cross.tokens / asked.tokens
        yield (
            f"cross table  every {every:,} steps: {cross.matches:,} matches, {cross.proposals:,} proposals, at most "
            f"{cross.attempts:,} attempts, at most {cross.tokens:,} sampled tokens, {cross.tokens / asked.tokens:.2g} "
            "times a step's"
        )
    trained = config.stack_slots * adapter_parameters * _TRAINED_BYTES
    yield (
        f"memory       at least {_size(base_bytes + trained)}: the base and {_size(trained)} of adapters, gradients "
        "and moments; activations and the generation's cache come on top and were not estimated"
    )
    yield f"disk         {_size(members * adapter_parameters * _WEIGHT_BYTES)} a saving, {_savings(config)} savings"
    yield f"time         {_time(asked, steps + tables, config.machine.threads, pace)}"


def _savings(config: RunConfig) -> int:
    """Return how often weights of all members are saved, founding and last step included."""
    steps, every = known(config.steps), config.machine.save_every
    return 1 + steps // every + bool(steps % every)


def _time(asked: Work, steps: float, threads: int, pace: Pace | None) -> str:
    if pace is None:
        return "not known: no earlier run of this base lies beside --out; --steps 3 would tell"
    step_s = pace.step_s * asked.tokens / pace.work.tokens
    scaled = "" if asked == pace.work else f", scaled by {asked.tokens / pace.work.tokens:.2f} (bounds on tokens)"
    other = "" if threads == pace.threads else f", with {pace.threads} threads, not {threads}"
    return (
        f"about {steps * step_s:,.0f} s, {step_s:.2f} s a step: the median of {pace.steps} steps of {pace.run}"
        f"{scaled}{other}"
    )


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"
