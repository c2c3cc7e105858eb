"""Writes the file of one calibrated sensor: TOML with a comment where a number needs one, for people to read."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Final

import numpy as np

from opjoule.calibration.calibration_file import SCHEMA, CalibrationFile, FilePoint, read_calibration
from opjoule.energy.sensor_calibration import PARAMETERS, Correction, SensorCalibration
from opjoule.errors import BadInput
from opjoule.files import write_whole
from opjoule.units import COVERAGE_FACTOR

EARLIER: Final = "earlier"
"""Where a calibration goes that a newer one of the same sensor replaces."""
COLUMNS: Final = "reading, its u, reference, its u, reference minus line"
WARMTH: Final = ", warmth of the shunt [A^2]"


def write_calibration(folder: Path, file: CalibrationFile) -> Path:
    """Writes SENSOR.toml; the sensor's former one goes to the folder `earlier`. Its path."""
    path = folder / f"{file.sensor.sensor_id}.toml"
    folder.mkdir(parents=True, exist_ok=True)
    if path.exists():
        try:
            stamp = f"{read_calibration(path).date_utc:%Y%m%dT%H%M%SZ}"
        except BadInput:
            stamp = f"unreadable-{file.date_utc:%Y%m%dT%H%M%SZ}"
        earlier = folder / EARLIER
        earlier.mkdir(exist_ok=True)
        path.replace(earlier / f"{file.sensor.sensor_id}-{stamp}.toml")
    write_whole(path, to_toml(file).encode())
    return path


def to_toml(file: CalibrationFile) -> str:
    """The file's text."""
    calibration = file.calibration
    lines = [
        *_head_lines(file),
        "",
        "[current]  # [A]: value = (offset + gain * reading) / (1 + per_a2 * warmth), of readings from least to most",
        *_correction_lines(calibration, calibration.current, 0),
        "",
        "[heating]  # of the shunt by its own current; warmth is the squared reading, followed with the time constant",
        f"per_a2 = {toml_float(calibration.heating.per_a2)}",
        f"tau_s = {toml_float(calibration.heating.tau_s)}",
        f"ln_tau_u = {toml_float(calibration.heating.ln_tau_u)}  # standard, of its natural logarithm",
    ]
    if calibration.voltage:
        lines += ["", "[voltage]  # [V]", *_correction_lines(calibration, calibration.voltage, 1)]
    lines += [
        "",
        "[uncertainty]  # standard (k = 1)",
        f"parameters = {json.dumps(PARAMETERS)}",
        "covariance = [  # of the fit, without the reference's errors that all points share",
        *(f"  {toml_floats(row)}," for row in calibration.covariance),
        "]",
    ]
    for each in calibration.common:
        lines += ["", "[[common]]  # how the parameters change with one standard uncertainty of this source"]
        lines += [f"source = {toml_string(each.name)}", f"effect = {toml_floats(each.effect)}"]
    lines += [*_point_lines("current", file.current), *_point_lines("voltage", file.voltage)]
    return "\n".join(lines) + "\n"


def _head_lines(file: CalibrationFile) -> list[str]:
    sensor = file.sensor
    return [
        f"# Corrections of sensor {sensor.sensor_id} and their uncertainty: docs/how-to/calibrate.md.",
        "# It is applied whenever a trace of this sensor is read; what was recorded stays as it was.",
        *(["# SIMULATED: for this simulated sensor only."] if file.simulated else []),
        f"schema = {SCHEMA}",
        f"simulated = {str(file.simulated).lower()}",
        f"date_utc = {file.date_utc:%Y-%m-%dT%H:%M:%SZ}",
        *([] if file.temperature_c is None else [f"temperature_c = {toml_float(file.temperature_c)}"]),
        f"gain_per_k = {toml_float(file.gain_per_k)}  # bound of the power's change with temperature",
        f"notes = [{', '.join(toml_string(note) for note in file.notes)}]",
        "",
        "[sensor]",
        f"id = {toml_string(sensor.sensor_id)}",
        f"model = {toml_string(sensor.model)}",
        *([] if sensor.shunt_ohm is None else [f"shunt_ohm = {toml_float(sensor.shunt_ohm)}"]),
        f"current_max_a = {toml_float(sensor.current_max_a)}  # the range that it was set to",
        "",
        "[reference]",
        f"name = {toml_string(file.reference)}",
        f"stated = {toml_string(file.stated)}",
    ]


def _correction_lines(calibration: SensorCalibration, correction: Correction, channel: int) -> list[str]:
    alone = np.eye(len(PARAMETERS))
    found = [calibration.contributions(alone[place]) for place in (channel, channel + 2)]
    gain_u, offset_u = (math.hypot(*(part for _, part in each.values())) for each in found)
    return [
        f"gain = {toml_float(correction.gain)}  # ± {COVERAGE_FACTOR * gain_u:.2g} (k = 2)",
        f"offset = {toml_float(correction.offset)}  # ± {COVERAGE_FACTOR * offset_u:.2g} (k = 2)",
        f"least = {toml_float(correction.least)}",
        f"most = {toml_float(correction.most)}",
    ]


def _point_lines(channel: str, points: Sequence[FilePoint]) -> list[str]:
    if not points:
        return []
    of_current = channel == "current"
    rows = [astuple(each)[: 6 if of_current else 5] for each in points]
    columns = COLUMNS + (WARMTH if of_current else "")
    head = ["", f"[points.{channel}]", f"columns = {toml_string(columns)}", "rows = ["]
    return [*head, *(f"  {toml_floats(row)}," for row in rows), "]"]


def toml_floats(values: Sequence[float]) -> str:
    """An array of TOML."""
    return f"[{', '.join(toml_float(each) for each in values)}]"


def toml_string(words: str) -> str:
    """A basic string of TOML: what JSON escapes it reads alike, DEL needs an escape of its own."""
    return json.dumps(words, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_float(value: float) -> str:
    """A float of TOML, to 10 digits."""
    text = f"{value:.10g}"
    return text if any(letter in text for letter in ".en") else f"{text}.0"
