"""The loop of a league: match, play, rate, evolve every k steps, commit.

Owns the order of things and the population. Knows sides, members, matches and an `Arena`; knows neither programs nor
language models, so that the same engine plays any game of two sides. Everything random is keyed by the root seed and
the step, so the engine holds no generator.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from league import lineage, seeds
from league.hall_of_fame import PastMember, admit, due, past_matches, past_members, past_metrics
from league.matchmaking import cross_table, make_matches, self_play
from league.metric_table import metric_rows, unnamed
from league.payoff import Meeting, payoff_metrics
from league.rules import Rules
from league.selection import Replacement, select
from league.types import (
    Arena,
    Birth,
    Match,
    MatchResult,
    Member,
    Opponents,
    Play,
    Rating,
    Recorder,
    Row,
    Side,
    StepReport,
    Watcher,
)

STANDING_FILE = "league.json"
"""Members, ratings and counters, in the folder of a state."""


class League:
    """A league in progress."""

    def __init__(
        self, rules: Rules, arena: Arena, recorder: Recorder, watcher: Watcher, opponents: Opponents | None = None
    ) -> None:
        """Prepare a league; nothing happens before `run`. None draws past opponents by the rules."""
        self.rules = rules
        self.members: list[Member] = []
        self.ratings: dict[str, Rating] = {}
        self._arena = arena
        self._recorder = recorder
        self._watcher = watcher
        self._opponents = opponents
        self._next_match = 0
        self._last_step = 0
        self._used: list[str] = []
        self._meetings: list[Meeting] = []
        self._hall: list[PastMember] = []

    @property
    def past(self) -> list[str]:
        """Adapters of the past members that may be met, as `MEMBER/VERSION`."""
        return [one.name for one in self._hall]

    def run(self) -> None:
        """Found the league and play all its steps. An interruption loses at most the step it falls into."""
        self.found()
        self.go_on()

    def go_on(self) -> None:
        """Play the steps that are left."""
        for step in range(self._last_step + 1, self.rules.steps + 1):
            self.step(step)

    def restore(self, adapters: Path, state: Path) -> None:
        """Stand where the league stood whose state that is, instead of `found`.

        Args:
            adapters: Folder of the adapters, `MEMBER/VERSION/`.
            state: Folder of the state.

        Raises:
            OSError, ValueError, KeyError, TypeError: Something is missing or cannot be read.
        """
        standing = json.loads((state / STANDING_FILE).read_bytes())
        self.members = [Member(**{**row, "side": Side(row["side"])}) for row in standing["members"]]
        self.ratings = {name: Rating(**values) for name, values in standing["ratings"].items()}
        self._used = standing["used"]
        self._next_match = standing["next_match"]
        self._meetings = [Meeting(**values) for values in standing["meetings"]]
        self._hall = [PastMember.of_row(row) for row in standing["hall"]]
        self._arena.restore(self.members, str(adapters), str(state))
        self._last_step = standing["step"]

    def found(self) -> None:
        """Make the founders and commit them as step 0."""
        rules, prior = self.rules, self.rules.rating.constants.prior
        alone = rules.self_play > 0
        self.members = list(lineage.found_alone() if alone else lineage.found(rules.teachers, rules.students))
        self._used = [member.member_id for member in self.members]
        self.ratings = dict.fromkeys(self._used, prior)
        self._arena.found(self.members)
        hashes = self._save(0, self.members, state=True)
        tables = {
            "ratings": [_rating_row(0, name, prior, "birth") for name in self._used],
            "lineage": [
                lineage.founder_row(
                    member,
                    seed=lineage.founder_seed(rules.seed, member.member_id),
                    adapter_sha256=hashes[member.member_id],
                )
                for member in self.members
            ],
        }
        self._recorder.commit(0, tables, {"seconds": {}})
        self._watcher.committed(StepReport(step=0, results=(), births=(), metrics={}, seconds={}, tables=tables))

    def step(self, step: int) -> None:
        """Play, rate, evolve if it is time, and commit."""
        self._inflate()
        matches = self._match(step)
        play = self._arena.play(matches, step=step)
        self._next_match += len(matches)
        self._grow_versions(matches)
        tables: dict[str, list[Row]] = {name: list(rows) for name, rows in play.tables.items()}
        tables["ratings"], tables["matches"] = self._rate(play)
        results, seconds = play.results, dict(play.seconds)
        if self.rules.cross_eval_every and step % self.rules.cross_eval_every == 0:
            cross = self._arena.play(self._cross_table(step), step=step)
            results += cross.results
            seconds["cross_eval"] = sum(cross.seconds.values())
            for name, rows in {**cross.tables, "matches": self._rate(cross)[1]}.items():
                tables.setdefault(name, []).extend(rows)
        metrics = {**play.metrics, **past_metrics(results), **self._payoffs(step, results)}
        tables["metrics"] = metric_rows(step, unnamed(metrics)) + tables.get("metrics", [])
        births = self._evolve(step, tables)
        last = step == self.rules.steps
        if last or step % self.rules.save_every == 0:
            self._save(step, self.members, state=True)
        elif births:
            self._save(step, [birth.child for birth in births], state=False)
        self._recorder.commit(step, tables, {**metrics, "seconds": seconds})
        self._last_step = step
        self._watcher.committed(
            StepReport(step=step, results=results, births=births, metrics=metrics, seconds=seconds, tables=tables)
        )

    def side(self, side: Side) -> list[Member]:
        """Return the members of one side, by slot."""
        return [member for member in self.members if member.side is side]

    def _match(self, step: int) -> tuple[Match, ...]:
        """Return the step's matches among the living and, with past members in the arena by then, against the past."""
        if self.rules.self_play:
            (agent,) = self.members
            rating = self.ratings[agent.member_id]
            return self_play(agent, self.rules.self_play, rating, step=step, first_match_id=self._next_match)
        matches = make_matches(
            self.side(Side.TEACHER),
            self.side(Side.STUDENT),
            self.ratings,
            step=step,
            first_match_id=self._next_match,
            generator=seeds.generator(self.rules.seed, step, "matchmaking"),
            constants=self.rules.rating.constants,
            scheme=self.rules.matchmaking,
            exploration=self.rules.exploration,
        )
        if self._opponents is not None:
            first = self._next_match + len(matches)
            return matches + self._opponents.matches(self.members, self.ratings, step=step, first_match_id=first)
        frozen = past_matches(
            self.members,
            self._hall,
            self.ratings,
            count=due(step, len(matches), self.rules.past_opponents),
            step=step,
            first_match_id=self._next_match + len(matches),
            generator=seeds.generator(self.rules.seed, step, "past opponents"),
            constants=self.rules.rating.constants,
            draw=self.rules.past_draw,
            exploration=self.rules.exploration,
        )
        if frozen:
            with self._recorder.saved() as folder:
                self._arena.recall(past_members(frozen), str(folder))
        return matches + frozen

    def _cross_table(self, step: int) -> tuple[Match, ...]:
        """Return a match of every living teacher with every living student, as they are after the step's update."""
        return cross_table(
            self.side(Side.TEACHER),
            self.side(Side.STUDENT),
            self.ratings,
            step=step,
            table=step // self.rules.cross_eval_every - 1,
            constants=self.rules.rating.constants,
        )

    def _inflate(self) -> None:
        """Doubt the ratings of all whose weights have changed since their last match."""
        for member in self.members:
            if member.version:
                self.ratings[member.member_id] = self.rules.rating.before_step(self.ratings[member.member_id])

    def _grow_versions(self, matches: Sequence[Match]) -> None:
        played = {one.member_id for match in matches for one in match.learners}
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
            if match.kind != "train":
                match_rows.append(_match_row(result, self.rules.rating.decide(match.expected, result.observed)))
                continue
            teacher, student = match.teacher.member_id, match.student.member_id
            new_teacher, new_student, outcome = self.rules.rating.rate(
                self.ratings[teacher],
                self.ratings[student],
                expected=match.expected,
                observed=result.observed,
                n_problems=result.n_problems,
            )
            match_rows.append(_match_row(result, outcome))
            self.ratings |= {teacher: new_teacher, student: new_student}
            for member_id in (teacher, student):
                row = _rating_row(match.step, member_id, self.ratings[member_id], "update", match.match_id)
                rating_rows.append(row)
        return rating_rows, match_rows

    def _payoffs(self, step: int, results: Sequence[MatchResult]) -> dict[str, float]:
        """Remember each pair's latest match; if it is time, return what these say of the members."""
        every = self.rules.payoff_every
        if not every or self.rules.self_play:
            return {}
        self._meetings += [
            Meeting(
                teacher_id=result.match.teacher.member_id,
                student_id=result.match.student.member_id,
                observed=result.observed,
                n_problems=result.n_problems,
            )
            for result in results
            if result.observed is not None and result.match.kind != "frozen"
        ]
        alive = {member.member_id for member in self.members}
        latest = {(one.teacher_id, one.student_id): one for one in self._meetings}
        self._meetings = [one for one in latest.values() if {one.teacher_id, one.student_id} <= alive]
        if step % every:
            return {}
        sides = ([member.member_id for member in self.side(side)] for side in (Side.TEACHER, Side.STUDENT))
        return payoff_metrics(self._meetings, *sides)

    def _evolve(self, step: int, tables: dict[str, list[Row]]) -> tuple[Birth, ...]:
        """Replace the worst by children of the others, if it is time; add what happened to the tables.

        Victims and parents are saved as they are then: nothing that lived is lost, every child can be made again.
        """
        rules = self.rules
        if not rules.evolves_at(step):
            return ()
        plan = select(
            self.members,
            self.ratings,
            {name: operator.arity for name, operator in rules.operators.items()},
            weights={name: operator.weight for name, operator in rules.operators.items()},
            generator=seeds.generator(rules.seed, step, "selection"),
            step=step,
            min_age=rules.min_age,
            fraction=rules.fraction,
            c=rules.caution,
            crossover_probability=rules.crossover_probability,
            elites=rules.elites,
            parents=rules.parents,
        )
        concerned = {member.member_id for one in plan for member in (one.victim, *one.parents)}
        self._save(step, [member for member in self.members if member.member_id in concerned], state=False)
        children = lineage.bear(plan, self._used, step=step, explore_seed=rules.seed if rules.explore else None)
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
        prior = self.rules.rating.constants.prior
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
        if self.rules.past_opponents:
            rules = self.rules
            self._hall = admit(self._hall, members, self.ratings, size=rules.hall_size, seed=rules.seed)
        if state:
            with self._recorder.state(step, self.past) as folder:
                self._arena.save_state(str(folder))
                (folder / STANDING_FILE).write_text(json.dumps(self._standing(step)), encoding="utf-8")
        return hashes

    def _standing(self, step: int) -> dict[str, Any]:
        """Return what `restore` needs beside the arena's; numbers survive JSON bit for bit."""
        return {
            "step": step,
            "members": [asdict(member) for member in self.members],
            "ratings": {name: asdict(rating) for name, rating in self.ratings.items()},
            "used": self._used,
            "next_match": self._next_match,
            "meetings": [asdict(meeting) for meeting in self._meetings],
            "hall": [one.row() for one in self._hall],
        }


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
