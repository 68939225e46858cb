"""The loop of a league: match, play, rate, evolve every k steps, commit.

Owns the order of things and the population. Knows sides, members, matches and an `Arena`; knows neither programs nor
language models, so that the same engine plays any game of two sides. Everything random is keyed by the root seed and
the step, so the engine holds no generator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from league import lineage, seeds
from league.matchmaking import make_matches
from league.ratings import RatingConstants, rate
from league.selection import Replacement, select
from league.types import Arena, Match, MatchResult, Member, Play, Rating, Row, Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Breeding:
    """What the engine has to know of one operator."""

    arity: int
    """Number of parents, 1 or 2."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """Handed to the arena and kept in the lineage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one league."""

    teachers: int
    """Members of that side, >= 1."""
    students: int
    """Members of that side, >= 1."""
    steps: int
    """Steps after the founding, >= 0."""
    seed: int = 0
    """Root of all randomness, >= 0."""
    ratings: RatingConstants = field(default_factory=RatingConstants)
    """Constants of the ratings; their prior is the rating of founders and children."""
    evolve_every: int | None = None
    """Steps between two evolutions, >= 1; None never evolves."""
    operators: Mapping[str, Breeding] = field(default_factory=dict)
    """Operators by name; at least one where there is evolution."""
    fraction: float = 0.25
    """Share of each side that is replaced, in [0, 1]."""
    caution: float = 1.0
    """Members are compared by mu - caution x sigma, >= 0."""
    min_age: int = 0
    """Steps that a member lives at least, >= 0."""
    crossover_probability: float = 0.5
    """Share of children with two parents, in [0, 1]."""
    save_every: int = 5
    """Steps between two savings of weights and state, >= 1; the last step always saves."""

    def __post_init__(self) -> None:
        """Check the ranges that selection does not check."""
        floors = {"teachers": 1, "students": 1, "steps": 0, "seed": 0, "save_every": 1}
        for name, floor in floors.items():
            if getattr(self, name) < floor:
                raise ValueError(f"`{name}` must be at least {floor}, got {getattr(self, name)!r}")
        if self.evolve_every is not None and (self.evolve_every < 1 or not self.operators):
            raise ValueError("evolution needs `evolve_every` of at least 1 and at least one of `operators`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """A member that was replaced by a child."""

    child: Member
    victim: Member
    operator: str
    parents: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """One committed step, for whoever watches."""

    step: int
    results: tuple[MatchResult, ...]
    births: tuple[Birth, ...]
    metrics: Mapping[str, float]
    seconds: Mapping[str, float]


class Recorder(Protocol):
    """Where a league is kept; `league.storage.RunFolder` is one."""

    def commit(self, step: int, tables: Mapping[str, Sequence[Row]], metrics: Mapping[str, Any]) -> None:
        """Keep one step; it exists once this returns."""
        ...

    def adapters(self) -> AbstractContextManager[Path]:
        """Give the folder for `save_adapters`; what was written is durable at the end."""
        ...

    def state(self, step: int) -> AbstractContextManager[Path]:
        """Give a folder for `save_state`; it replaces the state before at the end."""
        ...


class Watcher(Protocol):
    """Somebody who is told what happened."""

    def committed(self, report: StepReport) -> None:
        """Hear of a step that was committed; step 0 is the founding."""
        ...


def founder_seed(root: int, member_id: str) -> int:
    """Return the seed of a founder's first weights, as the lineage names it and an arena shall use it."""
    return seeds.seed(root, 0, lineage.FOUNDER, member_id)


class League:
    """A league in progress."""

    def __init__(self, rules: Rules, arena: Arena, recorder: Recorder, watcher: Watcher) -> None:
        """Prepare a league; nothing happens before `run`."""
        self.rules = rules
        self.members: list[Member] = []
        self.ratings: dict[str, Rating] = {}
        self._arena = arena
        self._recorder = recorder
        self._watcher = watcher
        self._next_match = 0
        self._used: list[str] = []

    def run(self) -> None:
        """Found the league and play all its steps. An interruption loses at most the step it falls into."""
        self.found()
        for step in range(1, self.rules.steps + 1):
            self.step(step)

    def found(self) -> None:
        """Make the founders and commit them as step 0."""
        rules, prior = self.rules, self.rules.ratings.prior
        self.members = list(lineage.found(rules.teachers, rules.students))
        self._used = [member.member_id for member in self.members]
        self.ratings = dict.fromkeys(self._used, prior)
        self._arena.found(self.members)
        hashes = self._save(0, self.members, state=rules.steps == 0)
        tables = {
            "ratings": [_rating_row(0, name, prior, "birth") for name in self._used],
            "lineage": [
                lineage.founder_row(
                    member,
                    seed=founder_seed(rules.seed, member.member_id),
                    adapter_sha256=hashes[member.member_id],
                )
                for member in self.members
            ],
        }
        self._recorder.commit(0, tables, {"seconds": {}})
        self._watcher.committed(StepReport(step=0, results=(), births=(), metrics={}, seconds={}))

    def step(self, step: int) -> None:
        """Play, rate, evolve if it is time, and commit."""
        matches = make_matches(
            self.side(Side.TEACHER),
            self.side(Side.STUDENT),
            self.ratings,
            step=step,
            first_match_id=self._next_match,
            generator=seeds.generator(self.rules.seed, step, "matchmaking"),
            constants=self.rules.ratings,
        )
        play = self._arena.play(matches, step=step)
        self._next_match += len(matches)
        self._grow_versions(matches)
        tables: dict[str, list[Row]] = {name: list(rows) for name, rows in play.tables.items()}
        tables["ratings"], tables["matches"] = self._rate(play)
        births = self._evolve(step, tables)
        last = step == self.rules.steps
        if last or step % self.rules.save_every == 0:
            self._save(step, self.members, state=True)
        elif births:
            self._save(step, [birth.child for birth in births], state=False)
        self._recorder.commit(step, tables, {**play.metrics, "seconds": dict(play.seconds)})
        self._watcher.committed(
            StepReport(step=step, results=play.results, births=births, metrics=play.metrics, seconds=play.seconds)
        )

    def side(self, side: Side) -> list[Member]:
        """Return the members of one side, by slot."""
        return [member for member in self.members if member.side is side]

    def _grow_versions(self, matches: Sequence[Match]) -> None:
        played = {member.member_id for match in matches for member in (match.teacher, match.student)}
        self.members = [
            replace(member, version=member.version + 1) if member.member_id in played else member
            for member in self.members
        ]

    def _rate(self, play: Play) -> tuple[list[Row], list[Row]]:
        """Apply the results in the order of `match_id`; return rows of ratings and of matches."""
        rating_rows: list[Row] = []
        match_rows: list[Row] = []
        for result in sorted(play.results, key=lambda result: result.match.match_id):
            match = result.match
            teacher, student = match.teacher.member_id, match.student.member_id
            new_teacher, new_student, outcome = rate(
                self.ratings[teacher],
                self.ratings[student],
                match.expected,
                result.observed,
                self.rules.ratings,
            )
            match_rows.append(_match_row(result, outcome))
            if match.kind == "train":
                self.ratings |= {teacher: new_teacher, student: new_student}
                for member_id in (teacher, student):
                    row = _rating_row(match.step, member_id, self.ratings[member_id], "update", match.match_id)
                    rating_rows.append(row)
        return rating_rows, match_rows

    def _evolve(self, step: int, tables: dict[str, list[Row]]) -> tuple[Birth, ...]:
        """Replace the worst by children of the others, if it is time; add what happened to the tables."""
        rules = self.rules
        if rules.evolve_every is None or step % rules.evolve_every:
            return ()
        plan = select(
            self.members,
            self.ratings,
            {name: operator.arity for name, operator in rules.operators.items()},
            generator=seeds.generator(rules.seed, step, "selection"),
            step=step,
            min_age=rules.min_age,
            fraction=rules.fraction,
            c=rules.caution,
            crossover_probability=rules.crossover_probability,
        )
        children = lineage.bear(plan, self._used, step=step)
        tables["lineage"] = [self._breed(child, replacement) for child, replacement in zip(children, plan, strict=True)]
        for child, replacement in zip(children, plan, strict=True):
            tables["ratings"] += self._succeed(child, replacement.victim)
        return tuple(
            Birth(
                child=child,
                victim=replacement.victim,
                operator=replacement.operator,
                parents=tuple(parent.member_id for parent in replacement.parents),
            )
            for child, replacement in zip(children, plan, strict=True)
        )

    def _breed(self, child: Member, replacement: Replacement) -> Row:
        """Have the arena make the child; return its row of the lineage."""
        parameters = self.rules.operators[replacement.operator].parameters
        seed = seeds.seed(self.rules.seed, child.born, "breeding", child.member_id)
        sha256 = self._arena.breed(child, replacement.parents, replacement.operator, parameters, seed=seed)
        return lineage.birth_row(child, replacement, parameters=parameters, seed=seed, adapter_sha256=sha256)

    def _succeed(self, child: Member, victim: Member) -> list[Row]:
        """Put the child in its victim's place; return the rows of ratings that say so."""
        prior = self.rules.ratings.prior
        last = self.ratings.pop(victim.member_id)
        self.ratings[child.member_id] = prior
        self._used.append(child.member_id)
        self.members[self.members.index(victim)] = child
        return [
            _rating_row(child.born, victim.member_id, last, "retire"),
            _rating_row(child.born, child.member_id, prior, "birth"),
        ]

    def _save(self, step: int, members: Sequence[Member], *, state: bool) -> Mapping[str, str]:
        """Save adapters, and the state if asked; return the adapters' sha256 by member."""
        with self._recorder.adapters() as folder:
            hashes = self._arena.save_adapters(members, str(folder))
        if state:
            with self._recorder.state(step) as folder:
                self._arena.save_state(str(folder))
        return hashes


def _rating_row(step: int, member_id: str, rating: Rating, event: str, match_id: int | None = None) -> Row:
    return {
        "step": step,
        "match_id": match_id,
        "member_id": member_id,
        "mu": rating.mu,
        "sigma": rating.sigma,
        "event": event,
    }


def _match_row(result: MatchResult, outcome: str) -> Row:
    match = result.match
    return {
        "match_id": match.match_id,
        "step": match.step,
        "kind": match.kind,
        "teacher_id": match.teacher.member_id,
        "teacher_version": match.teacher.version,
        "student_id": match.student.member_id,
        "student_version": match.student.version,
        "expected": match.expected,
        "observed": result.observed,
        "outcome": outcome,
        "n_problems": result.n_problems,
    }
