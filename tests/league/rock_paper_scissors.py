"""A real small game for the engine: rock, paper, scissors, with mixed strategies that learn and breed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from league import seeds
from league.lineage import founder_seed
from league.rules import Breeding, Rules
from league.types import Match, MatchResult, Member, Play, StepReport

PAYOFF = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
"""Row player's; moves are rock, paper, scissors."""

Strategy = np.ndarray[Any, np.dtype[np.float64]]


class RockPaperScissors:
    """An `Arena`: a member's weights are logits over three moves, learnt by a policy gradient on sampled games."""

    def __init__(self, seed: int, games: int = 32) -> None:
        """Nobody plays yet."""
        self.seed = seed
        self.games = games
        self.logits: dict[str, Strategy] = {}
        self.seen: list[Match] = []
        """Matches that were not among the living, or trained nobody."""

    def found(self, members: Sequence[Member]) -> None:
        """Draw logits."""
        for member in members:
            rng = np.random.default_rng(founder_seed(self.seed, member.member_id))
            self.logits[member.member_id] = rng.normal(size=3)

    def play(self, matches: Sequence[Match], *, step: int) -> Play:
        """Sample games and learn from them."""
        del step
        results = tuple(self._play(match) for match in matches)
        self.seen += [match for match in matches if match.kind != "train"]
        return Play(results=results, tables={}, metrics={"games": float(self.games)}, seconds={"play": 0.0})

    def recall(self, members: Sequence[Member], adapters: str) -> None:
        """Read logits, and keep them beside those of the living."""
        for member in members:
            path = Path(adapters) / member.member_id / str(member.version) / "logits.json"
            self.logits[member.adapter.member_id] = np.array(json.loads(path.read_text()))

    def breed(
        self, child: Member, parents: Sequence[Member], operator: str, parameters: Mapping[str, float], *, seed: int
    ) -> str:
        """Average the parents and shake, whatever the operator is called."""
        del operator
        mean = np.mean([self.logits[parent.member_id] for parent in parents], axis=0)
        noise = np.random.default_rng(seed).normal(size=3) * parameters.get("epsilon", 0.0)
        self.logits[child.member_id] = mean + noise
        return self._sha256(child)

    def save_adapters(self, members: Sequence[Member], folder: str) -> Mapping[str, str]:
        """Write logits as JSON."""
        for member in members:
            path = Path(folder) / member.member_id / str(member.version)
            path.mkdir(parents=True, exist_ok=True)
            (path / "logits.json").write_text(json.dumps(self.logits[member.member_id].tolist()))
        return {member.member_id: self._sha256(member) for member in members}

    def save_state(self, folder: str) -> None:
        """There is none."""
        (Path(folder) / "state.json").write_text("{}")

    def restore(self, members: Sequence[Member], adapters: str, state: str) -> None:
        """Read logits."""
        json.loads((Path(state) / "state.json").read_text())
        for member in members:
            path = Path(adapters) / member.member_id / str(member.version) / "logits.json"
            self.logits[member.member_id] = np.array(json.loads(path.read_text()))

    def close(self) -> None:
        """Nothing is held."""

    def _play(self, match: Match) -> MatchResult:
        rng = seeds.generator(self.seed, match.step, "games", str(match.match_id))
        teacher, student = match.teacher.adapter.member_id, match.student.adapter.member_id
        moves = [rng.choice(3, size=self.games, p=softmax(self.logits[name])) for name in (teacher, student)]
        scores = PAYOFF[moves[1], moves[0]]
        for member, mine, score in ((match.teacher, moves[0], -scores), (match.student, moves[1], scores)):
            if member not in match.learners:
                continue
            name = member.member_id
            chances = softmax(self.logits[name])
            gradient = np.mean(score[:, None] * (np.eye(3)[mine] - chances), axis=0)
            self.logits[name] = self.logits[name] + gradient
        return MatchResult(match=match, observed=float(np.mean(scores > 0)), n_problems=self.games)

    def _sha256(self, member: Member) -> str:
        return hashlib.sha256(self.logits[member.member_id].tobytes()).hexdigest()


class Reports:
    """A watcher that remembers."""

    def __init__(self) -> None:
        """Nothing heard yet."""
        self.all: list[StepReport] = []

    def committed(self, report: StepReport) -> None:
        """Keep the report."""
        self.all.append(report)


OPERATORS = {
    "shake": Breeding(arity=1, parameters={"epsilon": 0.1}),
    "average": Breeding(arity=2),
}


def softmax(logits: Strategy) -> Strategy:
    powers = np.exp(logits - logits.max())
    return powers / powers.sum()


def make_rules(**changes: Any) -> Rules:
    values: dict[str, Any] = {
        "teachers": 3,
        "students": 4,
        "steps": 7,
        "seed": 5,
        "evolve_every": 3,
        "payoff_every": 2,
        "operators": OPERATORS,
    }
    return Rules(**(values | changes))
