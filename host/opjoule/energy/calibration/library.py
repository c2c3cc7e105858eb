"""Finds the calibration of a sensor, and checks whether it fits the sensor's settings."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from opjoule.base.notices import Notice, NoticeKind
from opjoule.energy.calibration.calibration_file import WITHIN_K, CalibrationFile, read_calibration
from opjoule.energy.calibration.fitting import CalibrationFault
from opjoule.energy.error_bounds import ErrorBounds

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
