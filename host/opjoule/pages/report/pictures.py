"""Static pictures (SVG) of a record over time: its trace, for print and for readers without scripts, and its energy
above idle by kind of operation and activity.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from opjoule.base.errors import RecordFault
from opjoule.energy.trace.power_trace import Float64Array
from opjoule.pages.drawing.page import Element, element
from opjoule.pages.drawing.scales import Scale, limits_about
from opjoule.pages.drawing.shown import (
    WIDTH,
    area,
    drawing,
    fill_class,
    legend,
    line,
    numbered,
    steps,
    text,
    x_axis,
    y_axis,
)
from opjoule.pages.report.timeline import Timeline
from opjoule.results.answer import Answer
from opjoule.results.long_table import NOT_IDENTIFIABLE, by_kind
from opjoule.results.recorded import table_of
from opjoule.results.rounding import percent
from opjoule.results.tracks import Floats, joined, phase_kind
from opjoule.runs.record.run_record import RunRecord

LEFT, RIGHT = 34, 8
POWER_TOP, POWER_HEIGHT = 44, 90
RATE_TOP, RATE_HEIGHT = 156, 40
HEIGHT: Final = RATE_TOP + RATE_HEIGHT + 32
CELLS: Final = 800
LETTER_WIDTH: Final = 5
LEAST_MARK: Final = 0.8


def trace_figure(answer: Answer, timeline: Timeline) -> Element:
    """Power (lowest to highest in each cell, the mean as a line) and operation rate over the whole record."""
    time = Scale(0.0, timeline.duration_s, LEFT, WIDTH - RIGHT)
    power = joined(timeline.tracks["power"], CELLS)
    lowest, highest = power.extremes("power_w")
    values_w = np.concatenate((lowest, highest))
    values_w = values_w[np.isfinite(values_w)]
    ends = [(float(end), 0.0) for end in (values_w.min(), values_w.max())] if values_w.size else [(0.0, 1.0)]
    watts = Scale(*limits_about(ends, logarithmic=False), POWER_TOP + POWER_HEIGHT, POWER_TOP)
    title = f"{answer.title}: power and operation rate over {timeline.duration_s:.0f} s"
    bottom = RATE_TOP + RATE_HEIGHT
    x = [time(bound_s) for bound_s in power.bounds_s]
    return drawing(
        element("title", title),
        text(2, 12, title, class_="title"),
        *_phases(timeline, time),
        *x_axis(time, numbered(time, 10), POWER_TOP, bottom, "time since the record's first sample, s"),
        *y_axis(watts, numbered(watts, 4), LEFT, WIDTH - RIGHT, "power, W", POWER_TOP - 6),
        element("path", d=area(x, _placed(lowest, watts), _placed(highest, watts)), class_="power-band"),
        element("path", d=steps(x, _placed(power.mean["power_w"], watts)), class_="power"),
        *_lost(timeline, time),
        *_idle_level(answer, watts),
        *_rate(timeline, time),
        height=HEIGHT,
        label=title,
    )


def _placed(values: Floats, scale: Scale) -> list[float]:
    return [scale(value) if np.isfinite(value) else np.nan for value in values]


def _phases(timeline: Timeline, time: Scale) -> list[Element]:
    """Backgrounds in the phases' colours, and the names of phases that are wide enough for them."""
    parts = []
    for phase in timeline.phases:
        left, right = time(phase.start_s), time(phase.end_s)
        ground = {"x": f"{left:.1f}", "y": POWER_TOP, "width": f"{right - left:.1f}"}
        height = RATE_TOP + RATE_HEIGHT - POWER_TOP
        parts.append(element("rect", **ground, height=height, class_=f"phase {phase_kind(phase.name)}"))
        if right - left > LETTER_WIDTH * len(phase.name) + 4:
            parts.append(text(left + 3, POWER_TOP - 4, phase.name))
    return parts


def _lost(timeline: Timeline, time: Scale) -> list[Element]:
    """Lost stretches, each with a mark above; those that are wide enough are shaded."""
    parts = []
    for lost in timeline.lost:
        left, right = time(lost.start_s), time(lost.end_s)
        place = {"x": f"{left:.1f}", "width": f"{max(right - left, LEAST_MARK):.1f}", "y": POWER_TOP}
        if right - left > LEAST_MARK:
            parts.append(element("rect", **place, height=POWER_HEIGHT, class_="gap faint"))
        parts.append(element("rect", **place, height=2, class_="gap"))
    return parts


def _rate(timeline: Timeline, time: Scale) -> list[Element]:
    if "operations" not in timeline.tracks:
        return []
    track = joined(timeline.tracks["operations"], CELLS // 2)
    rate = track.mean["operations_per_s"]
    scale = Scale(0.0, float(np.nanmax(rate)) * 1.05 or 1.0, RATE_TOP + RATE_HEIGHT, RATE_TOP)
    x = [time(bound_s) for bound_s in track.bounds_s]
    outline = element("path", d=steps(x, _placed(rate, scale)), class_="operations")
    by, unit = (1000, "k") if scale.high >= 10_000 else (1, "")
    numbers = [(value, f"{value / by:g}{unit}") for value in scale.ticks(3)]
    return [*y_axis(scale, numbers, LEFT, WIDTH - RIGHT, "operations /s", RATE_TOP), outline]


def _idle_level(answer: Answer, watts: Scale) -> list[Element]:
    """A dashed line at idle power; its label is above the axes, outside the trace."""
    idle = answer.quantity("idle_power_w")
    if idle.value is None or not watts.low <= idle.value <= watts.high:
        return []
    y = watts(idle.value)
    words = text(WIDTH - RIGHT, 26, f"dashed: idle, {idle.value:.2f} W", "end")
    return [line(LEFT, y, WIDTH - RIGHT, y, "mark"), words]


MEASURED: Final = "measured"
BAR, STACK_TOP, STACK_BOTTOM, STACK_HEIGHT = 10, 32, 34, 190


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
    drawn = drawing(*_bar(courses), *_areas(edges_s, courses, measured_j), height=STACK_HEIGHT, label=caption)
    named = [name.replace("_", " ") for name in courses if name != NOT_IDENTIFIABLE]
    rest = NOT_IDENTIFIABLE if NOT_IDENTIFIABLE in courses else ""
    key = legend(named, element("li", "line: measured"), rest=rest)
    return element("figure", element("figcaption", caption), key, drawn)


def _bar(courses: Mapping[str, Float64Array]) -> list[Element]:
    totals = {name: max(float(course.sum()), 0.0) for name, course in courses.items()}
    whole, x, made = sum(totals.values()) or 1.0, float(LEFT), []
    for number, (name, total) in enumerate(totals.items()):
        width = total / whole * (WIDTH - RIGHT - LEFT)
        title = element("title", f"{name}: {percent(total / whole)}")
        place = {"x": f"{x:.1f}", "y": 0, "width": f"{width:.1f}", "height": BAR}
        fill = fill_class(None if name == NOT_IDENTIFIABLE else number)
        made.append(element("rect", title, **place, class_=f"part {fill}"))
        x += width
    return made


def _areas(edges_s: Float64Array, courses: Mapping[str, Float64Array], measured_j: Float64Array) -> list[Element]:
    lengths_s = np.maximum(np.diff(edges_s), 1e-12)
    measured_w = measured_j / lengths_s
    stacked_w = np.cumsum([np.maximum(course, 0.0) / lengths_s for course in courses.values()], axis=0)
    top_w = float(max(measured_w.max(), stacked_w.max(initial=0.0), 1e-9))
    time = Scale(0.0, float(edges_s[-1]), LEFT, WIDTH - RIGHT)
    watts = Scale(0.0, top_w, STACK_HEIGHT - STACK_BOTTOM, STACK_TOP)
    x = [time(edge_s) for edge_s in edges_s]
    below, made = [watts(0.0)] * measured_w.size, []
    for number, (name, power_w) in enumerate(zip(courses, stacked_w, strict=True)):
        above = [watts(value_w) for value_w in power_w]
        fill = fill_class(None if name == NOT_IDENTIFIABLE else number)
        made.append(element("path", d=area(x, below, above), class_=f"part {fill}"))
        below = above
    return [
        *x_axis(time, numbered(time, 8), STACK_TOP, STACK_HEIGHT - STACK_BOTTOM, "time since the run began, s"),
        *y_axis(watts, numbered(watts, 4), LEFT, WIDTH - RIGHT, "above idle, W", STACK_TOP),
        *made,
        element("path", d=steps(x, [watts(value_w) for value_w in measured_w]), class_="measured"),
    ]
