"""`ClassicArena`: where members play a classic game and learn from it, present ones and past ones.

Owns the members' weights: a slot of the cast each, teachers first, and behind them one for every past version that was
frozen. Owns neither who plays (the engine, `hall`) nor what is kept.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save

from league import seeds
from league.classic.cast import Cast
from league.classic.games import ClassicGame
from league.classic.learner import Learner
from league.classic.network import TARGETS, PolicyNetwork
from league.classic.options import Settings
from league.classic.tables import Deal, make_table
from league.classic.tree import Floats, Ints
from league.hall_of_fame import PastMember
from league.lineage import founder_seed
from league.operators import apply
from league.types import Match, MatchResult, Member, Play, Rating, Side
from populora_agents.config import LoraConfig
from populora_agents.lora import Adapter, adapter_sha256, fresh_adapter, load_adapter, save_adapter

PAST_FILE, STATE_FILE = "past.json", "state.safetensors"


class ClassicArena:
    """Implements `league.types.Arena` over a small frozen network."""

    def __init__(self, game: ClassicGame, settings: Settings, *, seed: int) -> None:
        """Make the base; `seed` is the root of the league's randomness."""
        self.game = game
        self.past: list[PastMember] = []
        """All that were frozen, in order."""
        self._settings, self._seed = settings, seed
        self._lora = LoraConfig(lora_rank=settings.lora_rank, alpha=2.0 * settings.lora_rank, targets=TARGETS)
        generator = torch.Generator().manual_seed(seeds.seed(seed, 0, "base"))
        network = PolicyNetwork(game.width, game.actions, settings.hidden, generator)
        self.cast = Cast(network, self._lora, settings.teachers + settings.students)
        self.table = make_table(game, self.cast, payoff_games=settings.payoff_games)
        self._learner = Learner(
            self.cast.present,
            entropy=settings.entropy,
            passes=settings.passes,
        )
        self._slots: dict[str, int] = {}

    @property
    def base_name(self) -> str:
        """What the members' files name as their base."""
        return f"{self.game.name}-mlp{self._settings.hidden}-seed{self._seed}"

    def slot_of(self, member: Member) -> int:
        """Return the slot of the cast that plays for a member, present or frozen."""
        if member.frozen:
            return self._slots[member.adapter.member_id]
        return member.slot if member.side is Side.TEACHER else self._settings.teachers + member.slot

    def slots(self, side: Side) -> tuple[Ints, Ints]:
        """Return the slots of a side's past versions, the oldest first, and of its present members."""
        past = [self.slot_of(one.member) for one in self.past if one.member.side is side]
        first, size = (0, self._settings.teachers) if side is Side.TEACHER else (self._settings.teachers, 0)
        return np.array(past, dtype=np.int64), np.arange(first, size or self.cast.present.slots)

    def freeze(self, member: Member, rating: Rating) -> None:
        """Keep a present member as it is."""
        frozen = PastMember(member=replace(member, frozen=True), rating=rating)
        self._keep(frozen, self.cast.freeze(self._adapter(member)))

    def payoffs(self, first: Ints, second: Ints, *names: str, step: int) -> Floats:
        """Return the mean gains of the students in `second` slots against the teachers in `first`, [S, T], in stakes.

        `names` say what it is for, so that no two purposes play the same games.
        """
        generator = seeds.generator(self._seed, step, "payoffs", *names)
        return self.table.payoffs(first, second, generator) / self.game.stake

    def found(self, members: Sequence[Member]) -> None:
        """Give each founder a fresh adapter: A drawn by its own seed, B zero."""
        for member in members:
            generator = torch.Generator().manual_seed(founder_seed(self._seed, member.member_id))
            self.cast.present.load(self.slot_of(member), fresh_adapter(self.cast.present.model, self._lora, generator))

    def play(self, matches: Sequence[Match], *, step: int) -> Play:
        """Play and learn; see `Arena`. Frozen members never learn."""
        began = time.perf_counter()
        counts = [self._settings.games_of(match.kind) for match in matches]
        ends = np.cumsum(counts)
        starts, straight = ends - counts, [self._straight(count) for count in counts]
        generator = seeds.generator(self._seed, step, "games")
        deal = Deal(
            first=np.repeat([self.slot_of(match.teacher) for match in matches], counts),
            second=np.repeat([self.slot_of(match.student) for match in matches], counts),
            learns=np.repeat(
                [
                    [self._learns(match, match.teacher) for match in matches],
                    [self._learns(match, match.student) for match in matches],
                ],
                counts,
                axis=1,
            ),
            strays=self._strays(matches, counts, straight, generator),
        )
        gains, choices = self.table.deal(deal, generator)
        played = time.perf_counter()
        metrics = self._learner.update(choices, self._settings.learning_rate_at(step))
        scores = self.game.score(gains)
        results = tuple(
            MatchResult(match=match, observed=float(np.clip(scores[at : at + count].mean(), 0, 1)), n_problems=count)
            for match, count, at in zip(matches, straight, starts.tolist(), strict=True)
        )
        seconds = {"play": played - began, "update": time.perf_counter() - played}
        return Play(results=results, tables={}, metrics=metrics, seconds=seconds)

    def breed(
        self, child: Member, parents: Sequence[Member], operator: str, parameters: Mapping[str, float], *, seed: int
    ) -> str:
        """Make the child and put it into its slot; see `Arena`."""
        adapters = [self._adapter(parent) for parent in parents]
        adapter = apply(operator, adapters, torch.Generator().manual_seed(seed), parameters)
        slot = self.slot_of(child)
        self.cast.present.load(slot, adapter)
        self._learner.forget(slot)
        return adapter_sha256(adapter, self._lora)

    def save_adapters(self, members: Sequence[Member], folder: str) -> Mapping[str, str]:
        """Write the members' present weights; see `Arena`."""
        return {
            member.member_id: save_adapter(
                Path(folder) / member.member_id / str(member.version),
                self._adapter(member),
                self._lora,
                self.base_name,
            )
            for member in members
        }

    def save_state(self, folder: str) -> None:
        """Write the past versions and the optimiser's moments."""
        (Path(folder) / PAST_FILE).write_text(json.dumps([one.row() for one in self.past]), encoding="utf-8")
        for number, one in enumerate(self.past):
            save_adapter(Path(folder) / str(number), self._adapter(one.member), self._lora, self.base_name)
        (Path(folder) / STATE_FILE).write_bytes(save(self._learner.state_dict()))

    def restore(self, members: Sequence[Member], adapters: str, state: str) -> None:
        """Take over saved adapters, past versions and moments; see `Arena`."""
        self._learner.load_state_dict(load((Path(state) / STATE_FILE).read_bytes()))
        for number, row in enumerate(json.loads((Path(state) / PAST_FILE).read_text(encoding="utf-8"))):
            adapter, _ = load_adapter(Path(state) / str(number))
            self._keep(PastMember.of_row(row), self.cast.freeze(adapter))
        for member in members:
            adapter, _ = load_adapter(Path(adapters) / member.member_id / str(member.version))
            self.cast.present.load(self.slot_of(member), adapter)

    def recall(self, members: Sequence[Member], adapters: str) -> None:
        """Frozen members are held since `freeze`; see `Arena`."""

    def close(self) -> None:
        """Nothing is held."""

    def _keep(self, past: PastMember, slot: int) -> None:
        self.past.append(past)
        self._slots[past.member.adapter.member_id] = slot

    def _straight(self, count: int) -> int:
        """Return how many of a match's games nobody begins with random moves: the rest says nothing of the members."""
        return max(1, count - int(count * self._settings.stray))

    def _strays(
        self, matches: Sequence[Match], counts: list[int], straight: list[int], generator: np.random.Generator
    ) -> NDArray[np.bool_] | None:
        """Return in which games each seat begins with random moves, [2, G]: in the last ones of a match, one seat.

        It is the past member's, else that which a coin chooses.
        """
        if not self._settings.stray:
            return None
        astray = np.concatenate([np.arange(count) >= first for count, first in zip(counts, straight, strict=True)])
        past = np.repeat(
            [[match.teacher.frozen for match in matches], [match.student.frozen for match in matches]], counts, axis=1
        )
        heads = generator.random(len(astray)) < 0.5
        seats = np.where(past.any(axis=0), past[1], heads)
        return np.stack([astray & ~seats, astray & seats])

    def _learns(self, match: Match, member: Member) -> bool:
        return not member.frozen and self._settings.games_learnt(match.kind)

    def _adapter(self, member: Member) -> Adapter:
        return self.cast.adapter(self.slot_of(member))
