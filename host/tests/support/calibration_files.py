"""A calibration fitted to readings of a known sensor."""

from dataclasses import replace
from datetime import UTC, datetime

from calibrated_sensor import SENSOR_ID, TrueReference, TrueSensor, bench_reference, points
from opjoule.energy.calibration.calibration_file import CalibratedSensor, new_file
from opjoule.energy.calibration.fitting import calibrate
from opjoule.meters.chips import ina219_breakout

BOUNDS = replace(ina219_breakout(), sensor_id=SENSOR_ID, model="INA219", heating_max_per_a2=0.0)
WHEN = datetime(2026, 5, 3, 14, 5, 6, tzinfo=UTC)


def made(name="DMM 7", **changes):
    taken = points(TrueSensor(1.01, -1e-3, 0.998), TrueReference(bench_reference(name)))
    fitted = calibrate(taken, bench_reference(name), BOUNDS, "")
    sensor = CalibratedSensor(SENSOR_ID, "INA219", BOUNDS.current_max_a, 0.1)
    conditions = {"simulated": False, "date_utc": WHEN, "temperature_c": 22.5}
    return new_file(fitted, sensor, bench_reference(name), **{**conditions, **changes})
