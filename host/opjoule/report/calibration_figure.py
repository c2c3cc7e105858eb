"""Residuals of a calibration as a still picture (SVG): the points about their line, and how far it is trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from opjoule.calibrating.calibration_file import CalibrationFile, FilePoint
from opjoule.energy.sensor_calibration import Correction, SensorCalibration
from opjoule.files import write_whole
from opjoule.report.figure import GRID, INK, MUTED, POWER, RATE, ticks
from opjoule.report.markup import Element, element, text_of
from opjoule.trace.power_trace import Float64Array
from opjoule.units import COVERAGE_FACTOR

WIDTH: Final = 1000
LEFT, RIGHT, TOP, HEIGHT, GAP = 78, 12, 64, 170, 76
STEPS: Final = 60


@dataclass(frozen=True)
class _Panel:
    """One channel: its points, its line, and the unit of the residuals in thousandths."""

    words: str
    unit: str
    points: Sequence[FilePoint]
    correction: Correction
    place: int
    """of its gain among the parameters; its offset is two behind"""


def write_residuals(path: Path, file: CalibrationFile) -> Path:
    """Writes the picture beside the calibration's file, with the same name. Its path."""
    target = path.with_suffix(".svg")
    write_whole(target, text_of(residuals_figure(file)).encode())
    return target


def residuals_figure(file: CalibrationFile) -> Element:
    """Reference less corrected reading of every point with its own uncertainty; that of the line as a band, k = 2."""
    panels = [_Panel("current", "A", file.current, file.calibration.current, 0)]
    if file.calibration.voltage:
        panels.append(_Panel("voltage", "V", file.voltage, file.calibration.voltage, 1))
    height = TOP + len(panels) * (HEIGHT + GAP)
    title = f"Calibration of {file.title}"
    parts = [
        each
        for number, panel in enumerate(panels)
        for each in _drawn(panel, file.calibration, TOP + number * (HEIGHT + GAP))
    ]
    words = "points: reference less corrected reading; band: of a corrected value, reference in it (k = 2)"
    return element(
        "svg",
        element("title", title),
        element("rect", width=WIDTH, height=height, fill="#ffffff"),
        _text(LEFT, 20, title, fill=INK, font_weight="600", font_size="14"),
        _text(LEFT, 40, words),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height}",
        role="img",
        font_family="system-ui, sans-serif",
        font_size="12",
    )


def _drawn(panel: _Panel, calibration: SensorCalibration, top: int) -> list[Element]:
    readings = np.linspace(panel.correction.least, panel.correction.most, STEPS)
    band = 1e3 * _band(panel, calibration, readings)
    at = panel.correction(readings)
    own = [1e3 * COVERAGE_FACTOR * math.hypot(p.reading_u, p.reference_u) for p in panel.points]
    away = [1e3 * p.residual for p in panel.points]
    most = 1.1 * max([float(band.max()), *(abs(a) + u for a, u in zip(away, own, strict=True))])
    x = _scale(float(at[0]), float(at[-1]), LEFT + 20, WIDTH - RIGHT - 20)
    y = _scale(-most, most, top + HEIGHT, top)
    corners = [*zip(at, band, strict=True), *zip(at[::-1], -band[::-1], strict=True)]
    outline = " ".join(f"{x(value):.1f},{y(limit):.1f}" for value, limit in corners)
    return [
        element("polygon", points=outline, fill=RATE, fill_opacity="0.14"),
        *_axes(panel, x, y, (float(at[0]), float(at[-1])), most, top),
        *(
            each
            for p, a, u in zip(panel.points, away, own, strict=True)
            for each in _point(x(p.reference), y(a), y(a - u), y(a + u))
        ),
    ]


def _band(panel: _Panel, calibration: SensorCalibration, readings: Float64Array) -> Float64Array:
    """Expanded uncertainty (k = 2) of corrected readings, same shape."""
    found = []
    for reading in readings.tolist():
        at = np.zeros(4)
        at[panel.place], at[panel.place + 2] = reading, 1.0
        found.append(COVERAGE_FACTOR * math.hypot(*(u for _, u in calibration.contributions(at).values())))
    return np.array(found)


def _axes(
    panel: _Panel,
    x: Callable[[float], float],
    y: Callable[[float], float],
    span: tuple[float, float],
    most: float,
    top: int,
) -> list[Element]:
    parts = []
    for tick in ticks(-most, most, 5):
        at = f"{y(tick):.1f}"
        parts.append(
            element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=at, y2=at, stroke=MUTED if tick == 0 else GRID)
        )
        parts.append(_text(LEFT - 6, y(tick) + 4, f"{tick:g}", text_anchor="end"))
    parts += [
        _text(x(tick), top + HEIGHT + 16, f"{tick:g}", text_anchor="middle") for tick in ticks(*span, 10)
    ]
    label = f"{panel.words}, {panel.unit}"
    parts.append(_text((LEFT + WIDTH) / 2, top + HEIGHT + 34, label, text_anchor="middle"))
    turned = f"translate(14 {top + HEIGHT / 2:.0f}) rotate(-90)"
    parts.append(_text(0, 0, f"residual, m{panel.unit}", text_anchor="middle", transform=turned))
    return parts


def _point(x: float, y: float, low: float, high: float) -> list[Element]:
    bar = element("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=f"{low:.1f}", y2=f"{high:.1f}", stroke=POWER)
    return [bar, element("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r="4", fill=POWER)]


def _scale(low: float, high: float, at_low: float, at_high: float) -> Callable[[float], float]:
    return lambda value: at_low + (value - low) / ((high - low) or 1.0) * (at_high - at_low)


def _text(x: float, y: float, words: str, **style: str) -> Element:
    return element("text", words, x=f"{x:.1f}", y=f"{y:.1f}", **{"fill": MUTED, **style})
