"""Drawing of the energy above idle by kind of operation and activity, in total and over time."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from opjoule.base.errors import RecordFault
from opjoule.energy.trace.power_trace import Float64Array
from opjoule.pages.drawing.page import Element, element
from opjoule.pages.drawing.scales import Scale
from opjoule.pages.drawing.shown import WIDTH, area, drawing, fill_class, legend, numbered, steps, x_axis, y_axis
from opjoule.results.long_table import NOT_IDENTIFIABLE, by_kind
from opjoule.results.recorded import table_of
from opjoule.results.rounding import percent
from opjoule.runs.record.run_record import RunRecord

MEASURED: Final = "measured"
BAR, LEFT, RIGHT, TOP, BOTTOM, HEIGHT = 10, 34, 8, 32, 34, 190


def activity_stack(record: RunRecord, result: Mapping[str, Any]) -> list[Element]:
    """Stacked drawing of each repeat, all with the same parts.

    Empty without an attribution, or if the result identifies no part.
    """
    identified = told_parts(result)
    if not identified or not record.path("attribution.parquet").exists():
        return []
    try:
        table = table_of(record, "attribution")
    except RecordFault as fault:
        return [element("p", str(fault), class_="reason")]
    names = [name for name in dict.fromkeys(table["part"].to_pylist()) if name != MEASURED]
    figures = []
    for repeat in sorted(set(table["repeat"].to_pylist())):
        repeat_table = table.filter(np.asarray(table["repeat"].to_numpy() == repeat))
        part = np.asarray(repeat_table["part"].to_pylist())
        energy_j = repeat_table["energy_j"].to_numpy()
        start_s, end_s = (
            repeat_table[name].to_numpy()[part == MEASURED] * 1e-9 for name in ("board_ns", "end_board_ns")
        )
        edges_s = np.append(start_s, end_s[-1:]) - start_s[0]
        measured_j = energy_j[part == MEASURED]
        nothing = np.zeros_like(measured_j)  # of a part that another repeat has
        courses = {name: energy_j[part == name] if name in part else nothing for name in names}
        others = [course for name, course in courses.items() if name not in identified]
        courses = {name: course for name, course in courses.items() if name in identified}
        courses |= {NOT_IDENTIFIABLE: np.sum(others, axis=0)} if others else {}
        figures.append(_figure(repeat, edges_s, courses, measured_j, simulated=record.simulated))
    return figures


def told_parts(result: Mapping[str, Any]) -> set[str]:
    """Kinds of operation and activities whose energy result.json states."""
    parts = {str(name): entry for name, entry in (result.get("by_activity") or {}).items()}
    for kind, entry in by_kind(result).items():
        parts[str(kind)] = entry.get("energy_per_operation_j")
    return {name for name, of in parts.items() if isinstance(of, Mapping) and of.get("value") is not None}


def _figure(
    repeat: int,
    edges_s: Float64Array,
    courses: Mapping[str, Float64Array],
    measured_j: Float64Array,
    *,
    simulated: bool,
) -> Element:
    """Drawing of one repeat: a bar of the total, and power over time with the measured power as a line."""
    word = "SIMULATED, " if simulated else ""
    caption = f"Power above idle by kind and activity, run and settle ({word}repeat {repeat})"
    drawn = drawing(*_bar(courses), *_areas(edges_s, courses, measured_j), height=HEIGHT, label=caption)
    named = [name.replace("_", " ") for name in courses if name != NOT_IDENTIFIABLE]
    rest = NOT_IDENTIFIABLE if NOT_IDENTIFIABLE in courses else ""
    key = legend(named, element("li", "line: measured"), rest=rest)
    return element("figure", element("figcaption", caption), key, drawn)


def _fill(name: str, number: int) -> str:
    return fill_class(None if name == NOT_IDENTIFIABLE else number)


def _bar(courses: Mapping[str, Float64Array]) -> list[Element]:
    totals = {name: max(float(course.sum()), 0.0) for name, course in courses.items()}
    whole, x, made = sum(totals.values()) or 1.0, float(LEFT), []
    for number, (name, total) in enumerate(totals.items()):
        width = total / whole * (WIDTH - RIGHT - LEFT)
        title = element("title", f"{name}: {percent(total / whole)}")
        place = {"x": f"{x:.1f}", "y": 0, "width": f"{width:.1f}", "height": BAR}
        made.append(element("rect", title, **place, class_=f"part {_fill(name, number)}"))
        x += width
    return made


def _areas(edges_s: Float64Array, courses: Mapping[str, Float64Array], measured_j: Float64Array) -> list[Element]:
    lengths_s = np.maximum(np.diff(edges_s), 1e-12)
    measured_w = measured_j / lengths_s
    stacked_w = np.cumsum([np.maximum(course, 0.0) / lengths_s for course in courses.values()], axis=0)
    top_w = float(max(measured_w.max(), stacked_w.max(initial=0.0), 1e-9))
    time = Scale(0.0, float(edges_s[-1]), LEFT, WIDTH - RIGHT)
    watts = Scale(0.0, top_w, HEIGHT - BOTTOM, TOP)
    x = [time(edge_s) for edge_s in edges_s]
    below, made = [watts(0.0)] * measured_w.size, []
    for number, (name, power_w) in enumerate(zip(courses, stacked_w, strict=True)):
        above = [watts(value_w) for value_w in power_w]
        made.append(
            element(
                "path",
                d=area(x, below, above),
                class_=f"part {_fill(name, number)}",
            )
        )
        below = above
    return [
        *x_axis(time, numbered(time, 8), TOP, HEIGHT - BOTTOM, "time since the run began, s"),
        *y_axis(watts, numbered(watts, 4), LEFT, WIDTH - RIGHT, "above idle, W", TOP),
        *made,
        element("path", d=steps(x, [watts(value_w) for value_w in measured_w]), class_="measured"),
    ]
