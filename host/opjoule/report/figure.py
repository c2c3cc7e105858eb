"""The trace as a still picture (SVG): for print, for readers without scripts, and for documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opjoule.report.answer import Answer
from opjoule.report.markup import Element, element
from opjoule.report.packing import Floats
from opjoule.report.timeline import Timeline, phase_kind
from opjoule.report.tracks import Track, joined
from opjoule.units import Missing

WIDTH, LEFT, RIGHT = 1000, 62, 12
POWER_TOP, POWER_HEIGHT = 46, 204
RATE_TOP, RATE_HEIGHT = 266, 90
HEIGHT = 400
LABEL_WIDTH_PER_LETTER = 7
LEAST_MARK = 1.5
PHASE_FILL = {
    "load": "#dbe9f6",
    "idle": "#f0f0ee",
    "run": "#fde8cd",
    "settle": "#eadcf4",
    "harness": "#dff0e2",
    "other": "#f4f4f4",
}
INK, MUTED, GRID, POWER, RATE, GAP = "#1d2329", "#5b6670", "#d5dade", "#b3470b", "#23629f", "#c2185b"


@dataclass(frozen=True)
class _Scale:
    """A straight line from values to pixels."""

    low: float
    high: float
    at_low: float
    at_high: float

    def __call__(self, value: float) -> float:
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.at_low + share * (self.at_high - self.at_low)


def trace_figure(answer: Answer, timeline: Timeline) -> Element:
    """Power (lowest to highest in each pixel, mean as a line) and operation rate over the whole record."""
    time = _Scale(0.0, timeline.duration_s, LEFT, WIDTH - RIGHT)
    power = joined(timeline.tracks["power"], WIDTH - LEFT - RIGHT)
    column = "power_w"
    lowest, highest = (
        power.lowest.get(column, power.mean[column]),
        power.highest.get(column, power.mean[column]),
    )
    watts = _value_scale(lowest, highest, POWER_TOP, POWER_HEIGHT)
    parts = [
        *_phases(timeline, time),
        *_value_axis(watts, "power, W"),
        *_phase_names(timeline, time),
        _path(_envelope(power, lowest, highest, time, watts), fill=POWER, fill_opacity="0.35"),
        _path(_steps(power, power.mean[column], time, watts), stroke=POWER, fill="none", stroke_width="1.2"),
        *_lost(timeline, time),
        *_idle_level(answer, watts),
        *_rate(timeline, time),
        *_time_axis(timeline, time),
    ]
    title = f"{answer.title}: power and operation rate over {timeline.duration_s:.0f} s"
    heading = _text(LEFT, 18, title, font_weight="600", fill=INK, font_size="14")
    return element(
        "svg",
        element("title", title),
        element("rect", width=WIDTH, height=HEIGHT, fill="#ffffff"),
        heading,
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        font_family="system-ui, sans-serif",
        font_size="12",
    )


def _phases(timeline: Timeline, time: _Scale) -> list[Element]:
    parts = []
    for phase in timeline.phases:
        left, right = time(phase.start_s), time(phase.end_s)
        fill = PHASE_FILL.get(phase_kind(phase.name), PHASE_FILL["other"])
        height = RATE_TOP + RATE_HEIGHT - POWER_TOP
        parts.append(
            element(
                "rect", x=f"{left:.1f}", y=POWER_TOP, width=f"{right - left:.1f}", height=height, fill=fill
            )
        )
    return parts


def _phase_names(timeline: Timeline, time: _Scale) -> list[Element]:
    """Names of the phases that are wide enough for them."""
    parts = []
    for phase in timeline.phases:
        left, right = time(phase.start_s), time(phase.end_s)
        if right - left > LABEL_WIDTH_PER_LETTER * len(phase.name) + 6:
            parts.append(_text(left + 4, POWER_TOP - 4, phase.name))
    return parts


def _lost(timeline: Timeline, time: _Scale) -> list[Element]:
    """Lost stretches: shaded where they are wide enough, each with a mark above of at least 1.5 pixels."""
    parts = []
    for lost in timeline.lost:
        left, right = time(lost.start_s), time(lost.end_s)
        shade = {"x": f"{left:.1f}", "width": f"{right - left:.1f}"}
        if right - left > LEAST_MARK:
            parts.append(
                element("rect", **shade, y=POWER_TOP, height=POWER_HEIGHT, fill=GAP, fill_opacity="0.18")
            )
        mark = {"x": f"{left:.1f}", "width": f"{max(right - left, LEAST_MARK):.1f}"}
        parts.append(element("rect", **mark, y=POWER_TOP, height=4, fill=GAP))
    return parts


def _rate(timeline: Timeline, time: _Scale) -> list[Element]:
    track = timeline.tracks.get("operations")
    if track is None:
        return []
    track = joined(track, (WIDTH - LEFT - RIGHT) // 2)
    rate = track.mean["operations_per_s"]
    scale = _Scale(0.0, float(np.nanmax(rate)) * 1.05 or 1.0, RATE_TOP + RATE_HEIGHT, RATE_TOP)
    line = _path(_steps(track, rate, time, scale), stroke=RATE, fill="none", stroke_width="1.2")
    return [*_value_axis(scale, "operations /s"), line]


def _idle_level(answer: Answer, watts: _Scale) -> list[Element]:
    idle = answer.quantity("idle_power_w")
    if isinstance(idle, Missing) or not watts.low <= idle.value <= watts.high:
        return []
    y = f"{watts(idle.value):.1f}"
    line = element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, stroke=MUTED, stroke_dasharray="6 4")
    return [line, _text(WIDTH - RIGHT - 4, float(y) - 4, f"idle {idle.value:.2f} W", text_anchor="end")]


def _time_axis(timeline: Timeline, time: _Scale) -> list[Element]:
    y = RATE_TOP + RATE_HEIGHT + 16
    parts = [
        _text(time(tick), y, f"{tick:g}", text_anchor="middle")
        for tick in ticks(0.0, timeline.duration_s, 10)
    ]
    return [
        *parts,
        _text(
            (LEFT + WIDTH - RIGHT) / 2,
            y + 18,
            "time since the record's first sample, s",
            text_anchor="middle",
        ),
    ]


def _value_axis(scale: _Scale, label: str) -> list[Element]:
    parts = []
    for tick in ticks(scale.low, scale.high, 5):
        y = scale(tick)
        parts.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=f"{y:.1f}", y2=f"{y:.1f}", stroke=GRID))
        parts.append(
            _text(
                LEFT - 6,
                y + 4,
                f"{tick / 1000:g}k" if scale.high >= 10_000 else f"{tick:g}",
                text_anchor="end",
            )
        )
    middle = (scale.at_low + scale.at_high) / 2
    parts.append(
        _text(0, 0, label, text_anchor="middle", transform=f"translate(14 {middle:.0f}) rotate(-90)")
    )
    return parts


def _value_scale(lowest: Floats, highest: Floats, top: float, height: float) -> _Scale:
    low, high = float(np.nanmin(lowest)), float(np.nanmax(highest))
    margin = 0.06 * ((high - low) or abs(high) or 1.0)
    return _Scale(low - margin, high + margin, top + height, top)


def ticks(low: float, high: float, most: int) -> list[float]:
    """At most `most` + 1 round numbers (1, 2 or 5 times a power of ten apart) between two values."""
    span = (high - low) or 1.0
    steps = [digit * 10.0**power for power in range(-6, 10) for digit in (1, 2, 5)]
    step = next((step for step in steps if span / step <= most), span)
    return [
        round(number * step, 9) for number in range(int(np.ceil(low / step)), int(np.floor(high / step)) + 1)
    ]


def _envelope(track: Track, lowest: Floats, highest: Floats, time: _Scale, scale: _Scale) -> str:
    """One upright rectangle a cell; a cell without a value leaves its place empty."""
    parts = []
    for i in np.flatnonzero(np.isfinite(lowest)):
        left, right = time(track.bounds_s[i]), time(track.bounds_s[i + 1])
        parts.append(
            f"M{left:.1f} {scale(lowest[i]):.1f}V{scale(highest[i]):.1f}H{right:.1f}V{scale(lowest[i]):.1f}Z"
        )
    return "".join(parts)


def _steps(track: Track, values: Floats, time: _Scale, scale: _Scale) -> str:
    """A step line, broken where a cell has no value."""
    parts, drawing = [], False
    for i, value in enumerate(values):
        if not np.isfinite(value):
            drawing = False
            continue
        start = f"V{scale(value):.1f}" if drawing else f"M{time(track.bounds_s[i]):.1f} {scale(value):.1f}"
        parts.append(f"{start}H{time(track.bounds_s[i + 1]):.1f}")
        drawing = True
    return "".join(parts)


def _path(data: str, **style: str) -> Element:
    return element("path", d=data, **style)


def _text(x: float, y: float, words: str, **style: str) -> Element:
    return element("text", words, x=f"{x:.1f}", y=f"{y:.1f}", **{"fill": MUTED, **style})
