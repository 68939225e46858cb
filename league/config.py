"""All settings of a run: what `python -m league.run` takes as flags and what `config.yaml` holds.

Owns the whole and its resolution (groups of fields are in `options`): a field that is None takes the value of the base
model's preset, and a resolved configuration has no None left in it but `out`.
Owns no parsing of flags (`run`) and no files (`config_file`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, TypeVar

import tyro

from league.hall_of_fame import most_past_matches
from league.options import (
    FLAT,
    ClusterOptions,
    EvolveOptions,
    GameOptions,
    LearnOptions,
    MachineOptions,
    MatchOptions,
    MeasureOptions,
    PlayOptions,
    PresetInt,
    ServeOptions,
    at_least,
)
from league.ratings import RatingConstants, RatingRules
from populora_agents.config import Preset
from populora_env.config import GameConfig, VerifierConfig
from populora_env.types import Task

CONFIG_VERSION = 1
"""Grows when a field is renamed or given another meaning; stored in every `config.yaml`."""

BaselineCompute = Literal["per-adapter", "total"]
"""What a single agent is held equal to: one pair of members, or the whole population."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """Co-evolve teachers who pose programming problems and students who solve them, as LoRA adapters of one base."""

    teachers: int = 4
    """Members of the side that proposes, >= 1."""
    students: int = 4
    """Members of the side that solves, >= 1."""
    single_agent: bool = False
    """One adapter proposes to itself, in place of both sides (the AZR baseline); it learns at the students' rate."""
    baseline_compute: BaselineCompute = "per-adapter"
    """Of a single agent: per-adapter plays one match a step, total as many as teachers and students would."""
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
    """Run folder; it must not exist yet, or be empty."""
    serve: Annotated[ServeOptions, FLAT] = field(default_factory=ServeOptions)
    """Who completes prompts."""
    machine: Annotated[MachineOptions, FLAT] = field(default_factory=MachineOptions)
    """What the machine gives and keeps."""
    cluster: Annotated[ClusterOptions, FLAT] = field(default_factory=ClusterOptions)
    """Where the work is done."""
    play: Annotated[PlayOptions, FLAT] = field(default_factory=PlayOptions)
    """How a match is played."""
    learn: Annotated[LearnOptions, FLAT] = field(default_factory=LearnOptions)
    """What the adapters are and how they learn."""
    match: Annotated[MatchOptions, FLAT] = field(default_factory=MatchOptions)
    """Who meets whom, and what a match is worth."""
    evolve: Annotated[EvolveOptions, FLAT] = field(default_factory=EvolveOptions)
    """Who is replaced, and by whose child."""
    measure: Annotated[MeasureOptions, FLAT] = field(default_factory=MeasureOptions)
    """What is measured now and then."""
    ratings: RatingConstants = field(default_factory=RatingConstants)
    """Constants of the ratings."""
    game: GameOptions = field(default_factory=GameOptions)
    """The rest of the game's rules."""
    verifier: VerifierConfig = field(default_factory=VerifierConfig)
    """Limits of the sandbox."""

    def __post_init__(self) -> None:
        """Check the ranges, those that hang together included."""
        at_least(self, teachers=1, students=1, steps=0, seed=0)
        if self.seed >= 1 << 63:
            raise ValueError(f"`seed` must be below 2**63, got {self.seed!r}")
        if not self.base:
            raise ValueError("`base` must name a base model, got ''")
        if self.out == "":
            raise ValueError("`out` must name a folder, got ''")
        for name, value in (
            ("past_opponents", self.match.past_opponents),
            ("cross_eval_every", self.measure.cross_eval_every),
        ):
            if self.single_agent and value:
                raise ValueError(f"`{name}` needs two sides, with `single_agent` it must be 0, got {value!r}")
        if self.game.max_answer_chars != self.verifier.max_answer_chars:
            raise ValueError(
                f"`game.max_answer_chars` and `verifier.max_answer_chars` must agree, "
                f"got {self.game.max_answer_chars!r} and {self.verifier.max_answer_chars!r}"
            )
        if self.serve.backend.startswith("vllm") and self.cluster.executor == "ray":
            raise ValueError(f"`backend` must be torch with `--executor ray`, got {self.serve.backend!r}")
        make_game(self, None)

    @property
    def members(self) -> int:
        """Adapters in training."""
        return 1 if self.single_agent else self.teachers + self.students

    @property
    def matches(self) -> int:
        """Matches a step."""
        return 1 if self.single_agent and self.baseline_compute == "per-adapter" else max(self.teachers, self.students)

    @property
    def stack_slots(self) -> int:
        """Slots that adapters need side by side: one a member, and as many as a step has past opponents at most."""
        return self.members + most_past_matches(self.matches, self.match.past_opponents)

    def rating_rules(self) -> RatingRules:
        """Return how the matches of a resolved configuration make ratings.

        Raises:
            ValueError: It is not resolved.
        """
        match = self.match
        return RatingRules(
            constants=self.ratings,
            engine=match.rating_engine,
            outcome=match.outcome,
            attempts=known(self.play.attempts),
            sigma_inflation=match.sigma_inflation,
        )


def describe_members(config: RunConfig) -> str:
    """Return who is in a league, for people."""
    return "a single agent" if config.single_agent else f"{config.teachers} teachers and {config.students} students"


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
    if unknown := sorted(evolve.weights.keys() - operators.keys()):
        raise ValueError(f"`operators` must be among {', '.join(operators)}; got {unknown[0]!r}")
    game = make_game(config, preset)
    evolve_every = evolve.evolve_every or preset.evolve_every
    proposal_tokens = play.proposal_tokens or preset.max_new_tokens_proposal
    answer_tokens = play.answer_tokens or preset.max_new_tokens_answer
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
            proposal_tokens=proposal_tokens,
            answer_tokens=answer_tokens,
            temperature=play.temperature or preset.temperature,
            top_p=play.top_p or preset.top_p,
        ),
        learn=replace(
            learn,
            lora_rank=learn.lora_rank or preset.lora_rank,
            alpha=learn.alpha or preset.alpha,
            targets=learn.targets or preset.lora.targets,
            teacher_learning_rate=learn.teacher_learning_rate or preset.teacher_learning_rate,
            student_learning_rate=learn.student_learning_rate or preset.student_learning_rate,
            length=learn.length or ("constant" if learn.estimator == "dr_grpo" else "token_mean"),
            length_constant=learn.length_constant or max(proposal_tokens, answer_tokens),
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
