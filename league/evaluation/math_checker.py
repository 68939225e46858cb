"""Workers that compare mathematical answers, seen from the process that starts and kills them.

Owns their lives and the limits. There is no alarm signal, so it works in any thread; what counts is CPU time, read from
the worker's own clock, so that a verdict does not depend on the machine's load.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from league.evaluation.math_worker import CANNOT, READY
from league.evaluation.types import EvaluationError

_WORKER: Final = Path(__file__).with_name("math_worker.py")
_MEMORY_BYTES = 1 << 30
_WALL_FACTOR = 12
"""Wall clock of a comparison, in CPU limits: for one that waits, which none should."""
_START_S = 120.0
_POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Two answers to compare."""

    gold: str
    given: str
    atol: float = 0.0


class MathChecker:
    """Compares answers in processes that are limited in memory and killed when they take too long."""

    def __init__(self, *, cpu_s: float = 5.0, memory_bytes: int = _MEMORY_BYTES, workers: int = 0) -> None:
        """Keep the limits; nothing is started yet.

        Args:
            cpu_s: CPU time of one comparison, in seconds.
            memory_bytes: Address space of a worker.
            workers: 0 is one a core.
        """
        self._cpu_s = cpu_s
        self._memory_bytes = memory_bytes
        self._workers = workers or len(os.sched_getaffinity(0))

    def check(self, asked: Sequence[Asked]) -> list[str]:
        """Return for each pair `ok`, `wrong`, `timeout`, `memory`, `crash` or `error(TYPE)`.

        Raises:
            EvaluationError: math-verify is not installed, or a worker does not start.
        """
        details = [""] * len(asked)
        waiting = deque(range(len(asked)))
        count = min(self._workers, max(1, len(asked) // 8), len(asked))

        def serve() -> None:
            worker: _Process | None = None
            try:
                while waiting:
                    try:
                        place = waiting.popleft()
                    except IndexError:
                        return
                    worker = worker if worker is not None and worker.alive else _Process(self._memory_bytes)
                    details[place] = worker.ask(asked[place], self._cpu_s)
            finally:
                if worker is not None:
                    worker.kill()

        with ThreadPoolExecutor(max(1, count)) as pool:
            for done in [pool.submit(serve) for _ in range(count)]:
                done.result()
        return details


class _Process:
    """One worker."""

    def __init__(self, memory_bytes: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-s", "-P", str(_WORKER), str(memory_bytes)],
            env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )
        self._clock = (~self._process.pid << 3) | 2  # the kernel's number for the CPU clock of a process
        self._unread = b""
        self.alive = True
        said = self._line(None, _START_S)
        if said != READY:
            self.kill()
            raise EvaluationError(
                "mathematics needs math-verify: pip install 'populora-league[eval]'"
                if said == CANNOT
                else "the process that compares mathematical answers does not start"
            )

    def ask(self, asked: Asked, cpu_s: float) -> str:
        """Return what came of one comparison; after `timeout` and `crash` the process is gone."""
        if self._process.stdin is None:
            raise ValueError("a worker has its input")
        try:
            self._process.stdin.write(json.dumps(asdict(asked)).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            self.kill()
            return "crash"
        line = self._line(cpu_s, _WALL_FACTOR * cpu_s)
        if line is None or not line:
            self.kill()
            return "timeout" if line is None else "crash"
        reply = json.loads(line)
        return "ok" if reply["right"] is True else str(reply["detail"])

    def kill(self) -> None:
        """End the process and collect it."""
        self.alive = False
        self._process.kill()
        self._process.communicate()

    def _line(self, cpu_s: float | None, wall_s: float) -> str | None:
        """Return the next line, empty at the end of the output, None when the time is up."""
        if self._process.stdout is None:
            raise ValueError("a worker has its output")
        start, begun = self._cpu(), time.monotonic()
        while b"\n" not in self._unread:
            if (cpu_s is not None and self._cpu() - start > cpu_s) or time.monotonic() - begun > wall_s:
                return None
            if select.select([self._process.stdout], [], [], _POLL_S)[0]:
                piece = os.read(self._process.stdout.fileno(), 1 << 16)
                if not piece:
                    return ""
                self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode("utf-8", "replace")

    def _cpu(self) -> float:
        try:
            return time.clock_gettime(self._clock)
        except OSError:
            return 0.0  # it has ended; its output says so too
