"""All settings of a run: what `python -m league.run` takes as flags and what `config.yaml` holds.

Owns the fields, their checks and their resolution: a field that is None takes the value of the base model's preset, and
a resolved configuration has no None left in it. Owns no parsing of flags (`run`) and no files (`config_file`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import tyro

from league.ratings import RatingConstants
from populora_env.config import GameConfig, RewardConfig, StyleName, VerifierConfig
from populora_env.types import Task

if TYPE_CHECKING:
    from populora_agents.config import Preset

CONFIG_VERSION = 1
"""Grows when a field is renamed or given another meaning; stored in every `config.yaml`."""

_T = TypeVar("_T")

FLAT = tyro.conf.arg(name="")
"""Mark of a group whose flags carry no prefix."""

_HINT = "(default: the base's preset)"
PresetInt = Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint=_HINT)]
PresetFloat = Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint=_HINT)]
PresetNames = Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="NAME [NAME ...]", help_behavior_hint=_HINT)]
PresetStyle = Annotated[StyleName | None, tyro.conf.arg(metavar="{compact,chat}", help_behavior_hint=_HINT)]


def _at_least(owner: object, **floors: float) -> None:
    """Check fields against floors; None is a field that the preset fills later."""
    for name, floor in floors.items():
        value = getattr(owner, name)
        if value is not None and not value >= floor:
            raise ValueError(f"`{name}` must be at least {floor:g}, got {value!r}")


def _above_zero(owner: object, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if value is not None and not 0 < value < float("inf"):
            raise ValueError(f"`{name}` must be finite and above 0, got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayOptions:
    """How a match is played."""

    references: PresetInt = None
    """Earlier problems shown to the proposer (K), >= 0; induction shows one, whatever K."""
    groups: int = 1
    """Reference sets a match and task, >= 1; each gives one group of proposals."""
    proposals: PresetInt = None
    """Proposals from one reference set (P), >= 1."""
    attempts: PresetInt = None
    """Attempts at each valid problem (G), >= 1."""
    induction_inputs: PresetInt = None
    """Inputs of an induction proposal, >= 2; half of them are hidden from the solver."""
    style: PresetStyle = None
    """How prompts are written."""
    proposal_tokens: PresetInt = None
    """Longest proposal, in tokens, >= 1."""
    answer_tokens: PresetInt = None
    """Longest answer, in tokens, >= 1."""
    temperature: float = 1.0
    """Sampling temperature in training, > 0."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        _at_least(self, references=0, groups=1, proposals=1, attempts=1, induction_inputs=2)
        _at_least(self, proposal_tokens=1, answer_tokens=1)
        _above_zero(self, "temperature")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdamOptions:
    """The optimiser of every member."""

    beta1: float = 0.9
    """Decay of Adam's first moment, in [0, 1)."""
    beta2: float = 0.999
    """Decay of Adam's second moment, in [0, 1)."""
    eps: float = 1e-8
    """Added to the root of Adam's second moment, > 0."""
    weight_decay: float = 0.0
    """Decoupled, times the learning rate; >= 0."""
    max_grad_norm: float = 1.0
    """Longer gradients of a member are scaled down to it, > 0."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        _at_least(self, beta1=0, beta2=0, weight_decay=0)
        _above_zero(self, "eps", "max_grad_norm")
        if not (self.beta1 < 1 and self.beta2 < 1):
            raise ValueError(f"`beta1` and `beta2` must be below 1, got {self.beta1!r} and {self.beta2!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnOptions:
    """What the adapters are and how they learn."""

    lora_rank: PresetInt = None
    """Rank r of every adapter, >= 1."""
    alpha: PresetFloat = None
    """LoRA's alpha, > 0; a delta is scaled by alpha / r."""
    targets: PresetNames = None
    """Last names of the linear maps to adapt."""
    teacher_learning_rate: PresetFloat = None
    """Step size of the teachers' Adam, > 0."""
    student_learning_rate: PresetFloat = None
    """Step size of the students' Adam, > 0."""
    estimator: Literal["reinforce_pp_baseline", "grpo"] = "reinforce_pp_baseline"
    """How rewards become advantages."""
    clip_low: float = 0.2
    """The probability ratio counts down to 1 - clip_low; in [0, 1)."""
    clip_high: float = 0.28
    """The probability ratio counts up to 1 + clip_high; >= 0."""
    max_ratio: float = 10.0
    """Bound on the probability ratio of any token, > 1 + clip_high."""
    micro_batch_tokens: int = 16384
    """Most tokens in one forward and backward, >= 1; bounds memory, not the result."""
    adam: Annotated[AdamOptions, FLAT] = field(default_factory=AdamOptions)
    """The optimiser."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        _at_least(self, lora_rank=1, clip_low=0, clip_high=0, max_ratio=1 + self.clip_high, micro_batch_tokens=1)
        _above_zero(self, "alpha", "teacher_learning_rate", "student_learning_rate")
        if self.targets is not None and not self.targets:
            raise ValueError("`targets` must name at least one linear map")
        if not self.clip_low < 1:
            raise ValueError(f"`clip_low` must be below 1, got {self.clip_low!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolveOptions:
    """Who is replaced, and by whose child."""

    evolution: bool = True
    """Replace the worst of each side every `evolve_every` steps."""
    evolve_every: PresetInt = None
    """Steps between two evolutions (k), >= 1."""
    operators: Annotated[
        tuple[str, ...] | None,
        tyro.conf.arg(metavar="NAME [NAME ...]", help_behavior_hint="(default: all but controls)"),
    ] = None
    """Operators that make children; names that do not exist are refused with the list of those that do."""
    fraction: float = 0.25
    """Share of each side that is replaced (gamma), in [0, 1]; above 0 at least one member goes."""
    caution: float = 1.0
    """Members are compared by mu - caution x sigma, >= 0."""
    min_age: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: twice evolve_every)")] = (
        None
    )
    """Steps that a member lives at least, >= 0: a child's rating is uncertain and would be the lowest at once."""
    crossover_probability: float = 0.5
    """Share of children with two parents, in [0, 1]."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        _at_least(self, evolve_every=1, caution=0, min_age=0)
        for name in ("fraction", "crossover_probability"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"`{name}` must be in [0, 1], got {getattr(self, name)!r}")
        if self.operators is not None and (not self.operators or len(set(self.operators)) != len(self.operators)):
            raise ValueError(f"`operators` must name at least one and none twice, got {self.operators!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GameOptions:
    """The rest of the game's rules; what a preset decides is in `PlayOptions`."""

    rewards: RewardConfig = field(default_factory=RewardConfig)
    """What the two roles are paid."""
    seed_problems: int = 256
    """Problems of our own generator with which the buffer of each task begins, >= 1."""
    buffer_size: int = 16384
    """Problems kept a task; the oldest go first. At least `seed_problems`."""
    max_action_chars: int = 16384
    """Longer actions are malformed, >= 64."""
    max_answer_chars: int = 512
    """Longest literal a solver may write, in characters, >= 16; the verifier has a field of the same name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineOptions:
    """What the machine gives, and what it keeps."""

    threads: int = 0
    """Threads of torch, >= 0; 0 takes all cores."""
    save_every: int = 5
    """Steps between two savings of adapters and optimiser, >= 1; newborn and last adapters are always saved."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        _at_least(self, threads=0, save_every=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """Co-evolve teachers who pose programming problems and students who solve them, as LoRA adapters of one base."""

    teachers: int = 4
    """Members of the side that proposes, >= 1."""
    students: int = 4
    """Members of the side that solves, >= 1."""
    steps: PresetInt = None
    """Steps of the run, >= 0."""
    seed: int = 0
    """Root of all randomness, >= 0; the same seed gives the same run at the same number of threads."""
    base: str = "nano"
    """Base model: nano, a model folder, or a hub id such as Qwen/Qwen2.5-Coder-7B-Instruct."""
    tasks: tuple[Task, ...] = tuple(Task)
    """Task types that every teacher proposes in every match."""
    out: Annotated[str | None, tyro.conf.arg(metavar="FOLDER", help_behavior_hint="(default: a new one in runs/)")] = (
        None
    )
    """Run folder; it must not exist yet."""
    machine: Annotated[MachineOptions, FLAT] = field(default_factory=MachineOptions)
    """What the machine gives and keeps."""
    play: Annotated[PlayOptions, FLAT] = field(default_factory=PlayOptions)
    """How a match is played."""
    learn: Annotated[LearnOptions, FLAT] = field(default_factory=LearnOptions)
    """What the adapters are and how they learn."""
    evolve: Annotated[EvolveOptions, FLAT] = field(default_factory=EvolveOptions)
    """Who is replaced, and by whose child."""
    ratings: RatingConstants = field(default_factory=RatingConstants)
    """TrueSkill's constants."""
    game: GameOptions = field(default_factory=GameOptions)
    """The rest of the game's rules."""
    verifier: VerifierConfig = field(default_factory=VerifierConfig)
    """Limits of the sandbox."""

    def __post_init__(self) -> None:
        """Check the ranges, those that hang together included."""
        _at_least(self, teachers=1, students=1, steps=0, seed=0)
        if self.seed >= 1 << 63:
            raise ValueError(f"`seed` must be below 2**63, got {self.seed!r}")
        if not self.base:
            raise ValueError("`base` must name a base model, got ''")
        if self.out == "":
            raise ValueError("`out` must name a folder, got ''")
        if self.game.max_answer_chars != self.verifier.max_answer_chars:
            raise ValueError(
                f"`game.max_answer_chars` and `verifier.max_answer_chars` must agree, "
                f"got {self.game.max_answer_chars!r} and {self.verifier.max_answer_chars!r}"
            )
        make_game(self, None)


def make_game(config: RunConfig, preset: Preset | None) -> GameConfig:
    """Return the rules of the game; what neither the configuration nor the preset says takes the game's default."""
    play, game, rules = config.play, config.game, preset or GameConfig()
    proposals = play.proposals or (preset.proposals if preset else 1)
    attempts = play.attempts or (preset.attempts if preset else 1)
    return GameConfig(
        tasks=config.tasks,
        rounds=len(config.tasks) * play.groups * proposals,
        solver_seats=attempts,
        references=rules.references if play.references is None else play.references,
        induction_inputs=play.induction_inputs or rules.induction_inputs,
        style=play.style or rules.style,
        rewards=game.rewards,
        seed_problems=game.seed_problems,
        buffer_size=game.buffer_size,
        max_action_chars=game.max_action_chars,
        max_answer_chars=game.max_answer_chars,
    )


def resolve(config: RunConfig, preset: Preset, operators: Mapping[str, bool]) -> RunConfig:
    """Return the configuration with every None but `out` filled.

    Args:
        config: As the user gave it.
        preset: Of the base model.
        operators: All operators there are, by name, and whether they are used when none is named.

    Raises:
        ValueError: An operator that does not exist.
    """
    play, learn, evolve = config.play, config.learn, config.evolve
    if unknown := sorted(set(evolve.operators or ()) - set(operators)):
        raise ValueError(f"`operators` must be among {', '.join(operators)}; got {unknown[0]!r}")
    game = make_game(config, preset)
    evolve_every = evolve.evolve_every or preset.evolve_every
    return replace(
        config,
        steps=preset.steps if config.steps is None else config.steps,
        play=replace(
            play,
            references=game.references,
            proposals=play.proposals or preset.proposals,
            attempts=game.solver_seats,
            induction_inputs=game.induction_inputs,
            style=game.style,
            proposal_tokens=play.proposal_tokens or preset.max_new_tokens_proposal,
            answer_tokens=play.answer_tokens or preset.max_new_tokens_answer,
        ),
        learn=replace(
            learn,
            lora_rank=learn.lora_rank or preset.lora_rank,
            alpha=learn.alpha or preset.alpha,
            targets=learn.targets or preset.lora.targets,
            teacher_learning_rate=learn.teacher_learning_rate or preset.teacher_learning_rate,
            student_learning_rate=learn.student_learning_rate or preset.student_learning_rate,
        ),
        evolve=replace(
            evolve,
            evolve_every=evolve_every,
            min_age=2 * evolve_every if evolve.min_age is None else evolve.min_age,
            operators=evolve.operators or tuple(name for name, usual in operators.items() if usual),
        ),
    )


def known(value: _T | None) -> _T:
    """Return a field of a resolved configuration.

    Raises:
        ValueError: The configuration was not resolved.
    """
    if value is None:
        raise ValueError("this configuration is not resolved: a field is still None")
    return value
