"""Static picture (SVG) of a calibration's residuals: the points about their line, and the line's uncertainty."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import numpy as np

from opjoule.base.coverage import COVERAGE_FACTOR
from opjoule.base.files import write_whole
from opjoule.energy.calibration.calibration_file import CalibrationFile, FilePoint
from opjoule.energy.sensor_calibration import Correction, SensorCalibration
from opjoule.energy.trace.power_trace import Float64Array
from opjoule.pages.drawing.page import Element, element
from opjoule.pages.drawing.scales import Scale
from opjoule.pages.drawing.shown import WIDTH, drawing, line, numbered, text, x_axis, y_axis

LEFT, RIGHT, TOP, HEIGHT, GAP = 34, 8, 48, 130, 50
STEPS: Final = 60
STYLE: Final = (
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
    height = TOP + len(panels) * (HEIGHT + GAP)
    title = f"Calibration of {file.title}"
    parts = [
        shape
        for number, panel in enumerate(panels)
        for shape in _drawn(panel, file.calibration, TOP + number * (HEIGHT + GAP))
    ]
    words = (
        "points: reference minus corrected reading; band: uncertainty of a corrected value, including "
        "the reference's (k = 2)"
    )
    made = drawing(
        element("title", title),
        element("style", STYLE),
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
    readings = np.linspace(panel.correction.least, panel.correction.most, STEPS)
    band = 1e3 * _band(panel, calibration, readings)
    at = panel.correction(readings)
    points_u = [1e3 * COVERAGE_FACTOR * math.hypot(p.reading_u, p.reference_u) for p in panel.points]
    away = [1e3 * p.residual for p in panel.points]
    most = 1.1 * max([float(band.max()), *(abs(a) + u for a, u in zip(away, points_u, strict=True))])
    x = Scale(float(at[0]), float(at[-1]), LEFT + 8, WIDTH - RIGHT - 8)
    y = Scale(-most, most, top + HEIGHT, top)
    corners = [*zip(at, band, strict=True), *zip(at[::-1], -band[::-1], strict=True)]
    outline = " ".join(f"{x(value):.1f},{y(limit):.1f}" for value, limit in corners)
    return [
        element("polygon", points=outline, class_="band"),
        *x_axis(x, numbered(x, 10), top, top + HEIGHT, f"{panel.words}, {panel.unit}"),
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
