"""How curves over the steps are drawn, as figures for Plotly: traces and axes.

Pure. Owns colours and axes; the numbers are those of `measures`. Two runs get the same axes, since every drawing is
told of the numbers of all runs. What depends on light or dark is left to the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from league.report.measures import HIGH, LOW, MEAN, Numbers

Plot = Mapping[str, Any]
"""`data` and `layout` as Plotly takes them."""

PALETTE = ("#4e8fd0", "#e8852b", "#3fa45b", "#d9545f", "#9a78c9", "#b98a2e", "#2ba3a3", "#d17ab5")
"""Readable on white and on black."""
_DASHES = ("solid", "dash", "dot", "dashdot")
SIGNIFICANT = 5
"""Digits of what is drawn."""


def lines(numbers: Numbers, everyone: Sequence[Numbers], *, y: str, unit: str, share: bool = False) -> Plot:
    """Draw each column but `step` as a curve.

    Args:
        numbers: Of this run.
        everyone: Of all runs, for the axes.
        y: Title of the vertical axis.
        unit: Of it.
        share: The axis goes from 0 to 1.
    """
    names = [name for name in numbers if name != "step"]
    data = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": numbers["step"],
            "y": rounded(numbers[name]),
            "line": _line(place, width=3 if name == "all" else 1.5),
            "hovertemplate": f"step %{{x}}<br>{name} %{{y}}<extra></extra>",
        }
        for place, name in enumerate(names)
    ]
    values = [value for one in everyone for name in one if name != "step" for value in one[name]]
    return {"data": data, "layout": _layout(everyone, y, unit, (0.0, 1.0) if share else span(values))}


def member_lines(
    numbers: Numbers, everyone: Sequence[Numbers], *, value: str, faint: str | None, y: str, unit: str, share: bool
) -> Plot:
    """Draw a curve a slot; it breaks where one member is replaced by the next, and its points name the member.

    Args:
        numbers: Columns `step`, `member`, `slot` and those that are drawn; rows by slot and step.
        everyone: Of all runs, for the axes.
        value: Column of the curve.
        faint: Column of single points around it; None draws none.
        y: Title of the vertical axis.
        unit: Of it.
        share: The axis goes from 0 to 1.
    """
    data: list[dict[str, Any]] = []
    for slot in dict.fromkeys(numbers["slot"]):
        rows = _broken(numbers, slot)
        shared: dict[str, Any] = {
            "type": "scatter",
            "x": rows["step"],
            "customdata": rows["member"],
            "legendgroup": str(slot),
        }
        hover = f"%{{customdata}}<br>step %{{x}}<br>{y} %{{y}}<extra></extra>"
        if faint is not None:
            marks = {"color": _colour(slot), "size": 4, "opacity": 0.7}
            data.append(
                shared
                | {"mode": "markers", "y": rounded(rows[faint]), "marker": marks, "showlegend": False}
                | {"hoverinfo": "skip"}
            )
        data.append(
            shared
            | {"mode": "lines", "y": rounded(rows[value]), "line": _line(slot), "name": f"slot {slot}"}
            | {"hovertemplate": hover}
        )
    names = [value] if faint is None else [value, faint]
    values = [number for one in everyone for name in names for number in one[name]]
    return {"data": data, "layout": _layout(everyone, y, unit, (0.0, 1.0) if share else span(values))}


def member_bands(numbers: Numbers, everyone: Sequence[Numbers], *, y: str, unit: str) -> Plot:
    """Draw ratings: a curve a slot in a band of one standard deviation to either side."""
    plot = member_lines(numbers, everyone, value="mu", faint=None, y=y, unit=unit, share=False)
    bands = []
    for slot in dict.fromkeys(numbers["slot"]):
        x: list[Any] = []
        edge: list[Any] = []
        rows = [place for place, own in enumerate(numbers["slot"]) if own == slot]
        for member in dict.fromkeys(numbers["member"][place] for place in rows):
            own = [place for place in rows if numbers["member"][place] == member]
            x += [numbers["step"][place] for place in (*own, *reversed(own))] + [None]
            edge += [numbers["high"][place] for place in own] + [numbers["low"][place] for place in reversed(own)]
            edge.append(None)
        bands.append(
            {"type": "scatter", "mode": "none", "x": x, "y": rounded(edge), "fill": "toself", "hoverinfo": "skip"}
            | {"fillcolor": _faded(_colour(slot)), "showlegend": False, "legendgroup": str(slot)}
        )
    values = [value for one in everyone for name in ("low", "high") for value in one[name]]
    return {"data": [*bands, *plot["data"]], "layout": _layout(everyone, y, unit, span(values))}


def spread(numbers: Numbers, everyone: Sequence[Numbers], *, y: str, unit: str) -> Plot:
    """Draw a mean in the band between the 10th and the 90th percentile."""
    step = list(numbers["step"])
    band = {
        "type": "scatter",
        "mode": "none",
        "x": step + step[::-1],
        "y": rounded([*numbers[HIGH], *reversed(numbers[LOW])]),
        "fill": "toself",
        "fillcolor": _faded(PALETTE[0]),
        "name": "10th to 90th percentile",
        "hoverinfo": "skip",
    }
    mean = {
        "type": "scatter",
        "mode": "lines",
        "x": step,
        "y": rounded(numbers[MEAN]),
        "line": {"color": PALETTE[0], "width": 3},
        "name": "mean",
        "hovertemplate": f"step %{{x}}<br>{y} %{{y}}<extra></extra>",
    }
    values = [value for one in everyone for name in (LOW, HIGH, MEAN) for value in one[name]]
    return {"data": [band, mean] if step else [], "layout": _layout(everyone, y, unit, span(values))}


def stacked(numbers: Numbers, everyone: Sequence[Numbers], *, y: str, unit: str) -> Plot:
    """Draw each column but `step` as a part of a bar a step."""
    names = [name for name in numbers if name != "step"]
    data = [
        {
            "type": "bar",
            "name": name,
            "x": numbers["step"],
            "y": rounded(numbers[name]),
            "marker": {"color": PALETTE[place % len(PALETTE)], "line": {"width": 0}},
            "hovertemplate": f"step %{{x}}<br>{name} %{{y}} {unit}<extra></extra>",
        }
        for place, name in enumerate(names)
    ]
    tops = [
        sum(one[name][place] or 0.0 for name in one if name != "step")
        for one in everyone
        for place in range(len(one["step"]))
    ]
    layout = _layout(everyone, y, unit, (0.0, 1.05 * max(tops, default=1.0)))
    return {"data": data, "layout": layout | {"barmode": "stack", "bargap": 0}}


def rounded(values: Iterable[float | None]) -> list[float | None]:
    """Return numbers with as many digits as can be seen."""
    return [None if value is None else float(f"{value:.{SIGNIFICANT}g}") for value in values]


def span(values: Iterable[float | None]) -> tuple[float, float]:
    """Return an axis that holds all values with some air; 0 to 1 where there are none."""
    there = [value for value in values if value is not None]
    if not there:
        return 0.0, 1.0
    low, high = min(there), max(there)
    air = 0.05 * (high - low) or 0.5
    return low - air, high + air


def axis_title(title: str, unit: str) -> str:
    """Return the title of an axis with its unit."""
    return f"{title} ({unit})" if unit else title


def _layout(everyone: Sequence[Numbers], y: str, unit: str, range_: tuple[float, float]) -> dict[str, Any]:
    steps = [step for one in everyone for step in one["step"]]
    return {
        "xaxis": {"title": {"text": axis_title("step", "")}, "range": list(span(steps))},
        "yaxis": {"title": {"text": axis_title(y, unit)}, "range": list(range_)},
    }


def _broken(numbers: Numbers, slot: int) -> dict[str, list[Any]]:
    """Return the rows of a slot, with an empty one between two members."""
    rows: dict[str, list[Any]] = {name: [] for name in numbers}
    before = None
    for place, own in enumerate(numbers["slot"]):
        if own != slot:
            continue
        if before not in (None, numbers["member"][place]):
            for name in rows:
                rows[name].append(None)
        before = numbers["member"][place]
        for name in rows:
            rows[name].append(numbers[name][place])
    return rows


def _line(place: int, width: float = 2) -> dict[str, Any]:
    """Return how the curve of that number is drawn: by colour and, past the palette, by dashes too."""
    return {"color": _colour(place), "width": width, "dash": _DASHES[place // len(PALETTE) % len(_DASHES)]}


def _colour(place: int) -> str:
    return PALETTE[place % len(PALETTE)]


def _faded(colour: str) -> str:
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.15)"
