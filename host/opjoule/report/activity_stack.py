"""Where the joules went, drawn: what each kind and activity drew above idle, in total and over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from opjoule.errors import RecordFault
from opjoule.operations.schemas import ATTRIBUTION_VERSION
from opjoule.operations.tables import read_parquet
from opjoule.record.run_record import RunRecord
from opjoule.report.markup import Element, element
from opjoule.report.rounding import percent
from opjoule.trace.power_trace import Float64Array

MEASURED: Final = "measured"
WIDTH, HEIGHT, BAR, LEFT = 900, 220, 26, 44
COLOURS: Final = (
    "#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#997700", "#bbbbbb", "#004488", "#ee99aa",
)  # fmt: skip
"""Told apart by people with any colour vision. Source: Paul Tol, Colour Schemes, SRON/EPS/TN/09-002."""


def activity_stack(record: RunRecord) -> list[Element]:
    """The stacked view of each repeat; nothing where the record has no attribution."""
    if not record.path("attribution.parquet").exists():
        return []
    try:
        table = read_parquet(record.intact("attribution.parquet"), "attribution", ATTRIBUTION_VERSION)
    except RecordFault as fault:
        return [element("p", str(fault), class_="reason")]
    found = []
    for repeat in sorted(set(table["repeat"].to_pylist())):
        own = table.filter(np.asarray(table["repeat"].to_numpy() == repeat))
        part = np.asarray(own["part"].to_pylist())
        energy_j = own["energy_j"].to_numpy()
        start_s, end_s = (
            own[name].to_numpy()[part == MEASURED] * 1e-9 for name in ("board_ns", "end_board_ns")
        )
        edges_s = np.append(start_s, end_s[-1:]) - start_s[0]
        courses = {str(name): energy_j[part == name] for name in dict.fromkeys(part.tolist())}
        measured_j = courses.pop(MEASURED)
        found.append(_figure(repeat, edges_s, courses, measured_j, simulated=record.simulated))
    return found


def _figure(
    repeat: int,
    edges_s: Float64Array,
    courses: Mapping[str, Float64Array],
    measured_j: Float64Array,
    *,
    simulated: bool,
) -> Element:
    """One repeat: a bar of the whole, and power over time with what was measured as a line."""
    word = "SIMULATED, " if simulated else ""
    caption = f"Power above idle by kind and activity, run and settle ({word}repeat {repeat})"
    drawing = element(
        "svg",
        *_bar(courses),
        *_areas(edges_s, courses, measured_j),
        viewBox=f"0 0 {WIDTH} {BAR + HEIGHT + 40}",
        role="img",
        aria_label=caption,
    )
    return element("figure", element("figcaption", caption), drawing, _legend(courses), class_="stack")


def _bar(courses: Mapping[str, Float64Array]) -> list[Element]:
    totals = {name: max(float(each.sum()), 0.0) for name, each in courses.items()}
    whole, x, made = sum(totals.values()) or 1.0, float(LEFT), []
    for name, colour in zip(courses, _colours(courses), strict=True):
        width = totals[name] / whole * (WIDTH - LEFT)
        title = element("title", f"{name}: {percent(totals[name] / whole)}")
        made.append(
            element("rect", title, x=f"{x:.1f}", y=0, width=f"{width:.1f}", height=BAR - 8, fill=colour)
        )
        x += width
    return made


def _areas(
    edges_s: Float64Array, courses: Mapping[str, Float64Array], measured_j: Float64Array
) -> list[Element]:
    lengths_s = np.maximum(np.diff(edges_s), 1e-12)
    measured_w = measured_j / lengths_s
    stacked_w = np.cumsum([np.maximum(each, 0.0) / lengths_s for each in courses.values()], axis=0)
    top_w = float(max(measured_w.max(), stacked_w.max(initial=0.0), 1e-9))
    x = LEFT + edges_s / edges_s[-1] * (WIDTH - LEFT)

    def y(power_w: Float64Array) -> Float64Array:
        return np.asarray(BAR + HEIGHT * (1 - np.clip(power_w, 0.0, None) / top_w))

    made, below = [], y(np.zeros(measured_w.size))
    for power_w, colour in zip(stacked_w, _colours(courses), strict=True):
        above = y(power_w)
        made.append(
            element("path", d=f"{_steps(x, above, 'M')} {_steps(x[::-1], below[::-1], 'L')} Z", fill=colour)
        )
        below = above
    line = element(
        "path", d=_steps(x, y(measured_w), "M"), fill="none", stroke="currentColor", stroke_width="0.8"
    )
    labels = [(2, BAR + 10, f"{top_w:.3g} W"), (2, BAR + HEIGHT, "0"), (LEFT, BAR + HEIGHT + 16, "0 s")]
    labels.append((WIDTH - 50, BAR + HEIGHT + 16, f"{edges_s[-1]:.3g} s"))
    return [
        *made,
        line,
        *(
            element("text", text, x=at, y=down, font_size=12, fill="currentColor")
            for at, down, text in labels
        ),
    ]


def _steps(x: Float64Array, y: Float64Array, first: str) -> str:
    """A path of steps: each value holds between two edges."""
    corners = np.stack([np.stack([x[:-1], y], axis=1), np.stack([x[1:], y], axis=1)], axis=1).reshape(-1, 2)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners.tolist())
    return f"{first} {points}"


def _legend(courses: Mapping[str, Float64Array]) -> Element:
    items = []
    for name, colour in zip(courses, _colours(courses), strict=True):
        mark = element("span", class_="swatch", style=f"background:{colour}", aria_hidden="true")
        items.append(element("li", mark, f" {name.replace('_', ' ')}"))
    return element("ul", *items, element("li", "line: measured"), class_="legend")


def _colours(courses: Mapping[str, Float64Array]) -> list[str]:
    return [COLOURS[at % len(COLOURS)] for at in range(len(courses))]
