"""The nouns of the game: tasks, problems, proposals, answers, verdicts, and the seats' `Policy`.

Owns the data that every other module passes on. Owns no behaviour beyond derived properties: parsing is in `parsing`,
judging in `verifier`, the turn order in `game`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol


class Task(StrEnum):
    """What a solver is asked for (the three task types of Absolute Zero)."""

    DEDUCTION = "deduction"
    """Program and input are shown, the output is asked for."""
    ABDUCTION = "abduction"
    """Program and output are shown, an input that gives it is asked for."""
    INDUCTION = "induction"
    """Half of the input/output pairs and a message are shown, a program is asked for."""


class Role(StrEnum):
    """The two roles of a round."""

    PROPOSER = "proposer"
    SOLVER = "solver"


class Status(StrEnum):
    """What the verifier says of one job; every value is data, none is an exception."""

    OK = "ok"
    WRONG = "wrong"
    FORMAT = "format"
    TIMEOUT = "timeout"
    MEMORY = "memory"
    FORBIDDEN = "forbidden"
    ERROR = "error"
    UNSERIALISABLE = "unserialisable"
    OUTPUT_LIMIT = "output_limit"
    BAD_FRAME = "bad_frame"
    NO_RESULT = "no_result"
    CRASH = "crash"
    NONDETERMINISTIC = "nondeterministic"
    INADMISSIBLE = "inadmissible"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verifier's word on a proposal or an answer."""

    status: Status
    detail: str = ""
    """Error type for `error`, rule for `inadmissible`, reason for `format`; printable ASCII, at most 80 characters."""

    @property
    def ok(self) -> bool:
        """Whether the proposal is valid, or the answer correct."""
        return self.status is Status.OK

    def __str__(self) -> str:
        """Return `status` or `status:detail`."""
        return f"{self.status}:{self.detail}" if self.detail else str(self.status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a proposer wrote, parsed but not yet judged."""

    task: Task
    program: str
    """Source that defines `f`, which takes positional arguments."""
    inputs: tuple[str, ...]
    """Literals of argument tuples, as written; one, or several for induction."""
    message: str = ""
    """Induction only: the hint shown to the solver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalVerdict:
    """A verdict on a proposal, with what running it gave."""

    verdict: Verdict
    inputs: tuple[str, ...] = ()
    """Canonical literals of the argument tuples; empty unless the verdict is ok."""
    outputs: tuple[str, ...] = ()
    """Canonical literals of the values, one an input; empty unless the verdict is ok."""
    exec_ms: float = 0.0
    """Time in the sandbox, in milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A valid proposal with its gold values. Only `n_visible` pairs of an induction problem are ever shown."""

    problem_id: str
    """Hash of task, normalised program, inputs and message."""
    task: Task
    program: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    message: str = ""
    n_visible: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a solver wrote, parsed: a literal (deduction, abduction) or a program (induction)."""

    task: Task
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Malformed:
    """A text in which no proposal or answer was found; it costs the format reward."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """All that a seat may know when it has to act."""

    role: Role
    task: Task
    prompt: str
    messages: tuple[Message, ...]
    """The prompt as chat messages."""


class Policy(Protocol):
    """Anything that can take a seat."""

    def __call__(self, observation: Observation) -> str:
        """Return the action: any text, malformed text costs the format reward."""
        ...
