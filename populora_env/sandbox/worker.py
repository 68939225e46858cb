"""One zygote, seen from the verifier: its process, its socket, and the jobs that it has been given.

Owns starting and ending a zygote. Owns no scheduling (that is `pool`).
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from itertools import groupby
from pathlib import Path
from typing import Final

from populora_env.encoding import DecodeError, decode
from populora_env.sandbox import child, frames
from populora_env.sandbox.errors import SandboxError
from populora_env.sandbox.jobs import FaultError, Reply, read_reply
from populora_env.sandbox.kinds import Flavour
from populora_env.sandbox.queues import Launch, Load, places_served

_log = logging.getLogger(__name__)

ZYGOTE: Final = Path(__file__).with_name("zygote.py")
_START_TIMEOUT_S = 60.0
_END_TIMEOUT_S = 2.0
_SLACK_S = 30.0
"""A zygote that is silent for this long beyond the limits of its job is broken."""
_PASSED_ON = ("LD_LIBRARY_PATH",)
"""What a zygote keeps of the environment: where a Python built as a shared library finds itself."""


class Spawner:
    """The one thread that starts zygotes: their death signal fires when the thread that started them ends."""

    def __init__(self) -> None:
        """Start the thread; it ends with `close`, or with the process."""
        self._requests: queue.SimpleQueue[tuple[Launch, Future[Worker]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=_spawn_on_request, args=(self._requests,), name="populora-spawner", daemon=True
        )
        self._thread.start()

    def spawn(self, launch: Launch) -> Worker:
        """Start a zygote; it is not ready before `Worker.finish_start`."""
        future: Future[Worker] = Future()
        self._requests.put((launch, future))
        try:
            return future.result()
        except BaseException:
            future.add_done_callback(_end_unwanted)
            raise

    def close(self) -> None:
        """End the thread, and with it whatever zygotes are left."""
        self._requests.put(None)
        self._thread.join()


def _spawn_on_request(requests: queue.SimpleQueue[tuple[Launch, Future[Worker]] | None]) -> None:
    while (request := requests.get()) is not None:
        launch, future = request
        try:
            future.set_result(Worker(launch))
        except (OSError, ValueError) as error:
            future.set_exception(SandboxError(f"expected to start {sys.executable!r} as a zygote, got: {error}"))


def _end_unwanted(future: Future[Worker]) -> None:
    """End a zygote for which nobody waits any more."""
    if future.exception() is None:
        future.result().close()


class Worker:
    """A zygote's process."""

    def __init__(self, launch: Launch) -> None:
        """Start the process and send it its hello."""
        self.launch = launch
        self.places = places_served(launch)
        self.layers: Mapping[str, bool] = {}
        self.loads: deque[Load] = deque()
        """What it has been given and not answered, in order; it is at work on the first."""
        self.trusted = False
        """Whether it was seen to stop every canary."""
        self._first_id = 0
        """Id of the first of these; the others count on from it."""
        self._deadline = 0.0
        self._received = bytearray()
        self._unsent = bytearray()
        self.socket, theirs = socket.socketpair()
        # -I would also ignore PYTHONHASHSEED; -s and -P are its other two parts, and the environment is clean.
        command = [sys.executable, "-s", "-P", "-S", "-B", str(ZYGOTE), str(theirs.fileno()), str(os.getpid())]
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment["PYTHONHASHSEED"] = str(launch.kind.hash_seed)
        if launch.plain_malloc:
            environment["PYTHONMALLOC"] = "malloc"
        try:
            with theirs:
                self._process = subprocess.Popen(
                    command,
                    env=environment,
                    cwd="/",
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                )
        except BaseException:
            self.socket.close()
            raise
        packages = _folder_of_numpy() if launch.kind.flavour is Flavour.NUMPY else b""
        hello = frames.HELLO.pack(
            launch.memory_bytes, launch.namespaces, launch.kind.flavour, launch.index, len(launch.bpf), len(packages)
        )
        self.socket.settimeout(_START_TIMEOUT_S)
        try:
            self.socket.sendall(hello + launch.bpf + packages)
        except OSError:
            _log.debug("a zygote ended before its hello")

    @property
    def pid(self) -> int:
        """Process id of the zygote (of its outer process, where it has a process namespace)."""
        return self._process.pid

    @property
    def wants_to_send(self) -> bool:
        """Whether the socket would not take all of the last jobs."""
        return bool(self._unsent)

    def finish_start(self) -> None:
        """Wait until the zygote is cut off and serves.

        Raises:
            SandboxError: It ended instead.
        """
        try:
            head = self._read(4)
            body = self._read(int.from_bytes(head, "big")) if len(head) == 4 else b""
        except OSError as error:
            body, reason = b"", str(error)
        else:
            reason = "it ended"
        if not body:
            raise SandboxError(f"expected a zygote to start, but {reason}: {self.close() or 'no message'}")
        try:
            self.layers = decode(body)
        except DecodeError as error:
            raise SandboxError(f"expected a zygote to tell its layers, got {body[:80]!r}") from error
        self.socket.setblocking(False)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size and (piece := self.socket.recv(size - len(data))):
            data += piece
        return data

    def send(self, load: Load) -> None:
        """Give the zygote work for one child, which it does after what it has.

        Raises:
            FaultError: It is gone.
        """
        if not self.loads:
            self._deadline = _deadline(load)
        job = load[0].job
        body = child.encode_job(_parts(load))
        job_id = self._first_id + len(self.loads)
        self.loads.append(load)
        self._unsent += frames.JOB.pack(job_id, len(body), _n_frames(load), job.cpu_s, job.wall_s, job.tight) + body
        self.flush()

    def flush(self) -> None:
        """Send what the socket takes.

        Raises:
            FaultError: The zygote is gone.
        """
        try:
            while self._unsent:
                del self._unsent[: self.socket.send(self._unsent)]
        except BlockingIOError:
            return
        except OSError as error:
            raise FaultError(f"a zygote does not take a job: {error}") from error

    def receive(self) -> None:
        """Take in what has come from the zygote.

        Raises:
            FaultError: It is gone.
        """
        try:
            piece = self.socket.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError as error:
            raise FaultError(f"a zygote cannot be read: {error}") from error
        if not piece:
            raise FaultError("a zygote ended")
        self._received += piece

    def reply(self) -> Reply | None:
        """Return the reply to the first load, None if it is not whole yet.

        Raises:
            FaultError: The zygote talks nonsense.
        """
        reply = read_reply(self._received)
        if reply is not None:
            if not self.loads or reply.job_id != self._first_id:
                raise FaultError("a zygote answers what nobody asked")
            del self._received[: frames.REPLY.size + len(reply.stream)]
        return reply

    def turn_to_next(self) -> Load:
        """Return the first load, which is answered, and turn to the next."""
        self._first_id += 1
        done = self.loads.popleft()
        if self.loads:
            self._deadline = _deadline(self.loads[0])
        return done

    def check_deadline(self) -> None:
        """Check that the zygote is not silent for too long.

        Raises:
            FaultError: It is.
        """
        if self.loads and time.monotonic() > self._deadline:
            raise FaultError("a zygote is silent")

    def hang_up(self) -> None:
        """Tell the zygote to end; needed even where a forked process holds a copy of the socket."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def close(self) -> str:
        """End the process and collect it; return what it had to say."""
        self.hang_up()
        try:
            self._process.wait(_END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        said = b""
        if self._process.stderr is not None and not self._process.stderr.closed:
            said = self._process.stderr.read()
            self._process.stderr.close()
        return said.decode("utf-8", "replace").strip()[-400:]

    def abandon(self) -> None:
        """Forget a process that belongs to the parent of this one; called after a fork."""
        self.socket.close()
        if self._process.stderr is not None:
            self._process.stderr.close()
        self._process.returncode = 0


def _folder_of_numpy() -> bytes:
    """Return the folder that a zygote must look into to find the numpy that this process would import.

    Raises:
        ValueError: There is none.
    """
    found = importlib.util.find_spec("numpy")
    if found is None or found.origin is None:
        raise ValueError("numpy is not installed")
    return os.fsencode(Path(found.origin).parents[1])


def _parts(load: Load) -> list[tuple[str, tuple[bytes, ...], int]]:
    """Return the programs of a load, each with its inputs and the calls on each; jobs of one program are one part."""
    parts = []
    for (program, calls), tickets in groupby(load, lambda ticket: (ticket.job.program, ticket.job.calls)):
        inputs = [data for ticket in tickets for data in ticket.job.inputs]
        parts.append((program, tuple(inputs), calls))
    return parts


def _n_frames(load: Load) -> int:
    return sum(ticket.job.n_frames for ticket in load)


def _deadline(load: Load) -> float:
    return time.monotonic() + _n_frames(load) * load[0].job.wall_s + _SLACK_S
