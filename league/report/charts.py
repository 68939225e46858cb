"""How the report's maps are drawn, as figures for Plotly: lineage, pay-off, archive, operators.

Pure. As `curves`, for what is no curve over the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from league.lineage import FOUNDER
from league.report.curves import PALETTE, Plot, axis_title, rounded, span
from league.report.measures import Numbers
from league.types import Side

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star", "pentagon", "hexagon", "x", "bowtie")
_SIDES = [side.value for side in Side]
_GREY = "#8a8f98"
_LABELLED = 10
"""Most members of a side whose cells of the pay-off map carry their number."""


def lineage(numbers: Numbers, everyone: Sequence[Numbers], *, last_step: int) -> Plot:
    """Draw every life as a bar in its slot, and lines from parents to children; shape and colour tell the operator.

    Args:
        numbers: Columns of `maps.lives`.
        everyone: Of all runs, so that one operator looks the same in all.
        last_step: Longest of the runs.
    """
    lanes = _lanes(everyone)
    place_of = {name: place for place, name in enumerate(numbers["member"])}
    operators = [FOUNDER, *sorted({name for one in everyone for name in one["operator"]} - {FOUNDER})]
    data = [_descent(numbers, lanes, place_of, ancestor, last_step) for ancestor in (False, True)]
    for number, operator in enumerate(operators):
        own = [place for place, name in enumerate(numbers["operator"]) if name == operator]
        data += _born(numbers, lanes, own, operator, number, last_step)
    names = [f"{side} {slot}" for side, slot in lanes]
    layout = {
        "xaxis": {"title": {"text": "step"}, "range": list(span((0, last_step)))},
        "yaxis": {
            "title": {"text": "slot"},
            "tickvals": [-lane for lane in lanes.values()],
            "ticktext": names,
            "range": [-len(lanes) + 0.3, 0.7],
        },
        "height": 140 + 34 * max(6, len(lanes)),
    }
    return {"data": [one for one in data if one["x"]], "layout": layout}


def _lanes(everyone: Sequence[Numbers]) -> dict[tuple[str, int], int]:
    """Return the row of each slot of any of the runs, teachers above."""
    slots = {slot for one in everyone for slot in zip(one["side"], one["slot"], strict=True)}
    return {slot: lane for lane, slot in enumerate(sorted(slots, key=lambda slot: (_SIDES.index(slot[0]), slot[1])))}


def _lane(numbers: Numbers, lanes: dict[tuple[str, int], int], place: int) -> int:
    return -lanes[numbers["side"][place], numbers["slot"][place]]


def _descent(
    numbers: Numbers, lanes: dict[tuple[str, int], int], place_of: dict[str, int], ancestor: bool, last_step: int
) -> dict[str, Any]:
    """Return the lines from parents to children; those that lead to members that are still there are bold."""
    x: list[Any] = []
    y: list[Any] = []
    lean = 0.012 * max(1, last_step)
    for child, parents in enumerate(numbers["parents"]):
        if numbers["ancestor"][child] is not ancestor:
            continue
        for parent in (name for name in parents.split(", ") if name in place_of):
            born = numbers["born"][child]
            x += [born - lean, born, None]
            y += [_lane(numbers, lanes, place_of[parent]), _lane(numbers, lanes, child), None]
    look = {"color": _GREY, "width": 2.2 if ancestor else 0.8}
    name = "descent of those still there" if ancestor else "other descent"
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": look, "name": name, "hoverinfo": "skip"}


def _born(
    numbers: Numbers,
    lanes: dict[tuple[str, int], int],
    own: Sequence[int],
    operator: str,
    number: int,
    last_step: int,
) -> list[dict[str, Any]]:
    """Return the lives that began by one operator: bars, and a mark at each birth."""
    colour = _GREY if operator == FOUNDER else PALETTE[(number - 1) % len(PALETTE)]
    x: list[Any] = []
    y: list[Any] = []
    for place in own:
        end = numbers["retired"][place]
        x += [numbers["born"][place], last_step if end is None else end, None]
        y += [_lane(numbers, lanes, place)] * 2 + [None]
    bars = {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": {"color": colour, "width": 5}, "opacity": 0.55}
    marks = {
        "type": "scatter",
        "mode": "markers",
        "x": [numbers["born"][place] for place in own],
        "y": [_lane(numbers, lanes, place) for place in own],
        "marker": {"color": colour, "size": 10, "symbol": _SYMBOLS[number % len(_SYMBOLS)]},
        "name": operator,
        "customdata": [
            [numbers[name][place] for name in ("member", "parents", "parameters")]
            + ["still there" if numbers["retired"][place] is None else f"until step {numbers['retired'][place]}"]
            for place in own
        ],
        "hovertemplate": f"%{{customdata[0]}}<br>{operator}(%{{customdata[1]}})<br>%{{customdata[2]}}<br>"
        "from step %{x}, %{customdata[3]}<extra></extra>",
    }
    return [bars | {"showlegend": False, "hoverinfo": "skip"}, marks]


def payoff(numbers: Numbers, everyone: Sequence[Numbers]) -> Plot:
    """Draw the solve rate of each pair that met; a pair that did not is empty."""
    del everyone  # The scale is 0 to 1 for all, and members are each run's own.
    teachers, students = (list(dict.fromkeys(numbers[side])) for side in ("teacher", "student"))
    teachers.sort(key=_number)
    students.sort(key=_number)
    cells: dict[tuple[str, str], tuple[float | None, str]] = {}
    for teacher, student, rate, count, step in zip(*(numbers[name] for name in numbers), strict=True):
        met = rate is not None
        cells[student, teacher] = (round(rate, 3), f"{count} problems, step {step}") if met else (None, "")
    rates, details = ([[cells[one, other][part] for other in teachers] for one in students] for part in (0, 1))
    heat = {
        "type": "heatmap",
        "x": teachers,
        "y": students,
        "z": rates,
        "customdata": details,
        "zmin": 0,
        "zmax": 1,
        "colorscale": "Cividis",
        "xgap": 2,
        "ygap": 2,
        "colorbar": {"title": {"text": "solve rate<br>(share)"}, "thickness": 12},
        "hovertemplate": "%{y} on %{x}<br>solve rate %{z}<br>%{customdata}<extra></extra>",
    }
    if max(len(teachers), len(students)) <= _LABELLED:
        heat["texttemplate"] = "%{z:.2f}"
    layout = {
        "xaxis": {"title": {"text": "teacher"}, "type": "category"},
        "yaxis": {"title": {"text": "student"}, "type": "category", "autorange": "reversed"},
        "height": 200 + 34 * max(5, len(students)),
    }
    return {"data": [heat] if rates else [], "layout": layout}


def _number(member: str) -> int:
    return int(member.rpartition("_")[2])


def retention(numbers: Numbers, everyone: Sequence[Numbers]) -> Plot:
    """Draw how many children each operator made, and how many of them are still in the league."""
    names = sorted({name for one in everyone for name in one["operator"]}, reverse=True)
    rows = {name: place for place, name in enumerate(numbers["operator"])}
    data: list[dict[str, Any]] = []
    for column, title, colour in (
        ("still_there", "in the league at the end", PALETTE[2]),
        ("replaced", "replaced", _GREY),
    ):
        data.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": title,
                "y": names,
                "x": [numbers[column][rows[name]] if name in rows else 0 for name in names],
                "customdata": [round(numbers["mean_steps"][rows[name]], 1) if name in rows else 0 for name in names],
                "marker": {"color": colour},
                "hovertemplate": f"%{{y}}<br>%{{x}} {title}<br>mean %{{customdata}} steps lived<extra></extra>",
            }
        )
    most = max((count for one in everyone for count in one["children"]), default=1)
    layout = {
        "barmode": "stack",
        "xaxis": {
            "title": {"text": axis_title("children", "count")},
            "range": [0, 1.05 * most],
            "dtick": max(1, most // 5),
        },
        "yaxis": {"title": {"text": "operator"}, "type": "category"},
        "height": 150 + 30 * max(4, len(names)),
    }
    return {"data": data if names else [], "layout": layout}


def archive(numbers: Numbers, everyone: Sequence[Numbers], *, x: str, y: str, last_step: int) -> Plot:
    """Draw the filled cells over two of the four measures: size tells the programs, colour the step of the first."""
    sizes = [min(22.0, 4 + 1.6 * count**0.5) for count in numbers["problems"]]
    dots = {
        "type": "scatter",
        "mode": "markers",
        "x": rounded(numbers[x]),
        "y": rounded(numbers[y]),
        "customdata": list(zip(numbers["cell"], numbers["problems"], numbers["first_step"], strict=True)),
        "marker": {
            "size": sizes,
            "opacity": 0.75,
            "color": numbers["first_step"],
            "cmin": 0,
            "cmax": max(1, last_step),
            "colorscale": [[0, PALETTE[0]], [1, PALETTE[1]]],
            "colorbar": {"title": {"text": "first<br>filled<br>(step)"}, "thickness": 12},
            "line": {"width": 0.5, "color": _GREY},
        },
        "hovertemplate": "cell %{customdata[0]}<br>%{customdata[1]} programs, first in step %{customdata[2]}"
        f"<br>{AXES[x]} %{{x}}<br>{AXES[y]} %{{y}}<extra></extra>",
    }
    layout = {
        "xaxis": {"title": {"text": AXES[x]}, "range": list(span(value for one in everyone for value in one[x]))},
        "yaxis": {"title": {"text": AXES[y]}, "range": list(span(value for one in everyone for value in one[y]))},
        "showlegend": False,
    }
    return {"data": [dots] if sizes else [], "layout": layout}


AXES = {
    "ast_depth": axis_title("depth of the syntax tree", "levels"),
    "cyclomatic": axis_title("cyclomatic complexity", "paths"),
    "lines": axis_title("lines that are not blank", "count"),
    "variables": axis_title("names that are bound", "count"),
}
"""Titles of the measures of structure."""
