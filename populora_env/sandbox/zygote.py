"""The program of a zygote: started as a script with nothing but the standard library, forks one child for each job.

Owns the life of a zygote: hello, isolation, serving, and the watch over a running child (CPU clock, wall clock,
output). It never reads the body of a job and never interprets what a child wrote. Command line: the number of the
control socket and the process id of the parent.

A fork copies the page tables of all that is loaded, and a child pays for each page that it touches. So whatever a
zygote loads for itself is little (no `typing`, `dataclasses`, `enum`, `re`, `socket`), and the standard library is
loaded only where programs with imports are run.
"""

from __future__ import annotations

import gc
import io
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Iterable

    from populora_env.sandbox.child import Setup
    from populora_env.sandbox.frames import FrameCounter
else:
    import _signal  # what `signal` wraps in enums

_CONTROL_FD = 100
_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 0.001, 0.005
_BALLAST_BYTES = 303 * 4096 - 64
"""Memory that shifts all that is mapped later by an odd number of pages; below 2 MiB, which the kernel aligns."""
_FIRST_ROOM, _ROOM_GROWS = 4096, 4
"""Bytes of room for what a child writes, and how many times more there is when it is full: room is zeroed, so that
as much as a child may write at most would cost more than to run it."""
_WARM_UP = "def f(x):\n    return x\n"
"""The first thing that a process compiles costs it a millisecond, which each child would pay anew."""
_MOST_PADDING, _PADDING_STEP = 32, 3
_SMALLEST_BLOCK, _LARGEST_BLOCK = 16, 528
"""Sizes of the blocks of Python's own allocator."""

_ENCODINGS = "ascii latin_1 utf_8 utf_16 utf_32 cp1252 rot_13"
BUILTIN_NEEDS = ("copyreg", "unicodedata", *(f"encodings.{name}" for name in _ENCODINGS.split()))
"""Modules that the language itself imports when a program without imports asks for it."""
LIBRARY = (
    *("_strptime", "abc", "array", "ast", "base64", "bdb", "binascii", "bisect", "calendar", "cmath"),
    *("codecs", "collections", "collections.abc", "contextlib", "copy", "csv", "ctypes", "dataclasses"),
    *("datetime", "decimal", "difflib", "enum", "errno", "fractions", "functools", "gc", "graphlib"),
    *("hashlib", "heapq", "hmac", "html", "inspect", "io", "itertools", "json", "keyword"),
    *("locale", "math", "numbers", "operator", "os", "os.path", "pprint", "queue", "random"),
    *("re", "reprlib", "secrets", "select", "signal", "socket", "statistics", "string", "stringprep"),
    *("struct", "sys", "textwrap", "threading", "time", "timeit", "token", "tokenize", "traceback"),
    *("types", "typing", "uuid", "warnings", "weakref", "zlib", "atexit", "resource", "subprocess"),
    *("encodings.base64_codec", "encodings.hex_codec", "encodings.idna", "encodings.punycode"),
)
"""Modules that a program may import; all others would need files, which a child cannot open."""

NUMPY = (
    *(
        "numpy",
        "numpy.char",
        "numpy.fft",
        "numpy.lib.stride_tricks",
        "numpy.linalg",
        "numpy.ma",
        "numpy.polynomial",
        "numpy.random",
    ),
    "populora_env.sandbox.harness",
)
"""What is loaded on top for programs of benchmarks."""
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
"""Variables that keep the libraries under numpy from starting threads, each by its own name."""


class NullText(io.TextIOBase):
    """Standard output of a child: takes everything, keeps nothing."""

    def writable(self) -> bool:
        """Return that it can be written."""
        return True

    def write(self, text: str) -> int:
        """Drop `text`."""
        return len(text)


def make_bare_packages(root: str) -> None:
    """Let `populora_env.x` be imported without running the packages' `__init__`, which need what is not here."""
    for name, folder in (("populora_env", root), ("populora_env.sandbox", f"{root}/sandbox")):
        package = type(sys)(name)
        package.__path__ = [folder]
        sys.modules[name] = package


def preload(modules: Iterable[str]) -> None:
    """Import what programs may use; hashlib without OpenSSL, whose pages would make every fork dearer."""
    sys.modules["_hashlib"] = None  # type: ignore[assignment]
    for name in modules:
        try:
            __import__(name)
        except ImportError:
            continue


def load_numpy(packages: str) -> None:
    """Import numpy from the folder `packages`, and the harness of benchmarks; nothing here may start a thread.

    Raises:
        ImportError: One of them is not there.
        OSError: A thread was started all the same.
    """
    from populora_env.sandbox import isolation

    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    sys.path.append(packages)
    for name in NUMPY:
        __import__(name)
    isolation.require_one_thread()


def close_library() -> None:
    """Let nothing more be imported from files, and give programs streams that lead nowhere."""
    sys.path.clear()
    sys.path_importer_cache.clear()
    null = NullText()
    for name, stream in (("stdin", None), ("stdout", null), ("stderr", null)):
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def make_ballast(index: int) -> list[object]:
    """Return memory that gives each zygote its own addresses, down to the lowest bits, randomised or not.

    What depends on an address then differs between two zygotes, as what depends on hashes does. Each size of block
    of Python's own allocator is taken a number of times that depends on the zygote.
    """
    ballast: list[object] = []
    for size in range(_SMALLEST_BLOCK, _LARGEST_BLOCK, _SMALLEST_BLOCK):
        for number in range((index + 1) * (size // _SMALLEST_BLOCK * 7 + 3) % 61):
            if size == _SMALLEST_BLOCK:
                ballast.append(object())
            elif size == 2 * _SMALLEST_BLOCK:
                ballast.append(number + 0.5)
            else:
                ballast.append(bytes(size - sys.getsizeof(b"")))
    return ballast


def main(control: int, parent: int) -> None:
    """Say hello, cut off everything, serve until the control socket closes."""
    from populora_env.encoding import encode
    from populora_env.sandbox import child, frames, isolation, kernel

    kernel.die_with_parent(parent)
    os.setsid()
    isolation.reset_signals()
    isolation.require_platform()
    os.dup2(control, _CONTROL_FD, inheritable=False)
    os.close(control)
    hello = frames.read_exactly(_CONTROL_FD, frames.HELLO.size)
    memory, namespaces, flavour, index, bpf_size, folder_size = frames.HELLO.unpack(hello)
    bpf = frames.read_exactly(_CONTROL_FD, bpf_size)
    packages = os.fsdecode(frames.read_exactly(_CONTROL_FD, folder_size))
    layers = isolation.enter_namespaces() if namespaces else {}
    if layers.get("pid_namespace", False):
        isolation.become_first_process()
        parent = isolation.OUTSIDE
    ballast: list[object] = [bytes(_BALLAST_BYTES) for _ in range(index)]
    preload(BUILTIN_NEEDS if flavour == frames.BARE else (*BUILTIN_NEEDS, *LIBRARY))
    if flavour == frames.NUMPY:
        load_numpy(packages)
    close_library()
    space = isolation.address_space()
    layers |= isolation.seal(
        mount_namespace=layers.get("mount_namespace", False), parent=parent, namespaces=bool(namespaces)
    )
    bpf_filter = kernel.Filter(bpf)
    compile(_WARM_UP, "<warm-up>", "exec", dont_inherit=True)
    gc.collect()
    ballast += make_ballast(index)
    setup = child.Setup(
        control=_CONTROL_FD,
        program_filter=bpf_filter,
        limits=isolation.ChildLimits(address_space=space + memory, tight_address_space=space + memory // 4),
        zygote=os.getpid(),
        ballast=ballast,
        padding=index % _MOST_PADDING * _PADDING_STEP,
    )
    gc.disable()
    gc.freeze()
    answer = encode(layers)
    write_all(len(answer).to_bytes(4, "big") + answer)
    serve(setup)


def write_all(data: bytes | memoryview) -> None:
    """Write to the verifier."""
    with memoryview(data) as view:
        sent = 0
        while sent < len(view):
            with view[sent:] as rest:
                sent += os.write(_CONTROL_FD, rest)


def serve(setup: Setup) -> None:
    """Do one job after the other until the control socket closes."""
    from populora_env.sandbox import child, frames, kernel

    while True:
        head = frames.read_exactly(_CONTROL_FD, frames.JOB.size)
        if len(head) < frames.JOB.size:
            return
        header: tuple[int, int, int, float, float, int] = frames.JOB.unpack(head)
        reading, writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(reading, False)
        pid = kernel.fork()
        if pid == 0:
            child.run(writing, header, setup)
        os.close(writing)
        watch = Watch(pid, reading, header)
        try:
            end = watch.follow()
        finally:
            code, cpu_us = watch.reap()
        if end < 0:
            return
        if end == frames.EXITED and code < 0:
            end, code = frames.SIGNALLED, -code
        if not watch.ready:
            end = frames.NOT_READY
        watch.report(header[0], end, code, cpu_us)


class Watch:
    """The watch over one child, from fork to reap. CPU time is read from the child's own clock."""

    def __init__(self, pid: int, reading: int, header: tuple[int, int, int, float, float, int]) -> None:
        """Begin to watch the child `pid`, whose stream comes in at `reading`."""
        from populora_env.sandbox import frames

        self._frames = frames
        self._expected, self._cpu_s, self._wall_s = header[2:5]
        self._pid = pid
        self._pidfd = os.pidfd_open(pid)
        self._reading = reading
        self._clock = (~pid << 3) | 2  # the kernel's number for the CPU clock of a process
        self._counter: FrameCounter = frames.FrameCounter()
        self._cpu_base = 0.0
        self._wall_base = time.monotonic()
        self._longest = len(frames.READY) + self._expected * (frames.FRAME.size + frames.MAX_PAYLOAD) + 1
        self._buffer = bytearray(_FIRST_ROOM)
        self._filled = 0

    @property
    def ready(self) -> bool:
        """Whether the child finished its set-up."""
        return self._buffer.startswith(self._frames.READY)

    def report(self, job_id: int, end: int, code: int, cpu_us: int) -> None:
        """Give the stream away and wipe it: the next child is a copy of this process, and must not find it."""
        start = len(self._frames.READY) if self.ready else 0
        header = self._frames.REPLY.pack(job_id, end, code, cpu_us, self._filled - start)
        with memoryview(self._buffer) as whole, whole[start : self._filled] as stream:
            try:
                sent = os.writev(_CONTROL_FD, (header, stream))
                write_all(header[sent:])
                with stream[max(0, sent - len(header)) :] as rest:
                    write_all(rest)
            finally:
                whole[: self._filled] = bytes(self._filled)

    def follow(self) -> int:
        """Wait for the child's end, or bring it about; return how it ended, -1 if the verifier is gone."""
        from populora_env.sandbox import frames

        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        poll.register(_CONTROL_FD, 0)
        while True:
            events = dict(poll.poll(self._wait_ms()))
            if _CONTROL_FD in events:
                return -1
            while not self._overlong and self._read():
                pass
            if self._overlong:
                return frames.BAD_STREAM
            if self._over_cpu():
                return frames.CPU_LIMIT
            if self._pidfd in events:
                return frames.EXITED
            if time.monotonic() - self._wall_base > self._wall_s:
                return frames.WALL_LIMIT

    def _wait_ms(self) -> float:
        """Return how long to sleep: to be woken by each frame would cost more than to run it."""
        left = self._cpu_s - (self._cpu() - self._cpu_base)
        return min(max(left, _SHORTEST_WAIT_S), _LONGEST_WAIT_S) * 1000

    def _read(self) -> bool:
        """Take in what the child wrote; False at the end of its stream, or when there is nothing now."""
        if self._filled == len(self._buffer):
            self._grow()
        with memoryview(self._buffer) as whole, whole[self._filled :] as free:
            try:
                size = os.readv(self._reading, [free])
            except BlockingIOError:
                return False
        self._filled += size
        before = self._counter.count
        self._counter.advance(self._buffer, self._filled)
        progress = self._counter.count > before or self._filled == len(self._frames.READY)
        last_alone = before + 1 == self._counter.count == self._expected
        if size and progress and not last_alone:
            # The next call has begun. The last one has no successor and is held to its limit until the child ends.
            self._cpu_base, self._wall_base = self._cpu(), time.monotonic()
        return size > 0

    def _grow(self) -> None:
        """Make room; what the old one held is wiped, as in `report`."""
        larger = bytearray(_ROOM_GROWS * self._filled)
        larger[: self._filled] = self._buffer
        self._buffer[:] = bytes(self._filled)
        self._buffer = larger

    @property
    def _overlong(self) -> bool:
        full = self._filled >= self._longest
        return full or self._counter.overlong or self._counter.count > self._expected

    def _cpu(self) -> float:
        return time.clock_gettime(self._clock)

    def _over_cpu(self) -> bool:
        return self._cpu() - self._cpu_base > self._cpu_s

    def reap(self) -> tuple[int, int]:
        """Make sure that the child is gone; return its exit code (minus the signal) and CPU time in microseconds."""
        _signal.pidfd_send_signal(self._pidfd, _signal.SIGKILL)
        _, status, usage = os.wait4(self._pid, 0)
        os.close(self._pidfd)
        os.close(self._reading)
        return os.waitstatus_to_exitcode(status), int((usage.ru_utime + usage.ru_stime) * 1_000_000)


if __name__ == "__main__":
    make_bare_packages(__file__.rsplit("/", 2)[0])
    try:
        main(int(sys.argv[1]), int(sys.argv[2]))
    except Exception as fault:
        os.write(2, f"{type(fault).__name__}: {fault}".encode())
        os._exit(1)
