"""The groups of settings that make up a run's configuration, with their ranges.

Owns what one group can check alone. What hangs together across groups, and what the presets fill in, is in `config`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Annotated, Literal, get_args

import tyro

from league.hall_of_fame import PastDraw
from league.machine import check_device
from league.matchmaking import SchemeName
from league.ratings import OutcomeScheme, RatingEngine
from league.retention import Retention
from league.selection import ParentScheme
from league.tracking import TrackerName, check_tracker
from populora_agents.backends.vllm_config import EngineDtype
from populora_agents.config import AdamConfig, EstimatorName, LengthHandling
from populora_env.config import RewardConfig, StyleName

FLAT = tyro.conf.arg(name="")
"""Mark of a group whose flags carry no prefix."""


def _choices(names: object) -> str:
    """Return how a flag shows the values of a `Literal`."""
    return "{" + ",".join(get_args(names)) + "}"


_HINT = "(default: the base's preset)"
PresetInt = Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint=_HINT)]
PresetFloat = Annotated[float | None, tyro.conf.arg(metavar="FLOAT", help_behavior_hint=_HINT)]
PresetNames = Annotated[tuple[str, ...] | None, tyro.conf.arg(metavar="NAME [NAME ...]", help_behavior_hint=_HINT)]
PresetLength = Annotated[
    LengthHandling | None,
    tyro.conf.arg(
        metavar=_choices(LengthHandling),
        help_behavior_hint="(default: constant for dr_grpo, else token_mean)",
    ),
]
PresetLengthConstant = Annotated[
    int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: the longest completion allowed)")
]
PresetStyle = Annotated[StyleName | None, tyro.conf.arg(metavar=_choices(StyleName), help_behavior_hint=_HINT)]


def at_least(owner: object, **floors: float) -> None:
    """Check that fields are finite and not below their floors; None is a field that the preset fills later."""
    for name, floor in floors.items():
        value = getattr(owner, name)
        if value is not None and not floor <= value < float("inf"):
            finite = "finite and " if value == float("inf") else ""
            raise ValueError(f"`{name}` must be {finite}at least {floor:g}, got {value!r}")


def _above_zero(owner: object, *names: str) -> None:
    for name in names:
        value = getattr(owner, name)
        if value is not None and not 0 < value < float("inf"):
            raise ValueError(f"`{name}` must be finite and above 0, got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayOptions:
    """How a match is played."""

    references: PresetInt = None
    """Earlier problems shown to the proposer (K), >= 0; fewer where the base's context has no room for them. Induction
    shows one, whatever K."""
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
    temperature: PresetFloat = None
    """Sampling temperature in training, > 0."""
    top_p: PresetFloat = None
    """Draw from the most likely tokens that together have at least this probability, in (0, 1]; below 1 the importance
    ratio still is about the whole distribution."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        at_least(self, references=0, groups=1, proposals=1, attempts=1, induction_inputs=2)
        at_least(self, proposal_tokens=1, answer_tokens=1)
        _above_zero(self, "temperature", "top_p")
        if self.top_p is not None and self.top_p > 1:
            raise ValueError(f"`top_p` must be at most 1, got {self.top_p!r}")


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
    """Learning rate of the teachers' Adam, > 0."""
    student_learning_rate: PresetFloat = None
    """Learning rate of the students' Adam, > 0."""
    trainer: Literal["fused", "peft"] = "fused"
    """All members in one update, or one PEFT model after the other: slow, a reference for what the first computes."""
    estimator: EstimatorName = "reinforce_pp_baseline"
    """How rewards become advantages."""
    length: PresetLength = None
    """A member's loss is its mean over tokens, the mean over rollouts of their means, or their sums divided by
    `length_constant`."""
    length_constant: PresetLengthConstant = None
    """Tokens that a rollout's sum is divided by under `--length constant`, >= 1."""
    clip_low: float = 0.2
    """The probability ratio counts down to 1 - clip_low; in [0, 1)."""
    clip_high: float = 0.28
    """The probability ratio counts up to 1 + clip_high; >= 0."""
    max_ratio: float = 10.0
    """Bound on the probability ratio of any token, > 1 + clip_high."""
    kl_coefficient: float = 0.0
    """Of the divergence from the bare base in the loss, >= 0; 0 neither punishes nor computes it."""
    micro_batch_tokens: int = 16384
    """Most tokens in one forward and backward, >= 1; bounds memory, not the result."""
    shared_row_tokens: int = 2048
    """Completions of one prompt are computed in one row of at most so many tokens, >= 0; 0 switches it off."""
    gradient_checkpointing: bool = False
    """Compute activations again in the backward instead of keeping them: less memory, more time, the same result."""
    adam: Annotated[AdamConfig, FLAT] = field(default_factory=AdamConfig)
    """The optimiser."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        at_least(self, lora_rank=1, clip_low=0, clip_high=0, max_ratio=1 + self.clip_high, micro_batch_tokens=1)
        at_least(self, length_constant=1, kl_coefficient=0, shared_row_tokens=0)
        _above_zero(self, "alpha", "teacher_learning_rate", "student_learning_rate")
        if self.targets is not None and not self.targets:
            raise ValueError("`targets` must name at least one linear map")
        if not self.clip_low < 1:
            raise ValueError(f"`clip_low` must be below 1, got {self.clip_low!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchOptions:
    """Who meets whom, and what a match is worth."""

    matchmaking: SchemeName = "pfsp"
    """Opponents are drawn by p(1 - p) of the expected result, drawn evenly, taken in turn, or always the present member
    of the same slot."""
    exploration: float = 0.0
    """Share of a pfsp draw that is even, whatever the ratings say, in [0, 1]."""
    past_opponents: float = 0.0
    """Share of all matches that living members play, and learn from, against saved past versions of the other side, in
    [0, 1). They come on top of those among the living, and rate nobody."""
    past_draw: PastDraw = "pfsp"
    """Past opponents are drawn by p(1 - p) of the rating that they had when they were saved, or evenly."""
    hall_size: int = 64
    """Saved past versions of each side that may be met, >= 1: a fair sample of all that were saved after playing."""
    outcome: OutcomeScheme = "expected"
    """A match is one game, won by whoever did better than expected, or one game an attempt."""
    rating_engine: RatingEngine = "trueskill"
    """What computes the ratings; openskill needs that package."""
    sigma_inflation: float = 0.0
    """Standard deviation that a rating gains with each update of its member's weights, >= 0, up to the prior's."""

    def __post_init__(self) -> None:
        """Check the ranges, and that the engine is there."""
        at_least(self, exploration=0, sigma_inflation=0, past_opponents=0, hall_size=1)
        if not self.past_opponents < 1:
            raise ValueError(f"`past_opponents` must be below 1, got {self.past_opponents!r}")
        if self.exploration > 1:
            raise ValueError(f"`exploration` must be at most 1, got {self.exploration!r}")
        if self.rating_engine == "openskill" and find_spec("openskill") is None:
            raise ValueError("`rating_engine` openskill needs a package: pip install 'populora-league[openskill]'")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolveOptions:
    """Who is replaced, and by whose child."""

    evolution: bool = True
    """Replace the worst of each side every `evolve_every` steps."""
    evolve_every: PresetInt = None
    """Steps between two evolutions (k), >= 1."""
    operators: Annotated[
        tuple[str, ...] | None,
        tyro.conf.arg(metavar="NAME[=WEIGHT] [NAME[=WEIGHT] ...]", help_behavior_hint="(default: those of the paper)"),
    ] = None
    """Operators that make children: svd_perturb, layer_gaussian, component_mask, full_gaussian (mutations), dare,
    layer_select, svd_mix, extrapolate (crossovers), copy_parent, linear_0_5 (controls), ties, slerp (extras), or
    package.module:function. A weight, 1 where none is given, says how often beside those with as many parents."""
    fraction: float = 0.25
    """Share of each side that is replaced (gamma), in [0, 1]; above 0 at least one member goes, at most all but one. A
    side of one replaces its member by a mutant of it."""
    caution: float = 1.0
    """Members are compared by mu - caution x sigma, >= 0."""
    min_age: Annotated[int | None, tyro.conf.arg(metavar="INT", help_behavior_hint="(default: twice evolve_every)")] = (
        None
    )
    """Steps that a member lives at least, >= 0: a child's rating is uncertain and would be the lowest at once."""
    elites: int = 0
    """Best members of each side that never go, whatever their age, >= 0."""
    parents: ParentScheme = "uniform"
    """Survivors breed evenly, or the n-th worst with weight n."""
    crossover_probability: float = 0.5
    """Share of children with two parents, in [0, 1]."""
    explore: bool = False
    """Children take learning rate and temperature of their better parent, each scaled by 0.8 or 1.2 (PBT)."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        at_least(self, evolve_every=1, caution=0, min_age=0, elites=0)
        for name in ("fraction", "crossover_probability"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"`{name}` must be in [0, 1], got {getattr(self, name)!r}")
        if self.operators is not None and not self.weights:
            raise ValueError(f"`operators` must name at least one, got {self.operators!r}")

    @property
    def weights(self) -> dict[str, float]:
        """Operators named, and how often each is drawn, relative to the others; empty where none is named.

        Raises:
            ValueError: A name is given twice, or a weight is no finite number above 0.
        """
        weights: dict[str, float] = {}
        for choice in ",".join(self.operators or ()).split(","):
            name, equals, text = (part.strip() for part in choice.partition("="))
            if not name and not equals:
                continue
            try:
                weight = float(text) if equals else 1.0
            except ValueError:
                weight = 0.0
            if not name or not 0 < weight < float("inf"):
                raise ValueError(f"`operators` must be NAME or NAME=WEIGHT with a weight above 0, got {choice!r}")
            if name in weights:
                raise ValueError(f"`operators` must name none twice, got {name!r} again")
            weights[name] = weight
        return weights


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOptions:
    """What is measured beside each step's own numbers."""

    payoff_every: int = 10
    """Steps between two reports of who beats whom (cyclic share, equilibrium, alpha-rank), >= 0, from each pair's
    latest match; 0 reports none."""
    cross_eval_every: int = 0
    """Steps between two cross tables, >= 0, for which every teacher meets every student without training or rating
    anybody; 0 plays none. It changes no number of the run beside what it reports."""
    cross_eval_problems: int = 6
    """Proposals of each pair in a cross table, dealt over the tasks, >= 1."""
    yardstick: int = 16
    """Valid problems a step that the bare base attempts too, once each, >= 0: its solve rate is the fixed measure of
    difficulty. It rates and trains nobody; 0 leaves it out."""
    log: TrackerName = "none"
    """Where each step's metrics go beside the run folder; each needs the package of its name."""

    def __post_init__(self) -> None:
        """Check the ranges, and that the tracker is there."""
        at_least(self, payoff_every=0, cross_eval_every=0, cross_eval_problems=1, yardstick=0)
        check_tracker(self.log)


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
class ClusterOptions:
    """Where the work is done. The numbers depend on the two shares and on `threads` alone."""

    executor: Literal["local", "ray"] = "local"
    """In this process, or by actors of Ray; the numbers are the same."""
    rollout_shards: int = 1
    """Shares into which the members are dealt for completing prompts, >= 1; with Ray a worker each."""
    trainer_shards: int = 1
    """Shares into which the members are dealt for learning, >= 1; with Ray a trainer each."""
    ray_address: Annotated[
        str, tyro.conf.arg(metavar="HOST:PORT|auto", help_behavior_hint="(default: start Ray on this machine)")
    ] = ""
    """Ray cluster to join, from one of its nodes; the run folder must lie where all of them see it."""
    worker_gpus: float = 0.0
    """GPUs of each worker and trainer of Ray, >= 0; above 0 the base lies there."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        at_least(self, rollout_shards=1, trainer_shards=1, worker_gpus=0)
        if self.executor == "local" and (self.ray_address or self.worker_gpus):
            raise ValueError("`ray_address` and `worker_gpus` need `--executor ray`")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """Who completes prompts."""

    backend: Literal["auto", "torch", "vllm", "vllm-server"] = "auto"
    """Who completes prompts: torch with the trainer's own model, vLLM in this process, or a vLLM server (`--vllm-url`);
    auto is vLLM where the base lies on a GPU and vLLM is installed, else torch."""
    vllm_url: str = "http://127.0.0.1:8000"
    """Where the server is; it must see the files of this machine's memory (see docs/serving.md)."""
    vllm_anywhere: bool = False
    """Allow a server on another machine. Whoever can reach it can have it load files: keep it in a closed network."""
    vllm_memory: float = 0.0
    """Share of a GPU's memory that vLLM takes in all, or of a machine's memory that it keeps keys and values in on a
    CPU; in [0, 1), 0 is 0.4 on a GPU and 0.05 on a CPU."""
    vllm_slots: int = 0
    """Adapters that vLLM holds at a time, >= 0; 0 is one a member. With fewer, members are asked in groups."""
    vllm_dtype: EngineDtype = "auto"
    """Of vLLM's weights; auto is that of the trainer's."""
    vllm_tensor_parallel: int = 1
    """GPUs that vLLM spreads the base over, >= 1."""
    vllm_sleep: bool = False
    """Give the GPU's memory back while members learn; the weights wait in the machine's memory."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        at_least(self, vllm_slots=0, vllm_tensor_parallel=1)
        if not 0 <= self.vllm_memory < 1:
            raise ValueError(f"`vllm_memory` must be in [0, 1), got {self.vllm_memory!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineOptions:
    """What the machine gives, and what it keeps."""

    threads: int = 0
    """Threads of torch, >= 0; 0 takes all cores."""
    device: Annotated[str, tyro.conf.arg(metavar="auto|cpu|cuda|cuda:N")] = "auto"
    """Where base and adapters lie; auto is the first GPU that torch sees, else the CPU. On Ray, see --worker-gpus."""
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Of the base's weights; auto is float32 on a CPU, and what the files hold elsewhere. bfloat16 halves their memory,
    and is several times faster on CPUs that multiply in it (avx512_bf16, amx_bf16)."""
    save_every: int = 5
    """Steps between two savings of adapters and optimiser, >= 1; newborn and last adapters are always saved."""

    keep_adapters: Annotated[str, tyro.conf.arg(metavar="all|N")] = "all"
    """Saved adapters kept of each member: all, or the N newest (>= 1) beside its first and those it had as a parent."""
    keep_every: int = 0
    """Keep also those that were saved in steps that this divides, >= 0; 0 is none."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        at_least(self, threads=0, save_every=1, keep_every=0)
        check_device(self.device)
        if self.keep_adapters != "all" and not (self.keep_adapters.isdecimal() and int(self.keep_adapters)):
            raise ValueError(f"`keep_adapters` must be all or a number of at least 1, got {self.keep_adapters!r}")

    @property
    def retention(self) -> Retention | None:
        """Which adapters stay; None is all."""
        newest = self.keep_adapters
        return None if newest == "all" else Retention(newest=int(newest), every=self.keep_every)
