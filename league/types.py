"""The nouns of the league: sides, members, matches, ratings, reports.

Owns the seams too: the `Arena` in which matches are played, the `Recorder` that keeps them, the `Watcher` that is told.
Knows nothing of programs or language models: the same engine plays classic games.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, Protocol

from populora_agents.types import AdapterVersion

Row = dict[str, Any]
"""One row of a table (docs/design.md, Tables)."""


class Side(StrEnum):
    """The two sub-populations, or the single agent that stands for both; a member never changes sides."""

    TEACHER = "teacher"
    STUDENT = "student"
    AGENT = "agent"

    @property
    def match_column(self) -> str:
        """Column of the matches table that names this side's member; a single agent stands in both columns."""
        return "teacher_id" if self is Side.TEACHER else "student_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """A Gaussian belief about skill."""

    mu: float
    sigma: float

    def lower_bound(self, c: float) -> float:
        """Return the lower confidence bound mu - c sigma."""
        return self.mu - c * self.sigma


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One adapter with its place in the league; weights and optimiser state live in the arena."""

    member_id: str
    """`teacher_0`, `student_3`, `agent_0`; never used again after retirement."""
    side: Side
    slot: int
    """Place on its side, 0-based; a child takes its predecessor's."""
    version: int = 0
    """Grows by one with every step in which it plays, whether its weights moved or not."""
    born: int = 0
    """Step of birth."""
    learning_rate_scale: float = 1.0
    """Of its side's learning rate, > 0; 1 where births do not explore."""
    temperature_scale: float = 1.0
    """Of the sampling temperature, > 0; likewise."""
    frozen: bool = False
    """Whether it is a past version (`hall_of_fame`): it is neither trained nor rated, and `slot` counts among those."""

    @property
    def adapter(self) -> AdapterVersion:
        """The name of the member's weights; a past version's is its own, for the member may live on beside it."""
        name = f"{self.member_id}@{self.version}" if self.frozen else self.member_id
        return AdapterVersion(member_id=name, version=self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Two members that meet in one step."""

    match_id: int
    """Total order over the run."""
    step: int
    teacher: Member
    student: Member
    expected: float
    """p(student wins) by the ratings at pairing."""
    kind: Literal["train", "cross_eval", "frozen", "self_play"] = "train"
    """Only `train` matches rate. Of a `frozen` one the living side learns, from a `cross_eval` nobody; `self_play` is a
    single agent's with itself."""

    @property
    def learners(self) -> tuple[Member, ...]:
        """Who learns from it, and stands one version higher afterwards."""
        both = () if self.kind == "cross_eval" else (self.teacher, self.student)
        return tuple(member for member in both if not member.frozen)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchResult:
    """How a match ended."""

    match: Match
    observed: float | None
    """Mean solve rate over the valid problems; None when there was none."""
    n_problems: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """All that one step's matches gave."""

    results: tuple[MatchResult, ...]
    tables: Mapping[str, Sequence[Row]]
    """Rows for the tables the arena owns, by table name (`problems`, `rollouts`; of `metrics` those of single members),
    without `run_id`."""
    metrics: Mapping[str, float]
    """Scalars of this step by name (docs/metrics.md), those of single members left out."""
    seconds: Mapping[str, float]
    """Wall clock by phase (propose, solve, verify, yardstick, update)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """A member that was replaced by a child."""

    child: Member
    victim: Member
    operator: str
    parents: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """One committed step, for whoever watches."""

    step: int
    results: tuple[MatchResult, ...]
    births: tuple[Birth, ...]
    metrics: Mapping[str, float]
    seconds: Mapping[str, float]
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """The rows that were committed, by table name, without `run_id`."""


class Opponents(Protocol):
    """Chooses past members for the present ones, in the place of the rules' hall of fame."""

    def matches(
        self, members: Sequence[Member], ratings: Mapping[str, Rating], *, step: int, first_match_id: int
    ) -> tuple[Match, ...]:
        """Return one step's `frozen` matches of the present members, whose ids count up from `first_match_id`.

        The arena must hold the frozen members: `Arena.recall` is not called.
        """
        ...


class Recorder(Protocol):
    """Where a league is kept; `league.storage.RunFolder` is one."""

    def commit(self, step: int, tables: Mapping[str, Sequence[Row]], metrics: Mapping[str, Any]) -> None:
        """Keep one step; it exists once this returns."""
        ...

    def adapters(self) -> AbstractContextManager[Path]:
        """Give the folder for `save_adapters`; what was written is durable at the end."""
        ...

    def state(self, step: int, needs: Iterable[str] = ()) -> AbstractContextManager[Path]:
        """Give a folder for `save_state`; it is kept until the next one's step is committed.

        So long the saved adapters that `needs` names (`MEMBER/VERSION`) are kept too.
        """
        ...

    def saved(self) -> AbstractContextManager[Path]:
        """Give the folder of all saved adapters, for `Arena.recall`."""
        ...


class Watcher(Protocol):
    """Somebody who is told what happened."""

    def committed(self, report: StepReport) -> None:
        """Hear of a step that was committed; step 0 is the founding."""
        ...


class Arena(Protocol):
    """Where members play and learn. The engine decides who; the arena knows how."""

    def found(self, members: Sequence[Member]) -> None:
        """Give each founder its first weights."""
        ...

    def play(self, matches: Sequence[Match], *, step: int) -> Play:
        """Play matches of one step, all members of a phase in one batch, and learn from them in one update.

        Members' versions are as named in the matches; after the call every living member of a `train` or `frozen` match
        stands one version higher, also one that found nothing to learn and whose weights are what they were. Frozen
        members, whom `recall` put there, and `cross_eval` matches change nothing.

        Raises:
            DivergedError: A member's numbers are no longer finite; the step cannot be committed.
        """
        ...

    def recall(self, members: Sequence[Member], adapters: str) -> None:
        """Put frozen members into their slots, from `adapters/<member>/<version>/`; those of the last call may go.

        Raises:
            OSError, ValueError: One is missing or cannot be read.
        """
        ...

    def breed(
        self, child: Member, parents: Sequence[Member], operator: str, parameters: Mapping[str, float], *, seed: int
    ) -> str:
        """Put the child of `parents` into its slot, with fresh optimiser state; return its adapter's sha256."""
        ...

    def save_adapters(self, members: Sequence[Member], folder: str) -> Mapping[str, str]:
        """Write `folder/<member>/<version>/` in PEFT's format for each member; return sha256 by member id."""
        ...

    def save_state(self, folder: str) -> None:
        """Write what a resumed run needs beside the adapters: optimiser, buffer."""
        ...

    def restore(self, members: Sequence[Member], adapters: str, state: str) -> None:
        """Stand where the arena stood that wrote `adapters/<member>/<version>/` and `state`, instead of `found`.

        Raises:
            OSError, ValueError, KeyError, TypeError: Something is missing or cannot be read.
        """
        ...

    def close(self) -> None:
        """Give back processes and memory."""
        ...
