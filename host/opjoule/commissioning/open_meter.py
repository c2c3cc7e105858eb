"""A meter that is open: who answered, and what is known of its sensor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from opjoule.energy.error_bounds import ErrorBounds
from opjoule.measuring.known_sensors import Calibrations, KnownSensors
from opjoule.meters.interface import Meter, MeterIdentity


@dataclass(frozen=True)
class OpenMeter:
    """A meter that is open and configured."""

    meter: Meter
    identity: MeterIdentity
    bounds: ErrorBounds
    """Bounds of its first sensor, with its calibration where there is one."""


@contextmanager
def opened_meter(meter: Meter, name: str, calibrations: Calibrations | None) -> Iterator[OpenMeter]:
    """A meter, open and configured until the end of the block. Raises: MeterFault, BadInput, CalibrationFault."""
    try:
        identity = meter.open()
        meter.configure()
        bounds = (
            KnownSensors.of(meter, name, identity, calibrations).bounds[0] if name else meter.error_bounds()
        )
        yield OpenMeter(meter, identity, bounds)
    finally:
        meter.close()


def meter_words(meter: OpenMeter) -> dict[str, str]:
    """Who answered, for the certificate."""
    identity, bounds = meter.identity, meter.bounds
    sensors = ", ".join(f"{sensor.model} at 0x{sensor.address:02x}" for sensor in identity.sensors)
    found = {
        "board": identity.board,
        "firmware": identity.firmware_version,
        "serial_number": identity.serial_number,
        "sensors": sensors,
        "sensor_id": bounds.sensor_id,
        "calibration": bounds.calibration.identity if bounds.calibration else "",
    }
    return {key: value for key, value in found.items() if value}
