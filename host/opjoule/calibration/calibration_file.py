"""The file of one calibrated sensor: calibration/SENSOR.toml, readable by hand, read when a meter is opened.

What it contains: calibration/README.md. Its identity is made of sensor, date and a digest of the file, so that a file
that somebody has changed is another calibration.
"""

from __future__ import annotations

import hashlib
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from opjoule.calibration.fitting import GAIN_MAX, GAIN_MIN, Fitted, heating_effect
from opjoule.calibration.reference import Reference
from opjoule.energy.error_bounds import CHIP_PER_K, HEAT, SHUNT_PER_K, SQRT3, Shunt
from opjoule.energy.sensor_calibration import (
    HEATING_PLACE,
    PARAMETERS,
    CommonSource,
    Correction,
    SensorCalibration,
    as_matrix,
)
from opjoule.energy.shunt_heat import Heating
from opjoule.errors import BadInput

SCHEMA: Final = 2
EARLIER_SCHEMA: Final = 1
"""Before a shunt's heating was part of a calibration."""
FILE_BYTES_MAX: Final = 1 << 20
FOLDER: Final = "calibration"
SENSOR_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}(@0x[0-9a-f]{2})?")
WITHIN_K: Final = 5.0
"""How far from the temperature of the calibration a room is taken to be where nobody says."""


@dataclass(frozen=True)
class CalibratedSensor:
    """Which sensor, and how it was set: another range of the same chip has another gain and another zero."""

    sensor_id: str
    model: str
    shunt_ohm: float | None
    current_max_a: float


@dataclass(frozen=True)
class FilePoint:
    """One point as the file shows it: reading, reference, and how far the line is from it."""

    reading: float
    reading_u: float
    reference: float
    reference_u: float
    residual: float
    warmth_a2: float = 0.0
    """Warmth of a current [A^2]: squared readings, followed with the shunt's time constant."""


@dataclass(frozen=True)
class CalibrationFile:
    """Everything that stands in it."""

    sensor: CalibratedSensor
    simulated: bool
    date_utc: datetime
    temperature_c: float | None
    gain_per_k: float
    """Bound of the power's change with temperature, relative [1/K]."""
    reference: str
    stated: str
    """What the reference is said to be uncertain by."""
    calibration: SensorCalibration
    current: tuple[FilePoint, ...]
    voltage: tuple[FilePoint, ...]
    notes: tuple[str, ...] = ()

    def at(self, temperature_c: float | None) -> SensorCalibration:
        """The calibration as it holds at a temperature; where one of the two is not known, within 5 K."""
        if temperature_c is None or self.temperature_c is None:
            away_k = WITHIN_K
        else:
            away_k = abs(temperature_c - self.temperature_c)
        return replace(self.calibration, gain_drift_u=self.gain_per_k * away_k / SQRT3)

    @property
    def title(self) -> str:
        """Sensor, date and reference, in words."""
        simulated = "SIMULATED, " if self.simulated else ""
        return f"{self.sensor.sensor_id}, {simulated}{self.date_utc:%Y-%m-%d}, against {self.reference}"


def new_file(
    fitted: Fitted,
    sensor: CalibratedSensor,
    reference: Reference,
    *,
    simulated: bool,
    date_utc: datetime,
    temperature_c: float | None,
    gain_per_k: float = SHUNT_PER_K + CHIP_PER_K,
) -> CalibrationFile:
    """The file of what was fitted; its identity comes with writing it."""
    voltages = [p for p in fitted.points if p.reference_v is not None]
    current = zip(fitted.points, fitted.current.residuals.tolist(), strict=True)
    voltage = zip(voltages, fitted.voltage.residuals.tolist(), strict=True) if fitted.voltage else ()
    return CalibrationFile(
        sensor=sensor,
        simulated=simulated,
        date_utc=date_utc,
        temperature_c=temperature_c,
        gain_per_k=gain_per_k,
        reference=reference.name,
        stated=reference.stated,
        calibration=fitted.calibration,
        current=tuple(
            FilePoint(*(p.current_a, p.current_u_a, p.reference_a, p.reference_u_a, away), p.warmth_a2 or 0.0)
            for p, away in current
        ),
        voltage=tuple(
            FilePoint(p.voltage_v, p.voltage_u_v, p.reference_v or 0.0, p.reference_u_v, away)
            for p, away in voltage
        ),
        notes=fitted.notes,
    )


def read_calibration(path: Path) -> CalibrationFile:
    """Reads and checks one file.

    Raises: BadInput: it cannot be read, is no TOML, or an entry is missing or of another kind.
    """
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise BadInput(f"{path} is not a calibration: it has {path.stat().st_size} bytes")
        content = path.read_bytes()
        data = tomllib.loads(content.decode("utf-8"))
        if data.get("schema") not in (SCHEMA, EARLIER_SCHEMA):
            raise BadInput(
                f"{path}: schema {data.get('schema')!r}, this program reads {SCHEMA}: update OpJoule, or calibrate anew"
            )
        return _file(data, hashlib.sha256(content).hexdigest()[:12])
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
    except KeyError as error:
        raise BadInput(f"{path}: {error} is missing; host/calibrate.py writes a new one") from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(f"{path} is not a calibration: {error}; host/calibrate.py writes a new one") from None


def _file(data: Mapping[str, Any], digest: str) -> CalibrationFile:
    sensor, points = data["sensor"], data.get("points", {})
    sensor_id = str(sensor["id"])
    if not SENSOR_NAME.fullmatch(sensor_id):
        raise ValueError(f"sensor id {sensor_id!r} is not a valid name")
    date_utc: datetime = data["date_utc"]
    if not isinstance(date_utc, datetime) or date_utc.tzinfo is None:
        raise ValueError(f"date_utc = {date_utc} is not a time with a zone")
    earlier = data["schema"] == EARLIER_SCHEMA
    parameters = PARAMETERS[:HEATING_PLACE] if earlier else PARAMETERS
    if list(data["uncertainty"]["parameters"]) != list(parameters):
        raise ValueError(f"its parameters are not {', '.join(parameters)}")
    covariance = as_matrix(
        [[_finite(each, "covariance") for each in row] for row in data["uncertainty"]["covariance"]]
    )
    # One that none can be is found here, not in a measurement.
    SensorCalibration("", covariance=covariance).contributions(np.zeros(len(PARAMETERS)))
    shunt_ohm, temperature_c = sensor.get("shunt_ohm"), data.get("temperature_c")
    file = CalibrationFile(
        sensor=CalibratedSensor(
            sensor_id,
            str(sensor["model"]),
            None if shunt_ohm is None else _finite(shunt_ohm, "shunt_ohm"),
            _finite(sensor["current_max_a"], "current_max_a"),
        ),
        simulated=bool(data["simulated"]),
        date_utc=date_utc.astimezone(UTC),
        temperature_c=None if temperature_c is None else _finite(temperature_c, "temperature_c"),
        gain_per_k=_finite(data["gain_per_k"], "gain_per_k"),
        reference=str(data["reference"]["name"]),
        stated=str(data["reference"]["stated"]),
        calibration=SensorCalibration(
            identity=f"{sensor_id} {date_utc.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ} {digest}",
            current=_correction(data["current"], "current"),
            voltage=_correction(data["voltage"], "voltage") if "voltage" in data else None,
            covariance=covariance,
            common=(*(_common(each) for each in data.get("common", [])), *_not_fitted(sensor_id, data)),
            heating=_heating(data.get("heating")),
        ),
        current=_points(points.get("current")),
        voltage=_points(points.get("voltage")),
        notes=tuple(str(each) for each in data.get("notes", [])),
    )
    return replace(file, calibration=file.at(None))


def _common(entry: Mapping[str, Any]) -> CommonSource:
    effect = tuple(_finite(each, "effect") for each in entry["effect"])
    if len(effect) not in (HEATING_PLACE, len(PARAMETERS)):
        raise ValueError(f"effect = {list(effect)} has not {len(PARAMETERS)} numbers")
    return CommonSource(str(entry["source"]), effect)


def _not_fitted(sensor_id: str, data: Mapping[str, Any]) -> tuple[CommonSource, ...]:
    """What a shunt's heat may have done to the straight line of an earlier calibration."""
    points, shunt_ohm = _points(data.get("points", {}).get("current")), data["sensor"].get("shunt_ohm")
    if data["schema"] != EARLIER_SCHEMA or shunt_ohm is None or not points:
        return ()
    bound = Shunt(_finite(shunt_ohm, "shunt_ohm")).heating_max_per_a2
    return (CommonSource(f"{sensor_id}: {HEAT}", heating_effect([p.reading for p in points], bound)),)


def _heating(table: Mapping[str, Any] | None) -> Heating:
    if table is None:
        return Heating()
    values = {key: _finite(table[key], f"heating.{key}") for key in ("per_a2", "tau_s", "ln_tau_u")}
    if not 0.01 <= values["tau_s"] <= 1e4 or not 0.0 <= values["ln_tau_u"] <= 5.0:
        raise ValueError(f"[heating] has a time constant of {values['tau_s']:g} s, or none that is known")
    return Heating(**values)


def _correction(table: Mapping[str, Any], name: str) -> Correction:
    values = {key: _finite(table[key], f"{name}.{key}") for key in ("gain", "offset", "least", "most")}
    correction = Correction(**values)
    if not GAIN_MIN < correction.gain < GAIN_MAX or correction.most <= correction.least:
        raise ValueError(f"[{name}] has a gain of {correction.gain:g}, or a range without width")
    return correction


def _points(table: Mapping[str, Any] | None) -> tuple[FilePoint, ...]:
    rows = table["rows"] if table else []
    return tuple(FilePoint(*(_finite(each, "a point") for each in row)) for row in rows)


def _finite(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} = {value!r} is not a number")
    return float(value)
