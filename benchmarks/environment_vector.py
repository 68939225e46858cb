"""What stepping many games together gains: `make_vec` beside the same games stepped one by one, in one run.

    python benchmarks/environment_vector.py [--json] [--rounds N]

The mix is solve-only: all three tasks, and problems that the verifier knows already, so that only new answers are
judged. Both sides play the same games with the same answers, each with a verifier of its own, in turn; medians over the
rounds. `zygotes_busy` is the share of the verify phase (the wall clock of the calls to the verifier) in which a zygote
has work that it has not answered, the mean over the zygotes; it does not hang on what else the machine does.
`zygotes_cpu` is the CPU time of the zygotes and their children (/proc) over the same clock, which does.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import statistics
import time
import zlib
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from populora_env.config import GameConfig
from populora_env.sandbox.queues import Load
from populora_env.sandbox.worker import Worker
from populora_env.seats import fitting_proposal, random_answer
from populora_env.solo_envs import SolverEnv
from populora_env.types import Answer, Observation, Problem, Proposal, ProposalVerdict, Task, Verdict
from populora_env.vector import make_vec
from populora_env.verifier import Verifier

GAMES = 64
STEPS = 6
"""Of a round; two episodes."""
_CONFIG = GameConfig(solver_seats=1, references=1, seed_problems=8)
_WARM_UP = 15
"""Steps after which every problem has been seen."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default: 5)")
    arguments = parser.parse_args()
    figures = vector_figures(arguments.rounds)
    if arguments.json:
        print(json.dumps(figures))
        return
    print(f"steps a second, median of {arguments.rounds} rounds, {GAMES} games")
    print(f"  together       {figures['steps_per_s']['vec64']:8.0f}")
    print(f"  one by one     {figures['steps_per_s']['one_by_one']:8.0f}")
    print(f"  ratio          {figures['ratios']['vec64_vs_one_by_one']:8.2f}")
    print("\n".join(busy_lines(figures)))


def busy_lines(figures: dict[str, Any]) -> list[str]:
    """Return both shares of the verify phase for people, with what each is."""
    return [
        "of the verify phase (the wall clock of the calls to the verifier), the mean over the zygotes:",
        f"  zygotes_busy{figures['zygotes_busy']:19.2f}   holds a job that it has not answered; must be at least 0.85",
        f"  zygotes_cpu{figures['zygotes_cpu']:20.2f}   spends CPU time, its children's included; less on busy cores",
    ]


def vector_figures(rounds: int) -> dict[str, Any]:
    """Return the medians over so many rounds, the ratio among them."""
    with WorkClock() as clock, Verifier() as together:
        zygotes = _children()
        with Verifier() as alone:
            return _measure(rounds, TimedJudge(together), alone, zygotes, clock)


def _measure(
    rounds: int, together: TimedJudge, alone: Verifier, zygotes: Sequence[int], clock: WorkClock
) -> dict[str, Any]:
    vector = make_vec(GAMES, config=_CONFIG, proposer=known_problem, verifier=together)
    single = [SolverEnv(config=_CONFIG, proposer=known_problem, verifier=alone) for _ in range(GAMES)]
    _, infos = vector.reset(seed=0)
    for place, env in enumerate(single):
        env.reset(seed=place)
    for _ in range(_WARM_UP):
        infos = vector.step([""] * GAMES)[4]
        _step_each(single, [""] * GAMES)
    rng = np.random.default_rng(0)
    vector_s, single_s, busy, cpu = [], [], [], []
    for _ in range(rounds):
        together.wall_s, spent = 0.0, [0.0, 0.0]
        work_s, cpu_s = clock.work_s(zygotes), sum(map(_cpu_s, zygotes))
        for _ in range(STEPS):
            actions = [random_answer(rng, Task(task), _CONFIG) for task in infos["task"]]
            began = time.perf_counter()
            _, rewards, _, _, infos = vector.step(actions)
            between = time.perf_counter()
            alike = _step_each(single, actions) == rewards.tolist()
            spent = [spent[0] + between - began, spent[1] + time.perf_counter() - between]
            if not alike:
                raise RuntimeError("expected both sides to be paid the same")
        phase_s = together.wall_s * len(zygotes)
        busy.append((clock.work_s(zygotes) - work_s) / phase_s)
        cpu.append((sum(map(_cpu_s, zygotes)) - cpu_s) / phase_s)
        vector_s.append(spent[0])
        single_s.append(spent[1])
    steps = GAMES * STEPS
    return {
        "ratios": {
            "vec64_vs_one_by_one": statistics.median(one / many for one, many in zip(single_s, vector_s, strict=True))
        },
        "zygotes_busy": statistics.median(busy),
        "zygotes_cpu": statistics.median(cpu),
        "steps_per_s": {
            "vec64": steps / statistics.median(vector_s),
            "one_by_one": steps / statistics.median(single_s),
        },
        "zygotes": len(zygotes),
        "rounds": rounds,
    }


def known_problem(observation: Observation) -> str:
    """Propose what is shown once more; of induction, always the same inputs for the same program."""
    return _known_problem(observation.task, observation.prompt, observation)


@functools.cache
def _known_problem(task: Task, prompt: str, observation: Observation) -> str:
    if task is Task.INDUCTION:
        return fitting_proposal(np.random.default_rng(zlib.crc32(prompt.encode())), observation, _CONFIG)
    return "<answer>\n" + prompt.split("\n", 1)[1].rstrip("\n")


class TimedJudge:
    """A verifier with a clock on its calls."""

    def __init__(self, verifier: Verifier) -> None:
        """Pass everything on to `verifier`."""
        self._verifier = verifier
        self.wall_s = 0.0

    def check_proposals(
        self, proposals: Sequence[Proposal], *, owners: Sequence[Hashable] | None = None
    ) -> list[ProposalVerdict]:
        """Judge proposals."""
        began = time.perf_counter()
        verdicts = self._verifier.check_proposals(proposals, owners=owners)
        self.wall_s += time.perf_counter() - began
        return verdicts

    def check_answers(
        self, attempts: Sequence[tuple[Problem, Answer]], *, owners: Sequence[Hashable] | None = None
    ) -> list[Verdict]:
        """Judge answers."""
        began = time.perf_counter()
        verdicts = self._verifier.check_answers(attempts, owners=owners)
        self.wall_s += time.perf_counter() - began
        return verdicts


class WorkClock:
    """How long each zygote has had work: from the first job given to an idle one to the last answer taken from it."""

    def __init__(self) -> None:
        """Begin with none."""
        self._since: dict[int, float] = {}
        self._work_s: dict[int, float] = {}

    def __enter__(self) -> Self:
        """Watch the handing out of jobs."""
        self._send, self._turn_to_next = Worker.send, Worker.turn_to_next
        clock, send, turn_to_next = self, Worker.send, Worker.turn_to_next

        def watched_send(worker: Worker, load: Load) -> None:
            if not worker.loads:
                clock._since[worker.pid] = time.perf_counter()
            send(worker, load)

        def watched_turn(worker: Worker) -> Load:
            done = turn_to_next(worker)
            if not worker.loads:
                worked_s = time.perf_counter() - clock._since[worker.pid]
                clock._work_s[worker.pid] = clock._work_s.get(worker.pid, 0.0) + worked_s
            return done

        Worker.send, Worker.turn_to_next = watched_send, watched_turn  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        """Watch no longer."""
        Worker.send, Worker.turn_to_next = self._send, self._turn_to_next  # type: ignore[method-assign]

    def work_s(self, zygotes: Sequence[int]) -> float:
        """Return the sum over these zygotes, all idle now, in seconds."""
        return sum(self._work_s.get(pid, 0.0) for pid in zygotes)


def _step_each(envs: Sequence[SolverEnv], actions: Sequence[str]) -> list[float]:
    rewards = []
    for env, action in zip(envs, actions, strict=True):
        _, reward, terminated, _, _ = env.step(action)
        rewards.append(reward)
        if terminated:
            env.reset()
    return rewards


def _children() -> list[int]:
    """Return the processes that this one started."""
    return [int(pid) for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()]


def _cpu_s(pid: int) -> float:
    """Return the CPU time of a process, of its living descendants, and of those it has waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        below = [
            int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()
        ]
    except OSError:  # it has ended, and its parent has its time
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + sum(map(_cpu_s, below))


if __name__ == "__main__":
    main()
