"""Which plots a report has, in which order, and what a reader who knows nothing of the method is told of each.

Owns titles, words and the choice of drawing. Owns no formulas (`measures`, `maps`) and no look (`curves`, `charts`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from league.archive import CELLS
from league.report import charts, curves, maps, measures
from league.report.curves import Plot
from league.report.measures import Measure, Numbers
from league.types import Side

Draw = Callable[[Numbers, Sequence[Numbers]], Plot]
"""Draws one run's numbers; the second argument has those of all runs, for the axes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of plot; a report has it once a run."""

    key: str
    """Name in addresses and files: lower case, digits and dashes."""
    title: str
    reading: str
    """How to read it, in a sentence or two."""
    measure: Measure
    draw: Draw
    optional: bool = False
    """Left out of reports of runs that have nothing of it."""
    told: tuple[str, ...] = ()
    """Columns whose first and last values the text for those who see no picture names; none is all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Plots that answer one question."""

    key: str
    title: str
    lead: str
    kinds: tuple[Kind, ...]


def sections(last_step: int) -> tuple[Section, ...]:
    """Return all sections of a report whose longest run has so many steps."""
    return (_race(), _members(), _league(last_step), _archive(last_step), _learning())


def _race() -> Section:
    structure = tuple(
        Kind(
            key=name.replace("_", "-"),
            title=title,
            reading=reading,
            measure=partial(measures.structure, measure=name),
            draw=partial(curves.spread, y=y, unit=unit),
            told=(measures.MEAN,),
        )
        for name, title, reading, y, unit in (
            ("ast_depth", "Depth of the syntax tree", "How deeply the teachers' programs nest.", "depth", "levels"),
            ("cyclomatic", "Cyclomatic complexity", "One plus branches, loops and conditions.", "complexity", "paths"),
            ("lines", "Lines", "Lines of the teachers' programs that are not blank.", "lines", "count"),
            ("variables", "Variables", "Different names that a program binds.", "variables", "count"),
        )
    )
    rates = Kind(
        key="solve-rate",
        title="Solve rate of the problems",
        reading="Mean over the valid problems of a step, each counted once. A climb to 1 means problems that teach "
        "nothing any more; a rate that swings in the middle means that both sides keep up with each other.",
        measure=measures.solve_rates,
        draw=partial(curves.lines, y="solve rate", unit="share", share=True),
        told=("all",),
    )
    coverage = Kind(
        key="coverage",
        title="Coverage",
        reading=f"Share of the {CELLS} cells of program structure that the teachers have filled since the run began. "
        "A curve that stops rising means that nothing new in structure is proposed. It never reaches 1: many cells "
        "hold no possible program.",
        measure=partial(measures.coverage, cells=CELLS),
        draw=partial(curves.lines, y="coverage", unit="share"),
        told=("all",),
    )
    yardstick = Kind(
        key="yardstick",
        title="Against the frozen base",
        reading="Solve rates of some of a step's problems: by the base model, which never learns, and by the students "
        "that met them. A base that falls means problems that are harder by a fixed measure; students above it have "
        "learnt something. A step has few of these problems, so look at the trend.",
        measure=partial(measures.metric, names=("base/solve_rate", "base/student_solve_rate")),
        draw=partial(curves.lines, y="solve rate", unit="share", share=True),
        optional=True,
    )
    return Section(
        key="race",
        title="Is there an arms race?",
        lead="An agent that sets its own problems learns to set easy ones: the solve rate climbs towards 1, programs "
        "get simpler, coverage stands still. That is self-calibration. In an arms race the rate stays between the "
        "extremes, while programs get more complex and coverage goes on rising.",
        kinds=(rates, yardstick, *structure, coverage),
    )


def _members() -> Section:
    each = partial(curves.member_lines, value="smoothed", faint="solve_rate", y="solve rate", unit="share", share=True)
    smooth = "The curve is a trailing mean over a twentieth of the run (3 steps at least), dots are single steps."
    rates = (
        Kind(
            key="teachers-solve-rate",
            title="Solve rate by teacher",
            reading=f"Of the valid problems of each teacher: low is hard. {smooth}",
            measure=measures.teacher_solve_rates,
            draw=each,
            told=("solve_rate",),
        ),
        Kind(
            key="students-solve-rate",
            title="Solve rate by student",
            reading=f"Of the attempts of each student, those that were correct. {smooth}",
            measure=measures.student_solve_rates,
            draw=each,
            told=("solve_rate",),
        ),
    )
    ratings = tuple(
        Kind(
            key=f"{side.value}s-rating",
            title=f"Ratings of the {side.value}s",
            reading="Skill as the matches tell it, in the band of one standard deviation. A child begins anew, so its "
            "band is wide at first. Ratings compare members of one moment, not moments with each other.",
            measure=partial(measures.ratings, side=side),
            draw=partial(curves.member_bands, y="rating", unit="points"),
            told=("mu",),
        )
        for side in (Side.TEACHER, Side.STUDENT)
    )
    return Section(
        key="members",
        title="Members",
        lead="Each side has as many slots as members. When a member is replaced, its child takes the slot: a curve "
        "breaks there. Point at a curve to see the member's name.",
        kinds=(*rates, *ratings),
    )


def _league(last_step: int) -> Section:
    payoff = Kind(
        key="pay-off",
        title="Who beats whom",
        reading="Solve rate in the latest match of each pair that is in the league at the end; an empty cell is a "
        "pair that never met. A row that is bright throughout is a strong student, a dark column a hard teacher.",
        measure=maps.payoffs,
        draw=charts.payoff,
        told=("solve_rate",),
    )
    return Section(
        key="league",
        title="The league",
        lead="Every few steps the lowest rated of each side are replaced by children of others, made by an operator "
        "on their weights.",
        kinds=(
            Kind(
                key="lineage",
                title="Lineage",
                reading="A bar is a life, a mark a birth, a line leads from a parent to its child. Bold lines lead to "
                "members that are in the league at the end.",
                measure=maps.lives,
                draw=partial(charts.lineage, last_step=last_step),
                told=(),
            ),
            Kind(
                key="operators",
                title="What became of the children",
                reading="Children by operator, and how many of them are still in the league. Few children tell "
                "little, and late ones have had less time to be replaced.",
                measure=maps.retention,
                draw=charts.retention,
                told=("still_there",),
            ),
            payoff,
        ),
    )


def _archive(last_step: int) -> Section:
    pairs = (
        ("lines", "ast_depth", "Depth and lines"),
        ("variables", "cyclomatic", "Complexity and variables"),
    )
    return Section(
        key="archive",
        title="The archive",
        lead="The cells of program structure that have been filled, each at the mean of its programs. Large dots "
        "hold many programs; blue ones were filled early, orange ones late.",
        kinds=tuple(
            Kind(
                key=f"archive-{x}-{y}".replace("_", "-"),
                title=title,
                reading="New dots at the upper right late in the run are what growing complexity looks like.",
                measure=maps.archive,
                draw=partial(charts.archive, x=x, y=y, last_step=last_step),
                told=("problems",),
            )
            for x, y, title in pairs
        ),
    )


def _learning() -> Section:
    share = partial(curves.lines, y="share", unit="", share=True)
    return Section(
        key="learning",
        title="Learning and cost",
        lead="What both sides were paid, how sure they are of themselves, and what the run cost.",
        kinds=(
            Kind(
                key="reward",
                title="Reward",
                reading="Mean over rollouts. Students get at most 1, teachers 1 less the solve rate.",
                measure=measures.rewards,
                draw=partial(curves.lines, y="reward", unit="points"),
            ),
            Kind(
                key="entropy",
                title="Entropy",
                reading="Of the next token, mean over the members of a side. A fall to 0 is a member that always says "
                "the same.",
                measure=partial(measures.metric, names=tuple(f"{side.value}/entropy" for side in Side)),
                draw=partial(curves.lines, y="entropy", unit="nats a token"),
            ),
            Kind(
                key="validity",
                title="What counts at all",
                reading="Proposals that are problems, and attempts that can be read.",
                measure=measures.validity,
                draw=share,
            ),
            Kind(
                key="worked",
                title="Answers that are worked out",
                reading="Of the attempts, those that write anything before the answer itself.",
                measure=partial(measures.metric, names=("student/worked",)),
                draw=share,
                optional=True,
            ),
            Kind(
                key="cost",
                title="Time by phase",
                reading="Wall clock of each step, on the machine of the run.",
                measure=measures.seconds,
                draw=partial(curves.stacked, y="time", unit="s"),
            ),
        ),
    )
