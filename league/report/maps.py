"""The numbers behind the report's maps: who lived when and by which operator, who beats whom, which cells are filled.

Pure. As `measures`, for what is no curve over the steps.
"""

from __future__ import annotations

import pyarrow.compute as pc

from league.lineage import FOUNDER, side_of
from league.report.measures import STRUCTURE, Numbers, columns, own_programs
from league.report.source import RunTables
from league.types import Side


def lives(run: RunTables) -> Numbers:
    """Return every member that ever was: side, slot, step of birth and of retirement (None: still there), origin.

    `ancestor` is true of members that are in the league at the end and of all that they descend from.
    """
    retired = {row["member_id"]: row["step"] for row in run.ratings.to_pylist() if row["event"] == "retire"}
    kin = _kin(run, [name for name in run.births if name not in retired])
    rows = [
        {
            "member": name,
            "side": side_of(name).value,
            "slot": row["slot"],
            "born": row["step"],
            "retired": retired.get(name),
            "operator": row["operator"],
            "parents": ", ".join(row["parents"]),
            "parameters": ", ".join(f"{one['name']}={one['value']:g}" for one in row["parameters"]),
            "ancestor": name in kin,
        }
        for name, row in run.births.items()
    ]
    return columns(rows, ("member", "side", "slot", "born", "retired", "operator", "parents", "parameters", "ancestor"))


def _kin(run: RunTables, living: list[str]) -> set[str]:
    kin: set[str] = set()
    waiting = list(living)
    while waiting:
        name = waiting.pop()
        if name in run.births and name not in kin:
            kin.add(name)
            waiting += run.births[name]["parents"]
    return kin


def retention(run: RunTables) -> Numbers:
    """Return of each operator how many children it made, how many are still there, and how long they lived.

    `mean_steps` counts those that are still there up to the last step, so it is a lower bound on how long they live.
    """
    everyone = lives(run)
    rows = []
    for operator in dict.fromkeys(name for name in everyone["operator"] if name != FOUNDER):
        own = [place for place, name in enumerate(everyone["operator"]) if name == operator]
        ends = [everyone["retired"][place] for place in own]
        lived = [
            (run.last_step if end is None else end) - everyone["born"][place]
            for place, end in zip(own, ends, strict=True)
        ]
        rows.append(
            {
                "operator": operator,
                "children": len(own),
                "still_there": ends.count(None),
                "replaced": len(own) - ends.count(None),
                "mean_steps": sum(lived) / len(lived),
            }
        )
    rows.sort(key=lambda row: (-row["children"], row["operator"]))
    return columns(rows, ("operator", "children", "still_there", "replaced", "mean_steps"))


def payoffs(run: RunTables) -> Numbers:
    """Return the latest meeting of each pair that is in the league at the end: its solve rate, None if they never met.

    Matches without a valid problem and those against frozen members are passed over.
    """
    everyone = lives(run)
    living = [name for name, end in zip(everyone["member"], everyone["retired"], strict=True) if end is None]
    latest = {}
    for row in sorted(run.matches.to_pylist(), key=lambda row: row["match_id"]):
        if row["observed"] is not None and row["kind"] != "frozen":
            latest[row["teacher_id"], row["student_id"]] = row
    rows = [
        {
            "teacher": teacher,
            "student": student,
            "solve_rate": row["observed"],
            "problems": row["n_problems"],
            "step": row["step"],
        }
        for teacher in living
        if side_of(teacher) is Side.TEACHER
        for student in living
        if side_of(student) is Side.STUDENT
        for row in [latest.get((teacher, student), {"observed": None, "n_problems": 0, "step": None})]
    ]
    return columns(rows, ("teacher", "student", "solve_rate", "problems", "step"))


def archive(run: RunTables) -> Numbers:
    """Return the cells that the teachers' own valid programs fill: where they lie, since when, and by how many.

    A cell lies at the mean of its programs, measure by measure.
    """
    own = own_programs(run.problems)
    own = own.filter(pc.is_valid(own["cell_id"]))
    wanted = [("step", "min"), ("step", "count"), *((name, "mean") for name in STRUCTURE)]
    found = own.group_by("cell_id", use_threads=False).aggregate(wanted)
    rows = sorted(found.to_pylist(), key=lambda row: int(row["cell_id"]))
    return {
        "cell": [row["cell_id"] for row in rows],
        **{name: [row[f"{name}_mean"] for row in rows] for name in STRUCTURE},
        "first_step": [row["step_min"] for row in rows],
        "problems": [row["step_count"] for row in rows],
    }
