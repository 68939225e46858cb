"""Jobs for the sandbox and what came of them, on the verifier's side.

Owns the reading of a child's stream and end into outcomes. Everything that a child says is data here; only what the
child cannot bring about itself is a fault.
"""

from __future__ import annotations

import dataclasses
import re
import signal
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import Enum

from populora_env.sandbox import frames
from populora_env.sandbox.kinds import Flavour
from populora_env.sandbox.streams import End, Frame, read_stream
from populora_env.types import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A program to run on some inputs, in one child."""

    program: str
    inputs: tuple[bytes, ...]
    """Encoded argument tuples; each is decoded anew for each call, and each input gets fresh globals."""
    calls: int = 1
    """Times that `f` is called on each input, in the same globals."""
    cpu_s: float
    """CPU time of one call, in seconds."""
    wall_s: float
    """Wall clock of one call, in seconds."""
    tight: bool = False
    """Whether it gets half of the recursion depth and a quarter of the memory: to see that a value hangs on neither."""
    hash_seed: int | None = None
    """PYTHONHASHSEED of the zygote that must run it; None: any."""
    zygote: int | None = None
    """Index of the zygote that must run it; None: any."""
    shares: Hashable = None
    """Jobs with the same value may run in one child, one after the other; None: alone."""
    numpy: bool = False
    """Whether it runs where numpy and the harness of benchmarks are loaded."""
    ends_at_death: bool = False
    """Whether the inputs after one on which the child died are left alone: one failure says all."""
    last_first: bool = False
    """Whether those that share a child run in the reverse of the order in which they came."""

    @property
    def limits(self) -> tuple[object, ...]:
        """What jobs that run in one child must have in common."""
        return self.cpu_s, self.wall_s, self.tight, self.last_first

    @property
    def flavour(self) -> Flavour:
        """What the zygote that runs it must have loaded.

        Without the word no program imports; the machinery of classes may import by itself. The text alone decides, so
        that a program always runs in the same kind of zygote.
        """
        if self.numpy:
            return Flavour.NUMPY
        return Flavour.LIBRARY if "import" in self.program or "class" in self.program else Flavour.BARE

    @property
    def n_frames(self) -> int:
        """Frames that the child has to write."""
        return len(self.inputs) * self.calls

    def after(self, outcome: Outcome) -> Job | None:
        """Return the job of the inputs to run after the one on which the child died, None if there are none."""
        if self.ends_at_death:
            return None
        rest = self.inputs[-(-outcome.done // self.calls) :]
        return dataclasses.replace(self, inputs=rest) if rest else None


@dataclass(frozen=True, slots=True)
class CallResult:
    """What came of one call."""

    status: Status
    detail: str = ""
    """Name of the exception's type."""
    payload: bytes = b""
    """The encoded value, if the status is ok; as it came from the child, not yet decoded."""


NOT_RUN = CallResult(Status.NO_RESULT)
"""Stands for the calls after the one in which the child died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a job: one result for each call, inputs first."""

    results: tuple[CallResult, ...]
    done: int
    """Results that are final: those up to the call in which the child died."""
    cpu_ms: float

    def joined(self, rest: Outcome) -> Outcome:
        """Return this outcome with the results of the inputs that were run again."""
        start = len(self.results) - len(rest.results)
        return Outcome(
            results=self.results[:start] + rest.results, done=start + rest.done, cpu_ms=self.cpu_ms + rest.cpu_ms
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A zygote's report on one child."""

    job_id: int
    end: End
    code: int
    """Exit code, or number of the signal."""
    cpu_s: float
    stream: bytes


class FaultError(Exception):
    """The sandbox failed at a job: try it once more on a fresh zygote."""


def read_reply(data: bytes | bytearray) -> Reply | None:
    """Return the reply at the start of `data`, or None if it is not complete yet.

    Raises:
        FaultError: No zygote of ours wrote this.
    """
    if len(data) < frames.REPLY.size:
        return None
    job_id, end, code, cpu_us, length = frames.REPLY.unpack_from(data)
    if len(data) < frames.REPLY.size + length:
        return None
    if end not in set(End):
        raise FaultError("the reply of a zygote is malformed")
    stream = bytes(data[frames.REPLY.size : frames.REPLY.size + length])
    return Reply(job_id=job_id, end=End(end), code=code, cpu_s=cpu_us / 1e6, stream=stream)


class Again(Enum):
    """Why a job has to run again."""

    NOT_REACHED = "the child died before it came to it"
    IN_DOUBT = "it ended in a way that those which ran before it in its child may have had a part in"


def outcomes_of(jobs: Sequence[Job], reply: Reply) -> list[Outcome | Again]:
    """Return what came of the jobs of one child, in their order.

    Raises:
        FaultError: The child's set-up failed, or something outside the sandbox killed it.
    """
    if reply.end is End.NOT_READY:
        raise FaultError(f"the set-up of a child failed: {reply.stream[: frames.MAX_NAME]!r}, code {reply.code}")
    n_frames = sum(job.n_frames for job in jobs)
    stream = read_stream(reply.stream, n_frames)
    results = [_result_of(frame) for frame in stream.frames]
    limit_s = sum(job.n_frames * job.cpu_s for job in jobs)
    death = _death(reply, limit_s, broken=stream.broken, complete=len(results) == n_frames)
    if death is not None:
        results = [*results[: n_frames - 1], CallResult(death)]
    outcomes: list[Outcome | Again] = []
    for job in jobs:
        own, results = results[: job.n_frames], results[job.n_frames :]
        if not own:
            outcomes.append(Again.NOT_REACHED)
        elif len(jobs) > 1 and any(result.status in _DOUBTFUL for result in own):
            outcomes.append(Again.IN_DOUBT)
        else:
            outcomes.append(_outcome(job, own, reply.cpu_s * 1000 * job.n_frames / n_frames))
    return outcomes


_DOUBTFUL = (Status.MEMORY, Status.CRASH, Status.NO_RESULT, Status.BAD_FRAME, Status.FORBIDDEN)
"""Ends that may have come from what was in the process before."""


def _outcome(job: Job, results: Sequence[CallResult], cpu_ms: float) -> Outcome:
    missing = job.n_frames - len(results)
    return Outcome(results=(*results, *[NOT_RUN] * missing), done=len(results), cpu_ms=cpu_ms)


def _death(reply: Reply, limit_s: float, *, broken: bool, complete: bool) -> Status | None:
    """Return the status of the call in which the child ended, None if it did all calls and then left."""
    if reply.end in (End.CPU_LIMIT, End.WALL_LIMIT):
        return Status.TIMEOUT
    if reply.end is End.SIGNALLED:
        return _status_of_signal(reply, limit_s)
    if broken or reply.end is End.BAD_STREAM:
        return Status.BAD_FRAME
    return None if complete else Status.NO_RESULT


def _status_of_signal(reply: Reply, limit_s: float) -> Status:
    if reply.code == signal.SIGSYS:
        return Status.FORBIDDEN
    if reply.code == signal.SIGXCPU:
        return Status.TIMEOUT
    if reply.code == signal.SIGKILL:
        if reply.cpu_s >= limit_s:
            return Status.TIMEOUT
        raise FaultError("something outside the sandbox killed a child")
    return Status.CRASH


def _result_of(frame: Frame) -> CallResult:
    if frame.tag == frames.VALUE:
        return CallResult(Status.OK, payload=frame.payload)
    if frame.tag == frames.RAISED:
        return CallResult(Status.ERROR, detail=_clean(frame.payload))
    if frame.tag == frames.OUT_OF_MEMORY:
        return CallResult(Status.MEMORY)
    return CallResult(Status.OUTPUT_LIMIT if frame.tag == frames.TOO_LARGE else Status.UNSERIALISABLE)


def _clean(name: bytes) -> str:
    """Return a type's name with everything but letters, digits, dots and underscores replaced."""
    return re.sub(r"[^A-Za-z0-9_.]", "_", name[: frames.MAX_NAME].decode("ascii", "replace"))
