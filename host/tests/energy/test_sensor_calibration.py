"""A calibration applied to a trace: corrected on reading, refused beyond its range, its covariance in the budget."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from calibrated_sensor import TrueReference, TrueSensor, bench_reference, points
from opjoule.base.errors import RecordFault
from opjoule.energy.calibration.fitting import calibrate
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.sensor_calibration import Correction, SensorCalibration
from opjoule.energy.trace.power_trace import Gap, PowerTrace
from opjoule.energy.trace.supply_line import BusReadings
from opjoule.energy.window import Window, window_energy_j
from opjoule.meters.chips import ina219_breakout
from opjoule.runs.record.json_file import as_value, plain

BOUNDS = replace(ina219_breakout(), sensor_id="bench-1@0x40", heating_max_per_a2=0.0)
SENSOR = TrueSensor(1.0123, -1.4e-3, 0.9972, 2e-3)
MADE = calibrate(points(SENSOR, TrueReference(bench_reference())), bench_reference(), BOUNDS, "bench-1 now").calibration
PERIOD_NS = 1_000_000


def true_trace(currents_a, voltage_v=5.0, ohm=0.0):
    current_a = np.repeat(np.asarray(currents_a, float), 500)
    return PowerTrace.of(np.arange(current_a.size, dtype=np.int64) * PERIOD_NS, current_a, voltage_v - ohm * current_a)


def as_read(trace, sensor=SENSOR):
    """The trace as the sensor shows it."""
    gaps = tuple(
        replace(gap, charge_c=(gap.charge_c - sensor.offset_a * gap.duration_ns * 1e-9) / sensor.gain)
        if gap.charge_c is not None
        else gap
        for gap in trace.gaps
    )
    bus = trace.bus and replace(trace.bus, voltage_v=sensor.voltage(trace.bus.voltage_v))
    return replace(
        trace,
        current_a=sensor.current(trace.current_a),
        voltage_v=sensor.voltage(trace.voltage_v),
        gaps=gaps,
        bus=bus,
    )


EXACT = SensorCalibration(
    "exact",
    Correction(SENSOR.gain, SENSOR.offset_a),
    Correction(SENSOR.voltage_gain, SENSOR.voltage_offset_v),
)


def test_a_corrected_trace_is_the_true_one_and_the_one_that_was_read_stays_as_it_was():
    true = true_trace([0.3, 0.9, 0.5])
    gaps = (
        Gap(200_500_000, 210_500_000, 10, 0.3 * 10e-3, "lost frame"),
        Gap(900_500_000, 905_500_000, 5, None, "reset"),
    )
    true.current_a[200:210] = np.nan
    true = replace(true, gaps=gaps)
    read = as_read(true)
    before = read.current_a.copy(), read.voltage_v.copy()
    corrected = EXACT.apply(read)
    np.testing.assert_allclose(corrected.current_a, true.current_a, atol=1e-12)
    np.testing.assert_allclose(corrected.voltage_v, true.voltage_v, atol=1e-12)
    assert corrected.gaps[0].charge_c == pytest.approx(gaps[0].charge_c) and corrected.gaps[1].charge_c is None
    np.testing.assert_array_equal(read.current_a, before[0])
    np.testing.assert_array_equal(read.voltage_v, before[1])
    overwritten = EXACT.apply(read, overwrite=True)
    assert np.shares_memory(overwritten.current_a, read.current_a)
    np.testing.assert_array_equal(overwritten.current_a, corrected.current_a)
    np.testing.assert_array_equal(overwritten.voltage_v, corrected.voltage_v)


def test_energy_of_a_corrected_trace_is_that_of_the_true_one():
    true = true_trace([0.3, 0.9, 0.5])
    window = Window(100 * PERIOD_NS, 1400 * PERIOD_NS, 0.0)
    true_j = window_energy_j(true, window, BOUNDS).energy.value
    corrected = window_energy_j(EXACT.apply(as_read(true)), window, replace(BOUNDS, calibration=EXACT))
    assert corrected.energy.value == pytest.approx(true_j, rel=1e-12)
    assert corrected.budget.parts["gain"] == corrected.budget.parts["offset"] == 0.0


def test_voltages_that_are_read_now_and_then_are_corrected_before_the_load_line_is_fitted():
    ohm = 0.2
    true = true_trace(np.tile([0.3, 1.1], 40), ohm=ohm)
    at = np.arange(64, true.meter_ns.size - 64, 128)
    bus = BusReadings(true.meter_ns[at] + PERIOD_NS // 2, true.voltage_v[at])
    held = as_read(replace(true, voltage_v=np.full(len(true), 4.9), bus=bus)).on_supply_line()
    corrected = EXACT.apply(held)
    assert corrected.supply.resistance_ohm == pytest.approx(ohm, rel=0.02)
    np.testing.assert_allclose(corrected.voltage_v[1000:-1000], true.voltage_v[1000:-1000], atol=4e-3)
    assert np.abs(held.voltage_v - true.voltage_v).max() > 5e-3


@pytest.mark.parametrize(
    ("currents_a", "words"),
    [
        ([0.1, 0.8, 1.5], ""),
        ([0.0] * 50 + [0.8] * 50, ""),  # a board that is off carries no charge
        (
            [0.4, 1.9],
            r"8\d % of the charge .* 0\.05\d* to 1\.48 A .*up to 1\.88 A",
        ),
        ([0.4] * 199 + [1.9], r"[12] % of the charge"),
    ],
)
def test_a_trace_beyond_the_calibrated_currents_is_refused_with_both_ranges(currents_a, words):
    refusal = MADE.refusal(as_read(true_trace(currents_a)))
    assert bool(refusal) == bool(words)
    import re

    assert re.search(words, refusal)


def test_a_supply_of_another_voltage_is_refused_too():
    refusal = MADE.refusal(as_read(true_trace([0.4, 0.8], voltage_v=12.0)))
    assert refusal.startswith("100 % of the voltages, 12 to 12 V, ") and " 4.6" in refusal


def test_gain_and_offset_of_the_budget_are_the_calibrations_and_make_up_all_of_its_variance():
    true = true_trace([0.3, 0.9, 0.5])
    window = Window(100 * PERIOD_NS, 1400 * PERIOD_NS, 0.0)
    corrected = window_energy_j(MADE.apply(as_read(true)), window, replace(BOUNDS, calibration=MADE))
    delivered = window_energy_j(true, window, BOUNDS)
    assert corrected.budget.parts["gain"] < delivered.budget.parts["gain"] / 5
    assert corrected.budget.parts["offset"] < delivered.budget.parts["offset"] / 10
    # The same from the whole covariance of the parameters, by sensitivities taken numerically.
    total = np.array(MADE.covariance) + sum(np.outer(source.effect, source.effect) for source in MADE.common)

    def energy_j(step):
        changed = SensorCalibration(
            "changed",
            Correction(MADE.current.gain + step[0], MADE.current.offset + step[2]),
            Correction(MADE.voltage.gain + step[1], MADE.voltage.offset + step[3]),
        )
        return window_energy_j(changed.apply(as_read(true)), window, BOUNDS).energy.value

    size, total = 1e-4, total[:4, :4]
    sensitivity = np.array([(energy_j(size * row) - energy_j(-size * row)) / (2 * size) for row in np.eye(4)])
    whole_u = float(np.sqrt(sensitivity @ total @ sensitivity))
    assert np.hypot(corrected.budget.parts["gain"], corrected.budget.parts["offset"]) == pytest.approx(
        whole_u, rel=1e-6
    )
    assert np.sqrt(sum(contribution**2 for contribution in corrected.budget.shared.values())) == pytest.approx(
        whole_u, rel=1e-6
    )


def test_drift_since_the_calibration_is_in_the_gain_and_no_other_run_shares_it():
    trace, window = MADE.apply(as_read(true_trace([0.3, 0.9]))), Window(0, 900 * PERIOD_NS, 0.0)
    calm, drifting = (
        window_energy_j(trace, window, replace(BOUNDS, calibration=replace(MADE, gain_drift_u=drift_u)))
        for drift_u in (0.0, 1e-3)
    )
    assert drifting.budget.parts["gain"] == pytest.approx(np.hypot(calm.budget.parts["gain"], 1e-3 * calm.energy.value))
    assert drifting.budget.shared == calm.budget.shared


def test_a_calibration_without_voltage_leaves_the_voltages_bounds_in_the_budget():
    current_alone = replace(MADE, voltage=None)
    trace, window = (
        as_read(true_trace([0.3, 0.9]), replace(SENSOR, voltage_gain=1.0, voltage_offset_v=0.0)),
        Window(0, 900 * PERIOD_NS, 0.0),
    )
    corrected = window_energy_j(current_alone.apply(trace), window, replace(BOUNDS, calibration=current_alone))
    assert corrected.budget.parts["gain"] > corrected.energy.value * 0.005 / 3**0.5
    assert "bench-1@0x40: voltage" in corrected.budget.shared


def test_bounds_with_a_calibration_are_read_back_as_they_were_written():
    bounds = replace(BOUNDS, calibration=MADE)
    assert as_value(json.loads(json.dumps(plain(bounds))), ErrorBounds, Path("run.json")) == bounds


def test_bounds_from_before_sensors_were_calibrated_are_read():
    entry = plain(BOUNDS) | {"calibrated_power_gain_u": None, "calibrated_offset_u_a": None}
    for key in ("sensor_id", "model"):
        del entry[key]
    assert as_value(entry, ErrorBounds, Path("run.json")) == replace(BOUNDS, sensor_id="", model="")


@pytest.mark.parametrize(
    "change", [{"covariance": [[1.0]]}, {"current": {"gain": "much"}}, {"common": [{"name": "x"}]}]
)
def test_a_damaged_calibration_in_a_record_is_one_line(change):
    entry = plain(BOUNDS) | {"calibration": plain(MADE) | change}
    with pytest.raises(RecordFault, match=r"^run\.json is corrupt: .*calibration"):
        as_value(entry, ErrorBounds, Path("run.json"))


def test_a_sensor_without_a_name_shares_nothing_with_others():
    trace, window = true_trace([0.3, 0.9]), Window(0, 900 * PERIOD_NS, 0.0)
    assert window_energy_j(Cells.of(trace), window, replace(BOUNDS, sensor_id="")).budget.shared == {}
    assert "bench-1@0x40: shunt" in window_energy_j(trace, window, BOUNDS).budget.shared
