"""One zygote, seen from the verifier: its process, its socket, and the job that it is busy with.

Owns starting and ending a zygote. Owns no scheduling (that is `pool`).
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from populora_env.encoding import decode
from populora_env.sandbox import frames
from populora_env.sandbox.errors import SandboxError
from populora_env.sandbox.jobs import FaultError, Job, Reply, read_reply

_log = logging.getLogger(__name__)

ZYGOTE: Final = Path(__file__).with_name("zygote.py")
_START_TIMEOUT_S = 60.0
_END_TIMEOUT_S = 2.0
_SLACK_S = 30.0
"""A zygote that is silent for this long beyond the limits of its job is broken."""
_PASSED_ON = ("LD_LIBRARY_PATH",)
"""What a zygote keeps of the environment: where a Python built as a shared library finds itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a zygote is started."""

    index: int
    hash_seed: int
    plain_malloc: bool
    """Whether Python takes all memory from the C library: how addresses compare, and their lowest bits, then differ."""
    memory_bytes: int
    namespaces: bool
    bpf: bytes


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
        self.layers: Mapping[str, bool] = {}
        self.job: Job | None = None
        """The job that it is busy with."""
        self._job_id = 0
        self._deadline = 0.0
        self._received = bytearray()
        self.socket, theirs = socket.socketpair()
        # -I would also ignore PYTHONHASHSEED; -s and -P are its other two parts, and the environment is clean.
        command = [sys.executable, "-s", "-P", "-S", "-B", str(ZYGOTE), str(theirs.fileno()), str(os.getpid())]
        environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        environment["PYTHONHASHSEED"] = str(launch.hash_seed)
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
        hello = frames.HELLO.pack(launch.memory_bytes, launch.namespaces, launch.index, len(launch.bpf))
        self.socket.settimeout(_START_TIMEOUT_S)
        try:
            self.socket.sendall(hello + launch.bpf)
        except OSError:
            _log.debug("a zygote ended before its hello")

    @property
    def pid(self) -> int:
        """Process id of the zygote (of its outer process, where it has a process namespace)."""
        return self._process.pid

    def finish_start(self) -> None:
        """Wait until the zygote is cut off and serves.

        Raises:
            SandboxError: It ended instead.
        """
        try:
            head = frames.read_exactly(self.socket, 4)
            body = frames.read_exactly(self.socket, int.from_bytes(head, "big")) if len(head) == 4 else b""
        except OSError as error:
            body, reason = b"", str(error)
        else:
            reason = "it ended"
        if not body:
            raise SandboxError(f"expected a zygote to start, but {reason}: {self.close() or 'no message'}")
        self.layers = decode(body)

    def send(self, job: Job, body: bytes) -> None:
        """Give the idle zygote a job.

        Raises:
            FaultError: It is gone.
        """
        self.job = job
        self._job_id += 1
        self._received.clear()
        seconds = job.n_frames * job.wall_s + _SLACK_S
        self._deadline = time.monotonic() + seconds
        header = frames.JOB.pack(self._job_id, len(body), job.n_frames, job.cpu_s, job.wall_s)
        self.socket.settimeout(seconds)
        try:
            self.socket.sendall(header + body)
        except OSError as error:
            raise FaultError(f"a zygote does not take a job: {error}") from error

    def receive(self) -> Reply | None:
        """Take in what has come from the zygote; return its reply once it is whole.

        Raises:
            FaultError: It is gone, or talks nonsense.
        """
        try:
            piece = self.socket.recv(1 << 18)
        except OSError as error:
            raise FaultError(f"a zygote cannot be read: {error}") from error
        if not piece:
            raise FaultError("a zygote ended")
        self._received += piece
        reply = read_reply(bytes(self._received))
        if reply is not None:
            if self.job is None or reply.job_id != self._job_id:
                raise FaultError("a zygote answers what nobody asked")
            self.job = None
        return reply

    def check_deadline(self) -> None:
        """Check that the zygote is not silent for too long.

        Raises:
            FaultError: It is.
        """
        if time.monotonic() > self._deadline:
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
