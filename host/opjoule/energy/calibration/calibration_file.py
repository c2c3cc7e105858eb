"""The file of one calibrated sensor, calibration/SENSOR.toml: readable text, which is read when a meter is opened.

Its contents: calibration/README.md. Its identity consists of sensor, date and a digest of the file, so that an edited
file counts as another calibration. It is found by its sensor, and used only if it fits the sensor's settings.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import msgspec
import numpy as np
from msgspec import Meta, Struct

from opjoule.base.coverage import COVERAGE_FACTOR
from opjoule.base.errors import BadInput
from opjoule.base.files import file_sha256, write_whole
from opjoule.base.notices import Notice, NoticeKind
from opjoule.base.settings import as_struct
from opjoule.base.toml_file import read_toml, toml_float, toml_floats, toml_string
from opjoule.energy.calibration.fitting import GAIN_MAX, GAIN_MIN, CalibrationFault, Fitted
from opjoule.energy.calibration.line_fit import LineFit, LinePoint
from opjoule.energy.calibration.reference import Reference
from opjoule.energy.error_bounds import CHIP_PER_K, SHUNT_PER_K, SQRT3, ErrorBounds
from opjoule.energy.sensor_calibration import (
    HEATING_PLACE,
    PARAMETERS,
    CommonSource,
    Correction,
    SensorCalibration,
)
from opjoule.energy.shunt_heat import Heating

SCHEMA: Final = 2
FILE_BYTES_MAX: Final = 1 << 20
SENSOR_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}(@0x[0-9a-f]{2})?")
EARLIER: Final = "earlier"
"""Folder of calibrations that were replaced by a newer one of the same sensor."""
COLUMNS: Final = "reading, its u, reference, its u, reference minus line"
WARMTH: Final = ", warmth of the shunt [A^2]"
WITHIN_K: Final = 5.0
"""Assumed difference between room temperature and that of the calibration, if one is not stated [K]."""
_Number = Annotated[float, Meta(ge=-1e300, le=1e300, description="a number")]


@dataclass(frozen=True)
class CalibratedSensor:
    """A sensor and its settings; in another range the same chip has another gain and another zero."""

    id: Annotated[str, Meta(pattern=f"^{SENSOR_NAME.pattern}$", description="the name of a sensor")]
    model: str
    current_max_a: _Number
    shunt_ohm: _Number | None = None


@dataclass(frozen=True)
class FilePoint:
    """One point of the file: reading, reference, and its residual."""

    reading: float
    reading_u: float
    reference: float
    reference_u: float
    residual: float
    warmth_a2: float = 0.0
    """Warmth of a current [A^2]: squared readings, followed with the shunt's time constant."""


@dataclass(frozen=True)
class CalibrationFile:
    """Contents of a calibration file."""

    sensor: CalibratedSensor
    simulated: bool
    date_utc: datetime
    temperature_c: float | None
    gain_per_k: float
    """Bound of the power's change with temperature, relative [1/K]."""
    reference: str
    stated: str
    """Stated uncertainty of the reference, in words."""
    calibration: SensorCalibration
    current: tuple[FilePoint, ...]
    voltage: tuple[FilePoint, ...]
    notes: tuple[str, ...] = ()

    def at(self, temperature_c: float | None) -> SensorCalibration:
        """The calibration at a temperature; a difference of 5 K is assumed if either temperature is unknown."""
        if temperature_c is None or self.temperature_c is None:
            away_k = WITHIN_K
        else:
            away_k = abs(temperature_c - self.temperature_c)
        return replace(self.calibration, gain_drift_u=self.gain_per_k * away_k / SQRT3)

    @property
    def title(self) -> str:
        """Sensor, date and reference, in words."""
        simulated = "SIMULATED, " if self.simulated else ""
        return f"{self.sensor.id}, {simulated}{self.date_utc:%Y-%m-%d}, against {self.reference}"


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
    """The file of a fitted calibration; it gets its identity when it is written."""
    return CalibrationFile(
        sensor=sensor,
        simulated=simulated,
        date_utc=date_utc,
        temperature_c=temperature_c,
        gain_per_k=gain_per_k,
        reference=reference.name,
        stated=reference.stated,
        calibration=fitted.calibration,
        current=_file_points([point.current for point in fitted.points], fitted.current),
        voltage=_file_points([point.voltage for point in fitted.points if point.voltage], fitted.voltage),
        notes=fitted.notes,
    )


def _file_points(points: Sequence[LinePoint], fit: LineFit | None) -> tuple[FilePoint, ...]:
    return tuple(
        FilePoint(p.reading, p.reading_u, p.reference, p.reference_u, residual, p.warmth_a2)
        for p, residual in zip(points, fit.residuals.tolist() if fit else (), strict=True)
    )


_ANEW: Final = "host/calibrate.py writes a new one"
_Numbers = tuple[_Number, ...]


class _Reference(Struct):
    name: str
    stated: str


class _Line(Struct):
    gain: Annotated[float, Meta(gt=GAIN_MIN, lt=GAIN_MAX, description=f"between {GAIN_MIN} and {GAIN_MAX}")]
    offset: _Number
    least: _Number
    most: _Number

    def __post_init__(self) -> None:
        if self.most <= self.least:
            raise ValueError(f"most must be above least, which is {self.least:g}")


class _Heating(Struct):
    per_a2: _Number
    tau_s: Annotated[float, Meta(ge=0.01, le=1e4, description="a number from 0.01 to 10000")]
    ln_tau_u: Annotated[float, Meta(ge=0.0, le=5.0, description="a number from 0 to 5")]


class _Uncertainty(Struct):
    parameters: tuple[str, ...]
    covariance: tuple[_Numbers, ...]


class _Common(Struct):
    source: str
    effect: Annotated[_Numbers, Meta(min_length=HEATING_PLACE, max_length=len(PARAMETERS))]


class _Points(Struct, frozen=True):
    columns: str
    rows: tuple[Annotated[_Numbers, Meta(min_length=5, max_length=6)], ...]


class _PointTables(Struct, frozen=True):
    current: _Points = _Points("", ())
    voltage: _Points = _Points("", ())


class _File(Struct, kw_only=True):
    schema: int
    simulated: bool
    date_utc: Annotated[datetime, Meta(tz=True, description="a time with a zone")]
    temperature_c: _Number | None = None
    gain_per_k: _Number
    notes: tuple[str, ...] = ()
    sensor: CalibratedSensor
    reference: _Reference
    current: _Line
    voltage: _Line | None = None
    heating: _Heating | None = None
    uncertainty: _Uncertainty
    common: tuple[_Common, ...] = ()
    points: _PointTables = _PointTables()


def read_calibration(path: Path) -> CalibrationFile:
    """Reads and checks one file. Raises: BadInput: not readable, not TOML, or an entry is missing or invalid."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise BadInput(f"{path} is not a calibration: it has {path.stat().st_size} bytes")
        tables = read_toml(path, _ANEW)
        digest = file_sha256(path)[:12]
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
    if tables.get("schema") != SCHEMA:
        raise BadInput(
            f"{path}: schema {tables.get('schema')!r}, this program reads {SCHEMA}: update OpJoule, or calibrate again"
        )
    try:
        return _calibration(as_struct(tables, _File, f"{path}:"), digest)
    except BadInput as error:
        raise BadInput(f"{error}; {_ANEW}") from None
    except ValueError as error:
        raise BadInput(f"{path}: {error}; {_ANEW}") from None


def _calibration(entry: _File, digest: str) -> CalibrationFile:
    """The calibration in a file's tables. Raises: ValueError: the tables contradict each other."""
    sensor, date_utc = entry.sensor, entry.date_utc.astimezone(UTC)
    if entry.uncertainty.parameters != PARAMETERS:
        raise ValueError(f"uncertainty.parameters must be {', '.join(PARAMETERS)}")
    common = tuple(CommonSource(source.source, source.effect) for source in entry.common)
    calibration = SensorCalibration(
        identity=f"{sensor.id} {date_utc:%Y-%m-%dT%H:%M:%SZ} {digest}",
        current=Correction(*msgspec.structs.astuple(entry.current)),
        voltage=Correction(*msgspec.structs.astuple(entry.voltage)) if entry.voltage else None,
        covariance=entry.uncertainty.covariance,
        common=common,
        heating=Heating(*msgspec.structs.astuple(entry.heating)) if entry.heating else Heating(),
    )
    try:
        calibration.contributions(np.zeros(len(PARAMETERS)))
    except np.linalg.LinAlgError:
        raise ValueError("uncertainty.covariance must be positive definite") from None
    file = CalibrationFile(
        sensor=sensor,
        simulated=entry.simulated,
        date_utc=date_utc,
        temperature_c=entry.temperature_c,
        gain_per_k=entry.gain_per_k,
        reference=entry.reference.name,
        stated=entry.reference.stated,
        calibration=calibration,
        current=tuple(FilePoint(*row) for row in entry.points.current.rows),
        voltage=tuple(FilePoint(*row) for row in entry.points.voltage.rows),
        notes=entry.notes,
    )
    return replace(file, calibration=file.at(None))


def write_calibration(folder: Path, file: CalibrationFile) -> Path:
    """Writes SENSOR.toml and moves the sensor's former file to the folder `earlier`; returns the new file's path."""
    path = folder / f"{file.sensor.id}.toml"
    folder.mkdir(parents=True, exist_ok=True)
    if path.exists():
        try:
            stamp = f"{read_calibration(path).date_utc:%Y%m%dT%H%M%SZ}"
        except BadInput:
            stamp = f"unreadable-{file.date_utc:%Y%m%dT%H%M%SZ}"
        earlier = folder / EARLIER
        earlier.mkdir(exist_ok=True)
        path.replace(earlier / f"{file.sensor.id}-{stamp}.toml")
    write_whole(path, to_toml(file).encode())
    return path


def to_toml(file: CalibrationFile) -> str:
    """Text of the file."""
    calibration = file.calibration
    lines = [
        *_head_lines(file),
        "",
        "[current]  # [A]: value = (offset + gain * reading) / (1 + per_a2 * warmth), for readings from least to most",
        *_correction_lines(calibration, calibration.current, 0),
        "",
        "[heating]  # of the shunt by its own current; warmth: squared reading, filtered with the time constant",
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
    for source in calibration.common:
        lines += ["", "[[common]]  # how the parameters change with one standard uncertainty of this source"]
        lines += [f"source = {toml_string(source.name)}", f"effect = {toml_floats(source.effect)}"]
    lines += [*_point_lines("current", file.current), *_point_lines("voltage", file.voltage)]
    return "\n".join(lines) + "\n"


def _head_lines(file: CalibrationFile) -> list[str]:
    sensor = file.sensor
    return [
        f"# Corrections of sensor {sensor.id} and their uncertainty: docs/how-to/calibrate.md.",
        "# It is applied whenever a trace of this sensor is read; the recorded data are not changed.",
        *(["# SIMULATED: for this simulated sensor only."] if file.simulated else []),
        f"schema = {SCHEMA}",
        f"simulated = {str(file.simulated).lower()}",
        f"date_utc = {file.date_utc:%Y-%m-%dT%H:%M:%SZ}",
        *([] if file.temperature_c is None else [f"temperature_c = {toml_float(file.temperature_c)}"]),
        f"gain_per_k = {toml_float(file.gain_per_k)}  # bound of the power's change with temperature",
        f"notes = [{', '.join(toml_string(note) for note in file.notes)}]",
        "",
        "[sensor]",
        f"id = {toml_string(sensor.id)}",
        f"model = {toml_string(sensor.model)}",
        *([] if sensor.shunt_ohm is None else [f"shunt_ohm = {toml_float(sensor.shunt_ohm)}"]),
        f"current_max_a = {toml_float(sensor.current_max_a)}  # its range during the calibration",
        "",
        "[reference]",
        f"name = {toml_string(file.reference)}",
        f"stated = {toml_string(file.stated)}",
    ]


def _correction_lines(calibration: SensorCalibration, correction: Correction, channel: int) -> list[str]:
    alone = np.eye(len(PARAMETERS))
    by_parameter = [calibration.contributions(alone[place]) for place in (channel, channel + 2)]
    gain_u, offset_u = (math.hypot(*(part for _, part in sources.values())) for sources in by_parameter)
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
    rows = [astuple(point)[: 6 if of_current else 5] for point in points]
    columns = COLUMNS + (WARMTH if of_current else "")
    head = ["", f"[points.{channel}]", f"columns = {toml_string(columns)}", "rows = ["]
    return [*head, *(f"  {toml_floats(row)}," for row in rows), "]"]


OLD_DAYS: Final = 365
"""Age above which a calibration gives a warning: the usual interval of makers of measuring instruments."""
SETTING_TOLERANCE: Final = 1e-6
ANEW: Final = "host/calibrate.py makes a new one (docs/how-to/calibrate.md)"


@dataclass(frozen=True)
class FoundCalibration:
    """A sensor's calibration, its file, and what limits its use."""

    path: Path
    file: CalibrationFile
    notices: tuple[Notice, ...]
    """Notices of its age or of a different temperature."""

    def of(self, bounds: ErrorBounds, temperature_c: float | None) -> ErrorBounds:
        """The sensor's error bounds, including the calibration."""
        return replace(bounds, calibration=self.file.at(temperature_c))


def find_calibration(
    folder: Path,
    bounds: ErrorBounds,
    *,
    simulated: bool,
    temperature_c: float | None = None,
    now_utc: datetime | None = None,
) -> FoundCalibration | None:
    """The calibration in the file that has the sensor's name; None if there is none, or the sensor has no name.

    Raises: BadInput: the file cannot be read. CalibrationFault: it is for another sensor, or for other settings of it.
    """
    path = folder / f"{bounds.sensor_id}.toml"
    if not bounds.sensor_id or not path.exists():
        return None
    file = read_calibration(path)
    check_fits(path, file, bounds, simulated=simulated)
    return FoundCalibration(path, file, tuple(_notices(path, file, temperature_c, now_utc)))


def check_fits(path: Path, file: CalibrationFile, bounds: ErrorBounds, *, simulated: bool) -> None:
    """Raises CalibrationFault for a calibration that is not valid for this sensor and its present settings."""
    sensor = file.sensor
    if sensor.id != bounds.sensor_id:
        _refuse(path, f"is for sensor {sensor.id}, and this is {bounds.sensor_id}")
    if file.simulated != simulated:
        kinds = {True: "a simulated", False: "a real"}
        _refuse(path, f"is for {kinds[file.simulated]} sensor, and this is {kinds[simulated]} one")
    if sensor.model != bounds.model:
        _refuse(path, f"is for a chip {sensor.model}, and the chip with this name is {bounds.model}")
    shunt_ohm = bounds.shunt.ohm if bounds.shunt else None
    if not _same(sensor.shunt_ohm, shunt_ohm):
        made, now = _words(sensor.shunt_ohm), _words(shunt_ohm)
        _refuse(path, f"was made with shunt={made}, and the meter is set to {now}")
    if not _same(sensor.current_max_a, bounds.current_max_a):
        made, now = f"{sensor.current_max_a:g} A", f"{bounds.current_max_a:g} A"
        _refuse(path, f"was made in the range of {made}, and the sensor is set to the range of {now}")


def _refuse(path: Path, why: str) -> None:
    raise CalibrationFault(f"{path} {why}: it cannot be used; {ANEW}, or remove this file")


def _notices(
    path: Path, file: CalibrationFile, temperature_c: float | None, now_utc: datetime | None
) -> Iterator[Notice]:
    age_days = ((now_utc or datetime.now(UTC)) - file.date_utc).total_seconds() / 86400
    if age_days > OLD_DAYS:
        check = "'host/calibrate.py check' shows whether the sensor has drifted"
        yield Notice(NoticeKind.CALIBRATION, f"{path} is {age_days:.0f} days old", check)
    if age_days < -1:
        line = f"{path} is dated {file.date_utc:%Y-%m-%d}, in the future"
        yield Notice(NoticeKind.CALIBRATION, line, "check this computer's clock")
    if temperature_c is not None and file.temperature_c is not None:
        away_k = temperature_c - file.temperature_c
        if abs(away_k) > WITHIN_K:
            line = (
                f"{path} was made at {file.temperature_c:g} °C, and it is {temperature_c:g} °C now: the power may "
                f"differ by {100 * abs(away_k) * file.gain_per_k:.2g} %, which the interval includes"
            )
            yield Notice(NoticeKind.CALIBRATION, line)


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= SETTING_TOLERANCE * abs(other)


def _words(ohm: float | None) -> str:
    return "its own" if ohm is None else f"{ohm:g}"
