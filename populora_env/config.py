"""Settings of the game and of the verifier, checked when they are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from populora_env.types import Task

RewardScheme = Literal["paper", "linear", "azr", "variance"]
RepeatForm = Literal["template", "program"]
StyleName = Literal["compact", "chat", "few_shot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardConfig:
    """What the two roles are paid (docs/paper.md, Rewards)."""

    scheme: RewardScheme = "paper"
    """How the proposer is paid by the solve rate rho of a valid problem; see `populora_env.rewards`."""
    invalid: float = -1.0
    """Proposer's reward for an invalid or malformed proposal."""
    correct: float = 1.0
    """Solver's reward for a correct answer."""
    wrong: float = -0.5
    """Solver's reward for a well-formed wrong answer."""
    malformed: float = -1.0
    """Solver's reward for a format failure."""
    repeat_penalty: float = 0.0
    """Taken off the proposer's reward for a valid problem whose program it has proposed before, >= 0, but never below
    what an invalid proposal is paid; 0 is off. See `populora_env.rewards`."""
    repeat_form: RepeatForm = "template"
    """Programs are the same that have the same template (constants masked), or only those that are equal."""

    def __post_init__(self) -> None:
        """Check the penalty."""
        if not 0 <= self.repeat_penalty < float("inf"):
            raise ValueError(f"`repeat_penalty` must be finite and at least 0, got {self.repeat_penalty!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GameConfig:
    """The rules of one game."""

    tasks: tuple[Task, ...] = (Task.DEDUCTION, Task.ABDUCTION, Task.INDUCTION)
    """Task types, in the order in which rounds go through them; at least one, none twice."""
    rounds: int = 3
    """Rounds an episode, >= 1."""
    solver_seats: int = 4
    """Attempts at a problem (G), >= 1."""
    references: int = 2
    """Earlier problems shown to the proposer (K), >= 0."""
    induction_inputs: int = 4
    """Inputs of an induction proposal, >= 2; half of them (rounded down) are hidden."""
    style: StyleName = "compact"
    """How prompts are written: `compact` for nano, `few_shot` for small instruction models, `chat` for large ones."""
    rewards: RewardConfig = field(default_factory=RewardConfig)
    """What the roles are paid."""
    seed_problems: int = 256
    """Problems of our own generator with which the buffer of each task begins, >= 1."""
    buffer_size: int = 16384
    """Problems kept a task; the oldest go first. At least `seed_problems`."""
    max_action_chars: int = 16384
    """Longer actions are malformed, >= 64."""
    max_answer_chars: int = 512
    """Longest literal a solver may write, in characters; a gold value must fit half of it, >= 16."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not self.tasks or len(set(self.tasks)) != len(self.tasks):
            raise ValueError(f"`tasks` must name at least one task and none twice, got {self.tasks!r}")
        floors = {
            "rounds": 1,
            "solver_seats": 1,
            "references": 0,
            "induction_inputs": 2,
            "seed_problems": 1,
            "max_action_chars": 64,
            "max_answer_chars": 16,
        }
        for name, floor in floors.items():
            if getattr(self, name) < floor:
                raise ValueError(f"`{name}` must be at least {floor}, got {getattr(self, name)!r}")
        if self.buffer_size < self.seed_problems:
            raise ValueError(f"`buffer_size` must be at least `seed_problems`, got {self.buffer_size!r}")

    @property
    def visible_inputs(self) -> int:
        """Pairs of an induction problem that the solver sees."""
        return self.induction_inputs - self.induction_inputs // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierConfig:
    """Limits of the sandbox (see `populora_env/sandbox/README.md`)."""

    workers: int = 0
    """Zygotes; 0 means one a core, and never fewer than two (determinism needs two)."""
    cpu_s: float = 0.5
    """CPU time of one call of an answer, in seconds; a proposal gets a quarter of it. In (0, 60]."""
    wall_s: float = 10.0
    """Wall clock of one job, in seconds; generous, since scores must not depend on the machine's load."""
    memory_bytes: int = 256 * 1024 * 1024
    """Address space that a child may gain over the zygote's."""
    max_answer_chars: int = 512
    """As in `GameConfig`: a gold value must fit half of it."""
    equality: Literal["strict", "python"] = "strict"
    """`strict` compares canonical bytes (1 != True != 1.0); `python` compares with ==, in the parent."""
    namespaces: bool = True
    """Use namespaces, pivot_root and Landlock where the kernel grants them."""
    cache_size: int = 65536
    """Verdicts kept by content; 0 switches the cache off."""

    def __post_init__(self) -> None:
        """Check the ranges."""
        if self.workers < 0:
            raise ValueError(f"`workers` must be at least 0, got {self.workers!r}")
        if not 0 < self.cpu_s <= 60:
            raise ValueError(f"`cpu_s` must be in (0, 60], got {self.cpu_s!r}")
        if self.wall_s < self.cpu_s:
            raise ValueError(f"`wall_s` must be at least `cpu_s`, got {self.wall_s!r}")
        if self.memory_bytes < 1 << 24:
            raise ValueError(f"`memory_bytes` must be at least 16 MiB, got {self.memory_bytes!r}")
        if self.max_answer_chars < 16 or self.cache_size < 0:
            raise ValueError("`max_answer_chars` must be at least 16 and `cache_size` at least 0")
