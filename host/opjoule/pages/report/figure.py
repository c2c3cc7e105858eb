"""Static picture (SVG) of the trace, for print and for readers without scripts."""

from typing import Final

import numpy as np

from opjoule.pages.drawing.page import Element, element
from opjoule.pages.drawing.scales import Scale, limits_about
from opjoule.pages.drawing.shown import WIDTH, area, drawing, line, numbered, steps, text, x_axis, y_axis
from opjoule.pages.report.timeline import Timeline
from opjoule.results.answer import Answer
from opjoule.results.packing import Floats
from opjoule.results.tracks import joined, phase_kind

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
