"""From points to a calibration: it finds the sensor's errors, states how well, and refuses what tells nothing."""

from dataclasses import replace

import numpy as np
import pytest
from calibrated_sensor import (
    CURRENTS_A,
    OPEN_V,
    SUPPLY_OHM,
    TrueReference,
    TrueSensor,
    bench_reference,
    known,
    points,
)
from opjoule.base.errors import BadInput
from opjoule.energy.calibration.fitting import CalibrationFault, calibrate, deviations
from opjoule.energy.calibration.reference import Accuracy, multimeter, other_meter, over_resistor
from opjoule.meters.chips import ina219_breakout
from opjoule.meters.rapl import RaplSource

BOUNDS = replace(ina219_breakout(), heating_max_per_a2=0.0)
SENSOR = TrueSensor(1.0123, -1.4e-3, 0.9972, 0.0)


def power_error(calibration, sensor, true_a, true_v):
    """Relative error of a corrected power."""
    current_a = calibration.current(np.array(sensor.current(true_a)))
    voltage_v = calibration.voltage(np.array(sensor.voltage(true_v)))
    return float(current_a * voltage_v) / (true_a * true_v) - 1


def test_perfect_points_give_back_the_sensors_errors():
    made = calibrate(points(SENSOR, TrueReference(bench_reference())), bench_reference(), BOUNDS, "x")
    assert made.calibration.current.gain == pytest.approx(SENSOR.gain, abs=1e-9)
    assert made.calibration.current.offset == pytest.approx(SENSOR.offset_a, abs=1e-9)
    assert abs(power_error(made.calibration, SENSOR, 0.8, 5.0)) < 2e-4
    assert made.notes == ()


def test_the_stated_uncertainty_of_the_power_is_that_of_calibrations_with_other_noise_and_other_references():
    rng = np.random.default_rng(5)
    errors, stated = [], []
    for _ in range(500):
        sensor, reference = TrueSensor.draw(rng), TrueReference.draw(bench_reference(), rng)
        try:
            made = calibrate(points(sensor, reference, rng), reference.reference, BOUNDS, "x")
        except CalibrationFault:
            continue  # one in a thousand strays too far
        for true_a in (0.4, 1.3):
            true_v = OPEN_V - SUPPLY_OHM * true_a
            errors.append(power_error(made.calibration, sensor, true_a, true_v))
            stated.append(made.calibration.power_u(true_a, true_v))
    ratios = np.abs(errors) / np.array(stated)
    assert len(errors) > 990
    assert 0.93 < np.mean(ratios < 2) < 0.98
    assert np.median(stated) < 1e-3 < BOUNDS.power_gain_u / 5


def test_one_voltmeter_for_current_and_voltage_counts_twice_in_the_power():
    volts = Accuracy.of("0.1%", "V")
    once = multimeter("two", current=volts, voltage=volts, stated="")
    twice = over_resistor("one", ohm=0.1, resistor=Accuracy(1e-9, 0), voltage=volts, stated="")
    made = [calibrate(points(SENSOR, TrueReference(meter)), meter, BOUNDS, "x") for meter in (once, twice)]
    only = [replace(result.calibration, covariance=((0.0,) * 4,) * 4).power_u(1.0, 5.0) for result in made]
    assert only[0] == pytest.approx(2**0.5 * volts.relative, rel=1e-3)
    assert only[1] == pytest.approx(2 * volts.relative, rel=1e-3)


def test_points_that_stray_a_little_widen_the_interval_and_further_ones_are_refused():
    taken = points(SENSOR, TrueReference(bench_reference()))

    def moved(by_a):
        return [replace(taken[0], reference_a=taken[0].reference_a + by_a), *taken[1:]]

    calm, stray = (calibrate(moved(by_a), bench_reference(), BOUNDS, "x") for by_a in (0.0, 1.1e-4))
    assert stray.current.chi_squared > stray.current.degrees
    assert stray.calibration.covariance[0][0] > calm.calibration.covariance[0][0]
    with pytest.raises(CalibrationFault, match=r"point 1.*DMM 7"):
        calibrate(moved(5e-4), bench_reference(), BOUNDS, "x")


@pytest.mark.parametrize(
    ("currents_a", "words"),
    [
        ((0.1, 0.5, 1.0), r"^3 points: "),
        ((0.9, 0.95, 1.0, 1.05), r"all points .* 0\.9 and 1\.05 A"),
        ((1.0,) * 6, "all points .* 1 and 1 A"),
        ((0.0,) * 6, "all points .* 0 and 0 A"),
    ],
)
def test_too_few_points_or_points_at_one_current_are_refused_in_one_line(currents_a, words):
    taken = points(SENSOR, TrueReference(bench_reference()), currents_a=currents_a)
    with pytest.raises(CalibrationFault, match=words) as refused:
        calibrate(taken, bench_reference(), BOUNDS, "x")
    assert "\n" not in str(refused.value)


def test_two_voltages_are_refused_and_none_leaves_the_voltage_as_delivered():
    taken = points(SENSOR, TrueReference(bench_reference()))
    with pytest.raises(CalibrationFault, match=r"2 points with a voltage"):
        calibrate([*taken[:2], *(replace(p, reference_v=None) for p in taken[2:])], bench_reference(), BOUNDS, "x")
    without = calibrate([replace(p, reference_v=None) for p in taken], bench_reference(), BOUNDS, "x").calibration
    assert without.voltage is None and without.voltage_u_v(5.0) == 0.0
    assert all(source.effect[1] == source.effect[3] == 0 for source in without.common)


def altered(change):
    return [replace(point, **change(point)) for point in points(SENSOR, TrueReference(bench_reference()))]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda p: {"current_a": 0.0},
            r"1\.45 A according to DMM 7 and by 0 A",
        ),
        (
            lambda p: {"current_a": 5 * p.current_a},
            "shunt= ",
        ),
        (lambda p: {"current_a": -p.current_a}, "backwards.* VIN"),
        (lambda p: {"reference_v": 1e-3 * p.reference_v}, "voltage"),
    ],
    ids=["a sensor that sees nothing", "another shunt", "a swapped sensor", "millivolts typed as volts"],
)
def test_what_no_sensors_error_is_is_refused_with_what_to_look_at(change, words):
    with pytest.raises(CalibrationFault, match=words):
        calibrate(altered(change), bench_reference(), BOUNDS, "x")


@pytest.mark.parametrize("wrong", range(6))
def test_a_reading_that_is_mistyped_is_named_wherever_it_is(wrong):
    """At the end of the range, too, where it draws the line to itself."""
    taken = points(SENSOR, TrueReference(bench_reference()))
    taken[wrong] = replace(taken[wrong], reference_a=taken[wrong].reference_a + 0.01)
    with pytest.raises(CalibrationFault, match=rf"point {wrong + 1} lies \+10 mA "):
        calibrate(taken, bench_reference(), BOUNDS, "x")


def test_a_gain_that_no_shunt_has_is_noted_and_a_reference_that_does_not_help_is_refused():
    odd = calibrate(points(TrueSensor(0.95), TrueReference(bench_reference())), bench_reference(), BOUNDS, "x")
    assert len(odd.notes) == 1 and "shunt= " in odd.notes[0]
    coarse = multimeter("M", current=Accuracy.of("2%", "A"), voltage=Accuracy.of("1%", "V"), stated="")
    with pytest.raises(CalibrationFault, match=r"less certain .* use a better"):
        calibrate(points(SENSOR, TrueReference(coarse)), coarse, BOUNDS, "x")


@pytest.mark.parametrize(
    ("text", "unit", "relative", "absolute"),
    [
        ("0.05%+2mV", "V", 5e-4 / 3**0.5, 2e-3 / 3**0.5),
        ("100ppm", "A", 1e-4 / 3**0.5, 0.0),
        ("0.2 % + 3 mA", "A", 2e-3 / 3**0.5, 3e-3 / 3**0.5),
        ("0.1% k=2", "V", 5e-4, 0.0),
        ("0.5uA", "A", 0.0, 5e-7 / 3**0.5),
        ("1mohm", "ohm", 0.0, 1e-3 / 3**0.5),
    ],
)
def test_an_accuracy_is_read_as_makers_write_it(text, unit, relative, absolute):
    made = Accuracy.of(text, unit)
    assert made.relative == pytest.approx(relative) and made.absolute == pytest.approx(absolute)


@pytest.mark.parametrize("text", ["", "good", "5", "0%", "3mV", "0.1%+", "-1%", "50%", "1e3%", "nan%"])
def test_what_is_no_accuracy_is_refused_in_one_line(text):
    with pytest.raises(BadInput, match=r"accuracy '.*for example 0\.05%\+2mA"):
        Accuracy.of(text, "A")


def test_another_meter_as_reference_brings_its_bounds_or_its_calibration():
    delivered = other_meter("monsoon 12", BOUNDS)
    assert delivered.current_u_a(1.0) == pytest.approx(
        np.hypot(np.hypot(np.hypot(0.01, 0.005), 210e-6 * 15) / 3**0.5, BOUNDS.current_offset_u_a)
    )
    made = calibrate(points(SENSOR, TrueReference(bench_reference())), bench_reference(), BOUNDS, "first")
    calibrated = other_meter("sensor 1", replace(BOUNDS, calibration=made.calibration))
    # What its own calibration rests on is still there by name, and as large.
    assert {source.name for source in bench_reference().common} < {source.name for source in calibrated.common}
    relative_u = np.hypot(calibrated.current_u_a(0.7) / 0.7, calibrated.voltage_u_v(5.0) / 5.0)
    assert 0.7 * made.calibration.power_u(0.7, 5.0) < relative_u < 1.5 * made.calibration.power_u(0.7, 5.0)
    with pytest.raises(BadInput, match="measures power only"):
        other_meter(
            "rapl",
            RaplSource().error_bounds(),
        )


def test_a_second_calibration_against_a_calibrated_sensor_knows_no_more_than_that_one():
    first = calibrate(points(SENSOR, TrueReference(bench_reference())), bench_reference(), BOUNDS, "first").calibration
    reference = other_meter("sensor 1", replace(BOUNDS, calibration=first))
    second = calibrate(points(TrueSensor(), TrueReference(reference)), reference, BOUNDS, "second").calibration
    assert second.power_u(0.8, 5.0) >= first.power_u(0.8, 5.0)


def test_a_check_with_the_same_reference_sees_a_drift_far_smaller_than_the_references_own_error():
    rng = np.random.default_rng(7)
    reference = TrueReference.draw(bench_reference(), rng)
    made = calibrate(points(SENSOR, reference, rng), reference.reference, BOUNDS, "x").calibration
    again = deviations(points(SENSOR, reference, rng), reference.reference, made)
    assert not any(deviation.has_drifted for deviation in again)
    assert len(again) == 2 * len(CURRENTS_A)
    drifted = replace(SENSOR, gain=SENSOR.gain * 1.0006)
    checks = deviations(points(drifted, reference, rng), reference.reference, made)
    assert any(deviation.has_drifted and deviation.quantity == "current" for deviation in checks)
    highest = checks[len(CURRENTS_A) - 1]
    assert highest.value == pytest.approx(-6e-4 * highest.at, rel=0.4)
    assert highest.u < 2 * reference.reference.current_u_a(highest.at)


def test_another_reference_sees_it_only_beyond_what_both_get_wrong():
    rng = np.random.default_rng(8)
    made = calibrate(points(SENSOR, TrueReference(bench_reference())), bench_reference(), BOUNDS, "x").calibration
    other = bench_reference("DMM 8")
    drifted = replace(SENSOR, gain=SENSOR.gain * 1.0006)
    checks = deviations(points(drifted, TrueReference(other), rng), other, made)
    assert not any(deviation.has_drifted for deviation in checks)


def test_what_is_known_exactly_has_no_uncertainty():
    assert known(BOUNDS).calibration.power_u(1.0, 5.0) == 0.0
