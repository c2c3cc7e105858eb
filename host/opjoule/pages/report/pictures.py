"""The pictures of one record (SVG): trace, latencies, energy by activity; and the residuals of a calibration."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import numpy as np
import numpy.typing as npt

from opjoule.base.coverage import COVERAGE_FACTOR
from opjoule.base.errors import RecordFault
from opjoule.base.files import write_whole
from opjoule.energy.calibration.calibration_file import CalibrationFile, FilePoint
from opjoule.energy.sensor_calibration import Correction, SensorCalibration
from opjoule.energy.trace.power_trace import Float64Array
from opjoule.pages.drawing.drawing import Scale, limits_about
from opjoule.pages.drawing.page import Element, element
from opjoule.pages.drawing.shown import (
    KINDS,
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
from opjoule.pages.report.timeline import LatencyCounts, Timeline
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


_LATENCY_HEIGHT = 210
LATENCY_LEFT, LATENCY_RIGHT, _LATENCY_TOP, _LATENCY_BOTTOM = 30, 14, 40, 34
_LATENCY_CAPTION = "How long the run's operations took"
UNITS = {-9: "ns", -6: "\N{MICRO SIGN}s", -3: "ms", 0: "s"}
MOST_TICKS = 7


def latency_histogram(latencies: LatencyCounts | None) -> list[Element]:
    """One outline per kind, in bins of equal width on a logarithmic axis; nothing if no operation was logged.

    Both axes are logarithmic, so that the one operation in ten thousand that waits for a compaction is as visible as
    the rest.
    """
    if latencies is None:
        return []
    most = max(int(counts.max()) for counts in latencies.counts.values())
    first_s, last_s = latencies.bounds_s[[0, -1]].tolist()
    x = Scale(first_s, last_s, LATENCY_LEFT, WIDTH - LATENCY_RIGHT, logarithmic=True)
    # The axis begins below one operation, so that a bin with one operation differs from an empty one.
    y = Scale(0.5, max(most * 1.3, 10.0), _LATENCY_HEIGHT - _LATENCY_BOTTOM, _LATENCY_TOP, logarithmic=True)
    outlines = [
        element("path", d=_outline(x, y, latencies.bounds_s, counts), class_=f"line kind-{number % KINDS}")
        for number, counts in enumerate(latencies.counts.values())
    ]
    kinds = ", ".join(f"{int(counts.sum()):,} {name}" for name, counts in latencies.counts.items())
    drawn = drawing(
        *y_axis(y, _counts(y), LATENCY_LEFT, WIDTH - LATENCY_RIGHT, "operations in a bin", _LATENCY_TOP - 14),
        *x_axis(x, _times(x), _LATENCY_TOP, _LATENCY_HEIGHT - _LATENCY_BOTTOM, "latency, on the board's clock"),
        *_marks(x, latencies.marks_s),
        *outlines,
        height=_LATENCY_HEIGHT,
        label=f"{_LATENCY_CAPTION}: {kinds}; logarithmic axes. The table above has the percentiles.",
    )
    return [element("h3", _LATENCY_CAPTION), legend(latencies.counts), drawn]


def _outline(x: Scale, y: Scale, bounds_s: Floats, counts: npt.NDArray[np.int64]) -> str:
    """Steps from the first bin with an operation to the last."""
    held = np.flatnonzero(counts)
    parts = [f"M{x(bounds_s[held[0]]):.1f} {y(0):.1f}"]
    for i in range(held[0], held[-1] + 1):
        parts.append(f"V{y(float(counts[i])):.1f}H{x(bounds_s[i + 1]):.1f}")
    return "".join([*parts, f"V{y(0):.1f}"])


def _counts(y: Scale) -> list[tuple[float, str]]:
    powers = range(math.floor(math.log10(y.high)) + 1)
    return [(10.0**power, f"{10 ** (power % 3)}{('', 'k', 'M', 'G')[power // 3]}") for power in powers]


def _times(x: Scale) -> list[tuple[float, str]]:
    powers = range(math.ceil(math.log10(x.low) - 1e-9), math.floor(math.log10(x.high) + 1e-9) + 1)
    ticks = []
    for power in powers[:: -(-len(powers) // MOST_TICKS) or 1]:
        unit = min(max(power // 3 * 3, -9), 0)
        ticks.append((10.0**power, f"{10 ** (power - unit)} {UNITS[unit]}"))
    return ticks


def _marks(x: Scale, marks_s: Mapping[str, float]) -> list[Element]:
    """Percentiles as dashed lines, with their names on opposite sides."""
    parts = []
    for (name, second), anchor in zip(marks_s.items(), ("end", "start"), strict=False):
        place = x(second)
        parts += [line(place, _LATENCY_TOP - 10, place, _LATENCY_HEIGHT - _LATENCY_BOTTOM, "mark")]
        parts += [text(place + (3 if anchor == "start" else -3), _LATENCY_TOP - 4, name, anchor)]
    return parts


_RESIDUALS_TOP, _RESIDUALS_HEIGHT, _RESIDUALS_GAP = 48, 130, 50
_RESIDUALS_STEPS: Final = 60
_RESIDUALS_STYLE: Final = (
    "text{font:8px system-ui,sans-serif;fill:#4d5862}.title{font-weight:600;fill:#1d2329}"
    ".grid{stroke:#d5dade;stroke-width:.6}"
    ".zero{stroke:#4d5862;stroke-width:.6}.band{fill:#23629f;fill-opacity:.14}.dot{fill:#a83f06}"
    ".whisker{stroke:#a83f06;stroke-width:.8}"
)
"""Style sheet of a drawing in a separate file, on white."""


@dataclass(frozen=True)
class _Panel:
    """One channel: its points and its line; residuals are drawn in thousandths of `unit`."""

    words: str
    unit: str
    points: Sequence[FilePoint]
    correction: Correction
    place: int
    """Index of its gain among the parameters; the offset is two places further."""


def write_residuals(path: Path, file: CalibrationFile) -> Path:
    """Writes the picture beside the calibration's file, with the same name; returns its path."""
    target = path.with_suffix(".svg")
    write_whole(target, ElementTree.tostring(residuals_figure(file), encoding="unicode").encode())
    return target


def residuals_figure(file: CalibrationFile) -> Element:
    """Reference minus corrected reading of every point with its own uncertainty, and the line's as a band (k = 2)."""
    panels = [_Panel("current", "A", file.current, file.calibration.current, 0)]
    if file.calibration.voltage:
        panels.append(_Panel("voltage", "V", file.voltage, file.calibration.voltage, 1))
    height = _RESIDUALS_TOP + len(panels) * (_RESIDUALS_HEIGHT + _RESIDUALS_GAP)
    title = f"Calibration of {file.title}"
    parts = [
        shape
        for number, panel in enumerate(panels)
        for shape in _drawn(panel, file.calibration, _RESIDUALS_TOP + number * (_RESIDUALS_HEIGHT + _RESIDUALS_GAP))
    ]
    words = (
        "points: reference minus corrected reading; band: uncertainty of a corrected value, including "
        "the reference's (k = 2)"
    )
    made = drawing(
        element("title", title),
        element("style", _RESIDUALS_STYLE),
        element("rect", width=WIDTH, height=f"{height:g}", fill="#ffffff"),
        text(8, 14, title, class_="title"),
        text(8, 26, words),
        *parts,
        height=height,
        label=title,
    )
    made.set("xmlns", "http://www.w3.org/2000/svg")
    return made


def _drawn(panel: _Panel, calibration: SensorCalibration, top: int) -> list[Element]:
    readings = np.linspace(panel.correction.least, panel.correction.most, _RESIDUALS_STEPS)
    band = 1e3 * _band(panel, calibration, readings)
    at = panel.correction(readings)
    points_u = [1e3 * COVERAGE_FACTOR * math.hypot(p.reading_u, p.reference_u) for p in panel.points]
    away = [1e3 * p.residual for p in panel.points]
    most = 1.1 * max([float(band.max()), *(abs(a) + u for a, u in zip(away, points_u, strict=True))])
    x = Scale(float(at[0]), float(at[-1]), LEFT + 8, WIDTH - RIGHT - 8)
    y = Scale(-most, most, top + _RESIDUALS_HEIGHT, top)
    corners = [*zip(at, band, strict=True), *zip(at[::-1], -band[::-1], strict=True)]
    outline = " ".join(f"{x(value):.1f},{y(limit):.1f}" for value, limit in corners)
    return [
        element("polygon", points=outline, class_="band"),
        *x_axis(x, numbered(x, 10), top, top + _RESIDUALS_HEIGHT, f"{panel.words}, {panel.unit}"),
        *y_axis(y, numbered(y, 5), LEFT, WIDTH - RIGHT, f"residual, m{panel.unit}", top),
        line(LEFT, y(0.0), WIDTH - RIGHT, y(0.0), "zero"),
        *(
            shape
            for p, a, u in zip(panel.points, away, points_u, strict=True)
            for shape in (
                line(x(p.reference), y(a - u), x(p.reference), y(a + u), "whisker"),
                element("circle", cx=f"{x(p.reference):.1f}", cy=f"{y(a):.1f}", r="2", class_="dot"),
            )
        ),
    ]


def _band(panel: _Panel, calibration: SensorCalibration, readings: Float64Array) -> Float64Array:
    """Expanded uncertainty (k = 2) of corrected readings, same shape."""
    limits = []
    for reading in readings.tolist():
        at = np.array([0.0, reading, 0.0, 1.0, 0.0])
        if panel.place == 0:
            at = calibration.sensitivity(reading, calibration.steady_warmth_a2(reading))
        limits.append(COVERAGE_FACTOR * math.hypot(*(u for _, u in calibration.contributions(at).values())))
    return np.array(limits)
