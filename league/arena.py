"""`ProgramArena`: where members play the programming game and learn from it.

Owns the problem buffer, the archive and the clock of a step's phases. Owns neither who plays (the engine), nor where
the members' weights are and who does the work (`executors`), nor what is kept (storage). The phases are in `rounds`,
the columns in `rows`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch
from safetensors.torch import load, save

from league.archive import Archive, standard_centroids
from league.config import RunConfig, known, make_game
from league.executors.local import LocalExecutor
from league.executors.types import Executor
from league.learning import (
    MakeTrainer,
    learning_rate,
    lora_config,
    member_updates,
    rollouts_of,
    update_metrics,
)
from league.lineage import founder_seed
from league.metric_table import metric_rows, named
from league.metrics import step_metrics
from league.operators import apply
from league.rounds import (
    PlayedRound,
    Room,
    Sampling,
    judge_answers,
    judge_proposals,
    open_rounds,
    propose,
    recall_proposals,
    solve,
)
from league.rows import problem_row, rollout_rows
from league.types import Match, MatchResult, Member, Play, Row, Side
from league.yardstick import Tried, try_base, yardstick_metrics
from populora_agents.bases import Base
from populora_agents.lora import Adapter, adapter_sha256, check_rank, fresh_adapter, load_adapter, save_adapter
from populora_agents.prompting import PromptEncoder
from populora_agents.types import Rollout, UpdateReport
from populora_env.buffer import ProblemBuffer
from populora_env.game import seeded_buffer
from populora_env.prompts import get_style
from populora_env.verifier import Verifier

BUFFER_FILE, OPTIMISER_FILE, PROPOSED_FILE = "buffer.jsonl", "optimiser.safetensors", "proposed.json"


class ProgramArena:
    """Implements `league.types.Arena` over one base model and an executor that does the work."""

    def __init__(self, config: RunConfig, base: Base, executor: Executor) -> None:
        """Begin without members.

        Args:
            config: Resolved.
            base: Whose tokenizer, context and shapes count; the executor may have put a stack on its model.
            executor: Taken over: closed with the arena.

        Raises:
            ValueError: Not resolved, or lengths that the base's context has no room for.
        """
        play = config.play
        self._config = config
        self._game = make_game(config, None)
        self._base = base
        self._executor = executor
        self._sampling = Sampling(
            seed=config.seed,
            proposal_tokens=known(play.proposal_tokens),
            answer_tokens=known(play.answer_tokens),
            temperature=known(play.temperature),
            top_p=known(play.top_p),
            stop=get_style(self._game.style).stop,
        )
        self._lora = lora_config(config)
        self._stack = executor.adapters
        self._slots = executor.slots
        self._backend = executor.backend
        self._verifier = executor.judge
        self._room = Room(base.context_tokens, PromptEncoder(base.tokenizer).encode, self._sampling)
        self._trainer = executor.rule
        self._buffer = seeded_buffer(self._game).copy()
        self._archive = Archive(standard_centroids())
        self._proposed: dict[str, set[str]] = {}
        self._seconds: dict[str, float] = {}
        self.on_phase: Callable[[str, int, str], None] | None = None
        """Is told of every phase as it begins: its name, how many there are to do, and of what."""

    @property
    def base_name(self) -> str:
        """The base, with its version."""
        return self._base.name

    @property
    def sandbox_layers(self) -> Mapping[str, bool]:
        """Layers of the sandbox, and whether each is in force."""
        return self._verifier.layers

    def found(self, members: Sequence[Member]) -> None:
        """Give each founder a fresh adapter: A drawn by its own seed, B zero."""
        for member in members:
            generator = torch.Generator().manual_seed(founder_seed(self._config.seed, member.member_id))
            self._settle(member, fresh_adapter(self._base.model, self._lora, generator))

    def play(self, matches: Sequence[Match], *, step: int) -> Play:
        """Play and learn; see `Arena`."""
        self._seconds = {}
        config = self._config
        rounds = open_rounds(
            matches,
            self._buffer,
            self._game,
            config.play,
            self._room,
            config.seed,
            cross_eval_problems=config.measure.cross_eval_problems,
        )
        with self._clock("propose", len(rounds), "proposals"):
            propose(rounds, self._backend, self._sampling)
        with self._clock("verify", len(rounds), "proposals"):
            judge_proposals(rounds, self._verifier, self._room)
        answers = sum(not played.round.settled for played in rounds) * self._game.solver_seats
        with self._clock("solve", answers, "answers"):
            solve(rounds, self._backend, self._sampling)
        with self._clock("verify", answers, "answers"):
            judge_answers(rounds, self._verifier)
        recall_proposals(rounds, self._proposed)
        rollouts = {rollout_id: rollout for played in rounds for rollout_id, rollout in rollouts_of(played)}
        present = [played for played in rounds if played.match.kind in ("train", "self_play")]
        tried: list[Tried] = []
        if present and config.measure.yardstick:
            count = config.measure.yardstick
            with self._clock("yardstick", count, "answers"):
                tried = try_base(present, count, self._backend, self._verifier, self._sampling, step=step)
        with self._clock("update", len(rollouts), "rollouts"):
            advantages, report = self._learn(list(rollouts.values()), matches)
        self._grow(matches)
        tables = self._tables(rounds, dict(zip(rollouts, advantages, strict=True)))
        self._keep(rounds, tables["problems"])
        ids = {played.match.match_id for played in present}
        own_problems, own_rollouts = (
            [row for row in tables[name] if row["match_id"] in ids] for name in ("problems", "rollouts")
        )
        shown = step_metrics(own_problems, own_rollouts, self._game.style)
        measured = [*shown, *member_updates(report), *yardstick_metrics(tried)]
        tables["metrics"] = metric_rows(step, [one for one in measured if one.member_id is not None])
        metrics = named(one for one in measured if one.member_id is None) | self._archive.coverage()
        return Play(
            results=tuple(_result(match, rounds) for match in matches),
            tables=tables,
            metrics=metrics | update_metrics(report),
            seconds=self._seconds,
        )

    def recall(self, members: Sequence[Member], adapters: str) -> None:
        """Put past versions into the slots behind the living; see `Arena`."""
        for member in members:
            if self._slots.get(member.adapter.member_id) != (self._slot_of(member), member.version):
                self._settle(member, load_adapter(Path(adapters) / member.member_id / str(member.version))[0])

    def breed(
        self, child: Member, parents: Sequence[Member], operator: str, parameters: Mapping[str, float], *, seed: int
    ) -> str:
        """Make the child and put it into its slot; see `Arena`."""
        adapters = [self._adapter(parent) for parent in parents]
        adapter = apply(operator, adapters, torch.Generator().manual_seed(seed), parameters)
        self._settle(child, adapter)
        self._trainer.reset_slot(self._slot_of(child))
        return adapter_sha256(adapter, self._lora)

    def save_adapters(self, members: Sequence[Member], folder: str) -> Mapping[str, str]:
        """Write the members' present weights; see `Arena`."""
        return {
            member.member_id: save_adapter(
                Path(folder) / member.member_id / str(member.version),
                self._adapter(member),
                self._lora,
                self._base.name,
            )
            for member in members
        }

    def save_state(self, folder: str) -> None:
        """Write the buffer (JSON lines, oldest first within each task), archive, moments, and what repeats cost."""
        lines = "".join(json.dumps(row) + "\n" for row in self._buffer.rows())
        (Path(folder) / BUFFER_FILE).write_text(lines, encoding="utf-8")
        self._archive.save(Path(folder))
        (Path(folder) / OPTIMISER_FILE).write_bytes(save(self._trainer.state_dict()))
        if self._game.rewards.repeat_penalty:
            proposed = {member_id: sorted(keys) for member_id, keys in sorted(self._proposed.items())}
            (Path(folder) / PROPOSED_FILE).write_text(json.dumps(proposed), encoding="utf-8")

    def restore(self, members: Sequence[Member], adapters: str, state: str) -> None:
        """Take over saved adapters, buffer, archive and moments; see `Arena`."""
        for member in members:
            adapter, _ = load_adapter(Path(adapters) / member.member_id / str(member.version))
            self._settle(member, adapter)
        lines = (Path(state) / BUFFER_FILE).read_text(encoding="utf-8").splitlines()
        game = self._game
        self._buffer = ProblemBuffer.from_rows(map(json.loads, lines), tasks=game.tasks, size=game.buffer_size)
        self._archive = Archive.load(Path(state))
        self._trainer.load_state_dict(load((Path(state) / OPTIMISER_FILE).read_bytes()))
        if game.rewards.repeat_penalty:
            proposed = json.loads((Path(state) / PROPOSED_FILE).read_bytes())
            self._proposed = {member_id: set(keys) for member_id, keys in proposed.items()}

    def close(self) -> None:
        """Close the executor."""
        self._executor.close()

    def _learn(self, rollouts: Sequence[Rollout], matches: Sequence[Match]) -> tuple[list[float], UpdateReport]:
        if not rollouts:
            return [], UpdateReport(members={}, seconds=0.0)
        advantages = self._trainer.advantages(rollouts)
        slots = {member_id: slot for member_id, (slot, _) in self._slots.items() if slot < self._config.members}
        rates = {
            member.member_id: learning_rate(self._config, member.side) * member.learning_rate_scale
            for match in matches
            for member in match.learners
        }
        return advantages.tolist(), self._trainer.update(rollouts, advantages, slots, rates)

    def _tables(self, rounds: Sequence[PlayedRound], advantages: Mapping[str, float]) -> dict[str, list[Row]]:
        ids = [played.match.match_id for played in rounds]
        first = min(ids, default=0) * ids.count(min(ids, default=0))
        return {
            "problems": [problem_row(played, index) for index, played in enumerate(rounds, start=first)],
            "rollouts": [row for played in rounds for row in rollout_rows(played, advantages, self._backend.name)],
        }

    def _keep(self, rounds: Sequence[PlayedRound], problems: Sequence[Row]) -> None:
        """Put what teachers that learn proposed into buffer and archive; of others' problems, only tell the cell."""
        new = [played for played in rounds if played.match.teacher in played.match.learners]
        for played in new:
            if played.round.problem is not None:
                self._buffer.add(played.round.problem)
        names = {played.proposal_id for played in new}
        self._archive.place(row for row in problems if row["proposal_id"] in names)
        self._archive.mark(row for row in problems if row["proposal_id"] not in names)

    def _grow(self, matches: Sequence[Match]) -> None:
        for member in (one for match in matches for one in match.learners):
            self._slots[member.member_id] = (self._slot_of(member), member.version + 1)

    def _settle(self, member: Member, adapter: Adapter) -> None:
        self._forget(slot := self._slot_of(member))
        self._stack.load(slot, adapter)
        self._slots[member.adapter.member_id] = (slot, member.version)

    def _forget(self, slot: int) -> None:
        for member_id in [member_id for member_id, (held, _) in self._slots.items() if held == slot]:
            del self._slots[member_id]
            self._proposed.pop(member_id, None)

    def _adapter(self, member: Member) -> Adapter:
        """Return the present weights of a member.

        Raises:
            ValueError: The arena does not hold that version.
        """
        slot = self._slot_of(member)
        if self._slots.get(member.member_id) != (slot, member.version):
            raise ValueError(f"the arena does not hold {member.adapter!s}, but {self._slots.get(member.member_id)!r}")
        return self._stack.adapter(slot)

    def _slot_of(self, member: Member) -> int:
        """Teachers come first in the stack, then students, then past members; a single agent is alone in it."""
        if member.frozen:
            return self._config.members + member.slot
        return self._config.teachers + member.slot if member.side is Side.STUDENT else member.slot

    @contextmanager
    def _clock(self, phase: str, count: int, unit: str) -> Iterator[None]:
        if self.on_phase is not None:
            self.on_phase(phase, count, unit)
        began = time.perf_counter()
        yield
        self._seconds[phase] = self._seconds.get(phase, 0.0) + time.perf_counter() - began


def make_arena(
    config: RunConfig, base: Base, new_trainer: MakeTrainer | None = None, *, exchange: Path | None = None
) -> ProgramArena:
    """Return the arena of a resolved configuration, its executor running.

    Args:
        config: Resolved.
        base: Taken over by an executor that works here.
        new_trainer: Makes what learns. None is the trainer that the configuration names.
        exchange: Folder for adapters on their way between processes; an executor that works here needs none.

    Raises:
        ValueError: As for `ProgramArena`, or targets that the base lacks, or a rank too large for them.
        SandboxError: Untrusted code cannot be run safely here.
        ExecutorError: The cluster cannot be started or joined.
        EngineError: The engine that shall complete prompts does not start.
    """
    check_rank(base.model, lora_config(config))
    with ExitStack() as held:
        executor: Executor
        if config.cluster.executor == "ray" and exchange is not None:
            from league.executors.ray import RayExecutor  # an option that few need

            executor = RayExecutor(config, base.name, exchange, new_trainer)
        else:
            verifier = held.enter_context(Verifier(config.verifier))
            executor = LocalExecutor(config, base, verifier, new_trainer=new_trainer)
        held.callback(executor.close)
        arena = ProgramArena(config, base, executor)
        held.pop_all()
        return arena


def _result(match: Match, rounds: Sequence[PlayedRound]) -> MatchResult:
    solve_rates = [
        rate for played in rounds if played.match is match and (rate := played.round.result().solve_rate) is not None
    ]
    observed = sum(solve_rates) / len(solve_rates) if solve_rates else None
    return MatchResult(match=match, observed=observed, n_problems=len(solve_rates))
