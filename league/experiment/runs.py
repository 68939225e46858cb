"""Making the runs: as processes of `python -m league.run`, a few at a time, each gone on with where it was stopped.

Owns folders, processes and the order. What comes of a finished run is written to the summary at once, so that nothing
is made twice.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from league.experiment.arms import ARMS, SHARED, Job
from league.experiment.summary import Record, Shares, append_record, read_summary, summarise
from league.standings import standings
from league.storage import ADAPTERS, CONFIG, VERSIONS, committed_steps, read_object, read_rows
from populora_agents.nano.heldout import nano_heldout
from populora_agents.types import AdapterVersion, Request
from populora_env.config import GameConfig
from populora_env.prompts import get_style
from populora_env.types import Task
from populora_env.verifier import Verifier

_POLL_S = 0.5
Say = Callable[[str], None]


class RunFailedError(RuntimeError):
    """A run ended with an error; the message has its last lines."""


@dataclass(slots=True, kw_only=True)
class Plan:
    """What is to be run, and where."""

    jobs: Sequence[Job]
    steps: int
    out: Path
    """Folder of the run folders."""
    summary: Path
    """File of the records."""
    extra: tuple[str, ...] = ()
    """Flags for all runs, after the shared ones and the arm's own."""
    heldout: int = 150
    """Problems a task of the held-out suite."""
    processes: int = 1
    threads: int = 1

    def flags(self, job: Job) -> tuple[str, ...]:
        """Return what a run is started with, but for seed and folder."""
        arm = ARMS[job.arm]
        return (
            *SHARED,
            *arm.flags,
            *self.extra,
            "--steps",
            str(self.steps * arm.length),
            "--threads",
            str(self.threads),
        )

    def folder(self, job: Job) -> Path:
        """Return the run folder."""
        return self.out / job.arm / f"seed={job.seed}"

    def left(self) -> list[Job]:
        """Return the runs that the summary does not have.

        Raises:
            ValueError: It has one with other flags.
        """
        done = {record.job: record for record in read_summary(self.summary)}
        for job in self.jobs:
            if job in done and done[job].flags != self.flags(job):
                raise ValueError(
                    f"{self.summary}: {job.arm}, seed {job.seed} ran with {' '.join(done[job].flags)!r}, "
                    f"not with {' '.join(self.flags(job))!r}; name another summary"
                )
        return [job for job in self.jobs if job not in done]


def run_all(plan: Plan, say: Say) -> None:
    """Make the runs that are left, `processes` at a time, and write a record of each.

    Raises:
        RunFailedError: A run failed; those beside it are stopped and can be gone on with.
        ValueError: The summary cannot be used.
    """
    waiting = plan.left()
    say(f"{len(plan.jobs) - len(waiting)} of {len(plan.jobs)} runs are in {plan.summary}, {len(waiting)} are left")
    running: dict[Job, subprocess.Popen[str]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < plan.processes:
                job = waiting.pop(0)
                running[job] = _start(plan, job)
            for job in [job for job, process in running.items() if process.poll() is not None]:
                _finish(plan, job, running.pop(job))
                say(f"{job.arm}, seed {job.seed}: done; {len(waiting) + len(running)} runs are left")
            time.sleep(_POLL_S)
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()


def _start(plan: Plan, job: Job) -> subprocess.Popen[str]:
    folder = plan.folder(job)
    folder.parent.mkdir(parents=True, exist_ok=True)
    if (folder / CONFIG).exists():
        asked = ["--resume", str(folder)]
    else:
        asked = [*plan.flags(job), "--seed", str(job.seed), "--out", str(folder)]
    log = folder.with_suffix(".log").open("a", encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-m", "league.run", *asked], stdout=log, stderr=subprocess.STDOUT, text=True
    )


def _finish(plan: Plan, job: Job, process: subprocess.Popen[str]) -> None:
    folder = plan.folder(job)
    if process.returncode:
        log = folder.with_suffix(".log").read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
        raise RunFailedError(f"{job.arm}, seed {job.seed} ended with status {process.returncode}:\n" + "\n".join(log))
    append_record(plan.summary, record_of(plan, job))


def record_of(plan: Plan, job: Job) -> Record:
    """Return the record of a finished run, its members measured."""
    folder = plan.folder(job)
    return summarise(folder, job, plan.flags(job), measure(folder, plan.heldout))


def measure(run: Path, count: int) -> dict[str, Shares]:
    """Return what each member that was there at the end solves of `nano-heldout` greedily, by task.

    Args:
        run: A finished run folder.
        count: Problems a task.
    """
    from populora_agents.backends.torch import TorchBackend  # torch takes seconds to load
    from populora_agents.bases import load_base
    from populora_agents.lora import load_adapter
    from populora_agents.stack import AdapterStack

    base, adapters = load_base(read_object(run / VERSIONS, "base")["base"]), last_adapters(run)
    config = GameConfig(style=base.preset.style, induction_inputs=base.preset.induction_inputs)
    suite = nano_heldout(count)
    observations = suite.observations(config)
    loaded = [load_adapter(folder) for folder in adapters.values()]
    stack = AdapterStack(base.model, loaded[0][1], slots=len(loaded))
    for slot, (adapter, _) in enumerate(loaded):
        stack.load(slot, adapter)
    backend = TorchBackend(base, stack, {member_id: (slot, 0) for slot, member_id in enumerate(adapters)})
    requests = [
        Request(
            adapter=AdapterVersion(member_id=member_id, version=0),
            messages=observation.messages,
            max_new_tokens=base.preset.max_new_tokens_answer,
            temperature=0.0,
            stop=get_style(config.style).stop,
        )
        for member_id in adapters
        for observation in observations
    ]
    texts = [completion.text for completion in backend.generate(requests)]
    found: dict[str, Shares] = {}
    with Verifier() as verifier:
        for place, member_id in enumerate(adapters):
            said = texts[place * len(observations) : (place + 1) * len(observations)]
            shares = suite.shares(suite.judge(said, verifier, config))
            found[member_id] = {task.value: shares[task.value] for task in Task}
    return found


def last_adapters(run: Path) -> Mapping[str, Path]:
    """Return the folder of the newest weights of each member that was there at the end."""
    there = standings(*(read_rows(run, name) for name in ("ratings", "matches", "lineage")), caution=0.0)
    last = max(committed_steps(run))
    found: dict[str, Path] = {}
    for one in sorted(there, key=lambda one: one.member_id):
        versions = [int(path.name) for path in (run / ADAPTERS / one.member_id).iterdir()]
        found[one.member_id] = run / ADAPTERS / one.member_id / str(max(versions))
        if max(versions) != last - one.born:
            raise RunFailedError(f"{run}: the last weights of {one.member_id} were not saved")
    return found
