"""What the league costs beside its models: the controller's own time in a step, and the writing of rollouts.

    python benchmarks/league_overhead.py [--json] [--members 8 64 1024] [--steps 5] [--profile N]

All is real and has nano's default settings, but completions, verdicts and updates, which come from stand-ins. The
controller is the engine with its run folder: matchmaking, ratings, evolution, and the writing of all tables. What an
arena does beside its models (requests, parsing, rows, metrics) is told apart, and so is the saving of weights.

    engine_s_N             the controller's seconds a step, with N members
    arena_s_N              the arena's, stand-ins taken off
    save_s_N               saving weights and state, every fifth step, spread over the steps
    step_s_N               up to 64 members: a step of the real thing on nano; above: engine_s_N
    controller_share_N     engine_s_N / step_s_N, in percent
    own_share_N            (engine_s_N + arena_s_N) / step_s_N, in percent
    parquet_100k_s         seconds to write 100,000 rollouts as one step
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import tempfile
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from league.arena import ProgramArena, make_arena
from league.config import RunConfig, make_game, resolve
from league.engine import League
from league.executors.local import LocalExecutor
from league.machine import prepare_torch
from league.operators import usable
from league.options import MachineOptions
from league.run import make_rules
from league.storage import RunFolder, read_rows
from league.types import Match, Play, StepReport
from populora_agents.bases import Base, load_base
from populora_agents.prompting import PromptEncoder
from populora_agents.types import Completion, MemberUpdate, Request, Rollout, UpdateReport
from populora_env.config import GameConfig
from populora_env.seats import GeneratorProposer, GuessingSolver
from populora_env.types import Answer, Observation, Problem, Proposal, ProposalVerdict, Role, Status, Task, Verdict

LARGEST_REAL = 64
ROLLOUTS = 100_000


class Clock:
    """Seconds that were not the league's own, by what they went into."""

    def __init__(self) -> None:
        """Begin at 0."""
        self.seconds: dict[str, float] = {"stand-in": 0.0, "save": 0.0, "play": 0.0}

    @contextmanager
    def away(self, name: str = "stand-in") -> Iterator[None]:
        """Count what happens meanwhile."""
        began = time.perf_counter()
        yield
        self.seconds[name] += time.perf_counter() - began


class StandIn:
    """Completes, judges and learns without a model, a sandbox or weights."""

    name = "stand-in"
    layers: Mapping[str, bool] = {}

    def __init__(self, config: GameConfig, base: Base, clock: Clock) -> None:
        """Play by these rules, in the tokens of a base."""
        self._config = config
        self._clock = clock
        self._tokenizer = base.tokenizer
        self._prompt_ids = PromptEncoder(base.tokenizer).encode

    def generate(self, requests: Sequence[Request]) -> list[Completion]:
        """Complete with well-formed random text."""
        with self._clock.away():
            return [self._complete(request) for request in requests]

    def prompt_ids(self, messages: Sequence[Any]) -> tuple[int, ...]:
        """Return the tokens of a prompt."""
        return tuple(self._prompt_ids(messages))

    def check_proposals(
        self, proposals: Sequence[Proposal], *, owners: Sequence[Hashable] | None = None
    ) -> list[ProposalVerdict]:
        """Take every proposal for valid."""
        del owners
        with self._clock.away():
            return [
                ProposalVerdict(
                    verdict=Verdict(status=Status.OK),
                    inputs=one.inputs,
                    outputs=tuple(str(place) for place in range(len(one.inputs))),
                    exec_ms=1.0,
                )
                for one in proposals
            ]

    def check_answers(
        self, attempts: Sequence[tuple[Problem, Answer]], *, owners: Sequence[Hashable] | None = None
    ) -> list[Verdict]:
        """Take every other answer for right."""
        del owners
        with self._clock.away():
            return [Verdict(status=(Status.OK, Status.WRONG)[place % 2]) for place in range(len(attempts))]

    def advantages(self, rollouts: Sequence[Rollout]) -> Any:
        """Return the rewards."""
        return np.array([rollout.reward for rollout in rollouts])

    def update(self, rollouts: Sequence[Rollout], *_: Any) -> UpdateReport:
        """Learn nothing."""
        with self._clock.away():
            members = sorted({rollout.member_id for rollout in rollouts})
            return UpdateReport(members=dict.fromkeys(members, _NOTHING), seconds=0.0)

    def reset_slot(self, slot: int) -> None:
        """There is nothing to forget."""

    def state_dict(self) -> dict[str, Any]:
        """There is nothing to keep."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """There is nothing to take over."""

    def close(self) -> None:
        """Nothing is held."""

    def committed(self, report: StepReport) -> None:
        """Nobody watches."""

    def _complete(self, request: Request) -> Completion:
        text = self._play(request)
        token_ids = tuple(self._tokenizer.encode(text, add_special_tokens=False)[: request.max_new_tokens])
        return Completion(
            request=request,
            prompt_ids=self.prompt_ids(request.messages),
            token_ids=token_ids,
            logprobs=(-0.5,) * len(token_ids),
            text=text,
            finish_reason="stop",
        )

    def _play(self, request: Request) -> str:
        prompt = request.messages[0].content
        mark = prompt.split("\n", 1)[0].strip("<>")
        proposes = mark.startswith("propose ")
        observation = Observation(
            role=Role.PROPOSER if proposes else Role.SOLVER,
            task=Task(mark.removeprefix("propose ")),
            prompt=prompt,
            messages=request.messages,
        )
        return (GeneratorProposer if proposes else GuessingSolver)(self._config, request.seed)(observation)


_NOTHING = MemberUpdate(
    **{name: 0 for name in MemberUpdate.__dataclass_fields__ if name != "extra"}  # type: ignore[arg-type]
)


class TimedArena(ProgramArena):
    """An arena that counts its part, stand-ins included."""

    clock: Clock

    def play(self, matches: Sequence[Match], *, step: int) -> Play:
        """Count."""
        with self.clock.away("play"):
            return super().play(matches, step=step)


class TimedFolder(RunFolder):
    """A run folder that counts the saving of weights and state apart."""

    clock: Clock

    @contextmanager
    def adapters(self) -> Iterator[Path]:
        """Count."""
        with self.clock.away("save"), super().adapters() as folder:
            yield folder

    @contextmanager
    def state(self, step: int, needs: Iterable[str] = ()) -> Iterator[Path]:
        """Count."""
        with self.clock.away("save"), super().state(step, needs) as folder:
            yield folder


def settings(members: int, steps: int, base: Base) -> RunConfig:
    """Return the default settings of a league of that many members."""
    half = members // 2
    config = RunConfig(teachers=half, students=half, steps=steps, machine=MachineOptions(threads=1))
    return resolve(config, base.preset, usable({}))


def own_time(members: int, steps: int, base: Base, watch: Callable[[Callable[[], None]], None]) -> dict[str, float]:
    """Play with stand-ins; return the seconds a step by whose they are."""
    config, clock = settings(members, steps, base), Clock()
    stand_in: Any = StandIn(make_game(config, None), base, clock)
    arena = TimedArena(config, base, LocalExecutor(config, base, stand_in, stand_in, lambda *_: stand_in))
    arena.clock = clock
    with tempfile.TemporaryDirectory() as place:
        run = TimedFolder.create(Path(place) / "run", run_id="r", config="", versions={})
        run.clock = clock
        league = League(make_rules(config), arena, run, stand_in)
        league.found()
        clock.seconds = dict.fromkeys(clock.seconds, 0.0)
        began = time.perf_counter()
        watch(league.go_on)
        took = time.perf_counter() - began
        run.close()
    spent = clock.seconds
    seconds = {
        "engine": took - spent["save"] - spent["play"],
        "arena": spent["play"] - spent["stand-in"],
        "save": spent["save"],
    }
    return {f"{name}_s_{members}": value / steps for name, value in seconds.items()}


def real_time(members: int, base: Base) -> float:
    """Return the seconds of a step of the real thing; the median of three, but for large leagues of one."""
    steps = 3 if members <= 8 else 1
    config = settings(members, steps, base)
    with tempfile.TemporaryDirectory() as place:
        arena = make_arena(config, base)
        try:
            run = RunFolder.create(Path(place) / "run", run_id="r", config="", versions={})
            seconds: list[float] = []
            league = League(make_rules(config), arena, run, _Seconds(seconds))
            league.run()
            run.close()
        finally:
            arena.close()
    return float(np.median(seconds))


class _Seconds:
    """Notes what the phases of each step took."""

    def __init__(self, seconds: list[float]) -> None:
        self._seconds = seconds

    def committed(self, report: StepReport) -> None:
        """Note it."""
        if report.step:
            self._seconds.append(sum(report.seconds.values()))


def parquet_time(base: Base) -> float:
    """Return the seconds of writing 100,000 rollouts as they come from a step."""
    config = settings(8, 1, base)
    stand_in: Any = StandIn(make_game(config, None), base, Clock())
    arena = ProgramArena(config, base, LocalExecutor(config, base, stand_in, stand_in, lambda *_: stand_in))
    with tempfile.TemporaryDirectory() as place:
        run = RunFolder.create(Path(place) / "run", run_id="r", config="", versions={})
        League(make_rules(config), arena, run, stand_in).run()
        rows = [{**row, "step": 2} for row in read_rows(run.path, "rollouts")]
        for row in rows:
            del row["run_id"]
        many = (rows * (ROLLOUTS // len(rows) + 1))[:ROLLOUTS]
        began = time.perf_counter()
        run.commit(2, {"rollouts": many}, {})
        took = time.perf_counter() - began
        run.close()
    return took


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--members", type=int, nargs="*", default=[8, 64, 1024], help="sizes (default: 8 64 1024)")
    parser.add_argument("--steps", type=int, default=5, help="steps with stand-ins (default: 5, of which one saves)")
    parser.add_argument("--threads", type=int, default=0, help="threads of torch (default: all cores)")
    parser.add_argument("--no-real", action="store_true", help="leave the real steps out, and the shares")
    parser.add_argument("--profile", type=int, default=0, metavar="N", help="print the N costliest functions instead")
    given = parser.parse_args()
    prepare_torch(given.threads)
    profile = cProfile.Profile()

    def watch(work: Callable[[], None]) -> None:
        profile.runcall(work) if given.profile else work()

    figures: dict[str, float] = {}
    for members in given.members:
        figures |= own_time(members, given.steps, load_base("nano"), watch)
        if members <= LARGEST_REAL and not given.no_real and not given.profile:
            figures[f"step_s_{members}"] = real_time(members, load_base("nano"))
            engine, arena = (figures[f"{name}_s_{members}"] for name in ("engine", "arena"))
            figures[f"controller_share_{members}"] = 100 * engine / figures[f"step_s_{members}"]
            figures[f"own_share_{members}"] = 100 * (engine + arena) / figures[f"step_s_{members}"]
        if members > LARGEST_REAL:
            figures[f"step_s_{members}"] = figures[f"engine_s_{members}"]
    if given.profile:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(given.profile)
        return
    figures["parquet_100k_s"] = parquet_time(load_base("nano"))
    if given.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:24} {value:10.4f}")


if __name__ == "__main__":
    main()
