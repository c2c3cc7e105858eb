"""A shunt that its own current heats: correction, calibration, budget."""

import math
from dataclasses import replace

import numpy as np
import pytest
from calibrated_sensor import OPEN_V, SUPPLY_OHM, bench_reference
from hypothesis import given
from hypothesis import strategies as st
from opjoule.energy.baseline import idle_power, marginal_energy
from opjoule.energy.calibration.fitting import CalibrationFault, ReferencePoint, calibrate
from opjoule.energy.calibration.reference import other_meter
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import Shunt
from opjoule.energy.sensor_calibration import SensorCalibration
from opjoule.energy.shunt_heat import LN_TAU_U, STEADY_S, TAU_S, Heating, PointCourse, time_constant, warmth
from opjoule.energy.trace.power_trace import Gap, PowerTrace
from opjoule.energy.window import Window, window_energy_j
from opjoule.meters.chips import ina219_breakout

BOUNDS = replace(ina219_breakout(), sensor_id="bench-1@0x40")
PER_A2, TAU = 1.7e-3, 6.0
"""0.1 ohm, 200 ppm/K, 85 K/W."""
PERIOD_NS = 50_000_000


def heated(true_a, per_a2=PER_A2, tau_s=TAU, step_s=PERIOD_NS * 1e-9):
    """What a shunt that was in balance with the first current makes of a course of currents."""
    kept, warm, readings_a = math.exp(-step_s / tau_s), None, []
    for current_a in true_a:
        if warm is None:
            warm = current_a**2 * (1 + per_a2 * current_a**2)
        readings_a.append(current_a * (1 + per_a2 * warm))
        warm = kept * warm + (1 - kept) * current_a**2 * (1 + per_a2 * warm)
    return np.array(readings_a)


def trace_of(current_a, voltage_v=5.0, **fields):
    place_ns = PERIOD_NS * np.arange(len(current_a), dtype=np.int64)
    return replace(PowerTrace.of(place_ns, current_a, np.full(len(current_a), voltage_v)), **fields)


def known(per_a2=PER_A2, tau_s=TAU, **fields):
    """A calibration that knows the heating exactly."""
    return SensorCalibration("exact", heating=Heating(per_a2, tau_s, 0.0), **fields)


STEP = np.repeat([0.6, 1.5, 0.6], 1200)


@given(st.floats(0.05, 3.0), st.floats(-2e-3, 2e-3))
def test_a_steady_reading_gives_back_its_current(true_a, per_a2):
    calibration = known(per_a2)
    (reading_a,) = heated([true_a], per_a2)
    for _ in range(30):
        reading_a = true_a * (1 + per_a2 * true_a * reading_a)
    assert calibration.steady_current_a(reading_a) == pytest.approx(true_a, rel=1e-9)


def test_a_load_that_changes_is_corrected_while_the_shunt_still_warms_up():
    read = trace_of(heated(STEP))
    assert abs(read.current_a[1190:2400] / STEP[1190:2400] - 1).max() > 3e-3
    corrected = known().apply(read)
    assert abs(corrected.current_a / STEP - 1).max() < 6e-5
    assert (read.current_a == heated(STEP)).all()
    overwritten = known().apply(read, overwrite=True)
    assert overwritten.current_a is read.current_a


def test_the_charge_of_a_gap_is_corrected_by_the_warmth_around_it():
    true_a = np.full(600, 1.5)
    read_a = heated(true_a)
    read_a[300:310] = np.nan
    gap = Gap.between(299 * PERIOD_NS, 310 * PERIOD_NS, 10, "frame", float(heated(true_a)[300]))
    corrected = known().apply(trace_of(read_a, gaps=(gap,)))
    assert corrected.gaps[0].charge_c == pytest.approx(1.5 * 10 * PERIOD_NS * 1e-9, rel=1e-5)


def test_warmth_follows_with_its_time_constant_and_starts_in_balance():
    place_ns = PERIOD_NS * np.arange(STEP.size, dtype=np.int64)
    heat = warmth(place_ns, STEP, Heating(0.0, TAU))
    at_ns = np.array([1100, 1200 + round(TAU / 0.05), 2399]) * PERIOD_NS
    risen = 0.36 + (2.25 - 0.36) * (1 - math.exp(-1))
    np.testing.assert_allclose(heat.at(at_ns), [0.36, risen, 2.25], rtol=0.01)


def point(true_a, reading_a, course=None, digits=1e-4, reading_u=2e-5):
    true_v = OPEN_V - SUPPLY_OHM * true_a
    return ReferencePoint(
        *(reading_a, reading_u, true_a, digits / 12**0.5, true_v, 1e-4, true_v, 3e-5),
        warmth_a2=reading_a**2,
        course=course,
    )


def ladder(most_a=1.5, per_a2=PER_A2, tau_s=TAU, gain=1.0, drift=0.0):
    """Points of 60 s, one after the other, as a session takes them; `drift`: of each load, relative."""
    levels_a = np.linspace(0.0, most_a, 8)
    count = round(STEADY_S / (PERIOD_NS * 1e-9))
    moving = 1 + drift * np.exp(-np.arange(count) / 400)
    true_a = np.concatenate([level * moving for level in levels_a])
    cells = Cells.of(trace_of(heated(true_a, per_a2, tau_s) * gain))
    points = []
    for number, level_a in enumerate(levels_a):
        start_ns, end_ns = number * count * PERIOD_NS, (number + 1) * count * PERIOD_NS - PERIOD_NS
        course = PointCourse.of(cells, start_ns, end_ns)
        kept = course.reading_a[round(course.reading_a.size * 2 / 3) :].mean()
        points.append(point(level_a, kept, course))
    return points


def calibrated(taken, bounds=BOUNDS):
    return calibrate(taken, bench_reference(), bounds, "x")


@pytest.mark.parametrize("most_a", [1.3, 3.0])
@pytest.mark.parametrize("per_a2", [3e-4, 1.7e-3, -1.5e-3])
def test_the_bow_of_a_heated_shunt_is_fitted_and_not_refused(per_a2, most_a):
    made = calibrated(ladder(most_a, per_a2, gain=1.004))
    assert made.calibration.heating.per_a2 == pytest.approx(per_a2, abs=0.05 * abs(per_a2) + 2e-5)
    assert made.calibration.current.gain == pytest.approx(1 / 1.004, abs=2e-4)
    for true_a in (0.4 * most_a, 0.95 * most_a):
        reading_a = true_a * 1.004
        for _ in range(30):
            reading_a = 1.004 * true_a * (1 + per_a2 * true_a * reading_a / 1.004)
        assert made.calibration.steady_current_a(reading_a) == pytest.approx(true_a, rel=2e-4)


def test_the_time_constant_comes_from_how_the_readings_creep():
    made = calibrated(ladder()).calibration.heating
    assert made.tau_s == pytest.approx(TAU, rel=0.05) and made.ln_tau_u < 0.1
    slow = calibrated(ladder(tau_s=20.0)).calibration.heating
    assert slow.tau_s == pytest.approx(20.0, rel=0.1)


def test_a_shunt_that_does_not_heat_up_leaves_the_time_constant_open():
    heating = time_constant([load_point.course for load_point in ladder(per_a2=0.0)], 0.0)
    assert heating.ln_tau_u == pytest.approx(LN_TAU_U, rel=0.05)
    assert heating.tau_s == pytest.approx(TAU_S, rel=0.05)


def test_loads_that_creep_by_themselves_do_not_pass_for_a_time_constant():
    """A resistor that heats up, too: what two meters in series see of it is taken out."""
    alone = time_constant([load_point.course for load_point in ladder(drift=5e-3)], PER_A2)
    assert alone.ln_tau_u > 3 * calibrated(ladder()).calibration.heating.ln_tau_u
    creeping = [load_point.course for load_point in ladder(drift=5e-3)]
    of_load = [load_point.course for load_point in ladder(per_a2=0.0, drift=5e-3)]
    both = [one.beside(other) for one, other in zip(creeping, of_load, strict=True)]
    assert time_constant(both, PER_A2).tau_s == pytest.approx(TAU, rel=0.1)


def test_points_too_short_for_the_heat_are_a_line_and_its_doubt_stays_in_the_budget():
    taken = [replace(load_point, course=None, warmth_a2=None) for load_point in ladder(per_a2=0.0)]
    made = calibrated(taken).calibration
    assert made.heating.per_a2 == 0.0 and made.heats
    cold = calibrated(taken, replace(BOUNDS, heating_max_per_a2=0.0)).calibration
    assert made.power_u(1.4, 5.0) > 1.1 * cold.power_u(1.4, 5.0)
    heated_points = [replace(load_point, course=None, warmth_a2=None) for load_point in ladder(3.0)]
    with pytest.raises(CalibrationFault, match="points of 60 s"):
        calibrated(heated_points)


def test_a_marginal_energy_is_corrected_between_idle_and_busy():
    """Idle 0.6 A to busy 1.3 A: the gain moves by 0.23 %, and the difference by more than that."""
    true_a = np.repeat([0.6, 1.3], [2400, 1200])
    windows = Window(0, 2300 * PERIOD_NS, 0.0), Window(2400 * PERIOD_NS, 3500 * PERIOD_NS, 0.0)

    def marginal_j(trace, bounds):
        cells = Cells.of(trace)
        run = window_energy_j(cells, windows[1], bounds)
        return marginal_energy(run, idle_power(cells, windows[:1], bounds), bounds)

    read = trace_of(heated(true_a))
    true_j = (1.3 - 0.6) * 5.0 * 1100 * PERIOD_NS * 1e-9
    delivered = marginal_j(read, BOUNDS)
    assert delivered.energy.value / true_j - 1 > 3e-3
    assert delivered.budget.parts["heating"] / true_j > 2e-3
    exact = replace(BOUNDS, calibration=known())
    corrected = marginal_j(known().apply(read), exact)
    assert corrected.energy.value == pytest.approx(true_j, rel=1e-3)
    assert corrected.budget.parts["heating"] == 0.0


def test_the_heatings_part_of_the_budget_is_what_another_heating_would_change():
    read, window = trace_of(heated(STEP)), Window(1100 * PERIOD_NS, 1500 * PERIOD_NS, 0.0)
    u = 1e-4
    covariance = tuple(tuple(u**2 if row == column == 4 else 0.0 for column in range(5)) for row in range(5))
    calibration = replace(known(), covariance=covariance, heating=Heating(PER_A2, TAU, 0.2))
    energy = window_energy_j(calibration.apply(read), window, replace(BOUNDS, calibration=calibration))

    def energy_j(heating):
        return window_energy_j(replace(calibration, heating=heating).apply(read), window, BOUNDS).energy.value

    by_size = (energy_j(Heating(PER_A2 + u, TAU)) - energy_j(Heating(PER_A2 - u, TAU))) / 2
    late, early = (energy_j(Heating(PER_A2, TAU * math.exp(log_ratio))) for log_ratio in (0.2, -0.2))
    assert energy.budget.parts["heating"] == pytest.approx(math.hypot(by_size, (late - early) / 2), rel=0.02)


def test_a_shunt_of_another_kind_is_bounded_by_what_is_stated_of_it():
    thick, strip = Shunt(0.1), Shunt(0.02, 0.005, per_k=75e-6, kelvin=True)
    assert thick.heating_max_per_a2 == pytest.approx(2e-3) and thick.tolerance == 0.05
    assert strip.heating_max_per_a2 == pytest.approx(1.5e-4) and strip.copper == 0.0
    assert Shunt(0.02).copper == pytest.approx(0.025)


def test_a_wire_behind_the_sense_point_is_taken_off_where_it_is_known_and_doubted_where_not():
    trace, window = trace_of(np.full(400, 1.3)), Window(0, 300 * PERIOD_NS, 0.0)
    seconds = 300 * PERIOD_NS * 1e-9
    unknown = window_energy_j(trace, window, BOUNDS.wired(None))
    assert unknown.budget.parts["wire"] == pytest.approx(0.02 / 3**0.5 * 1.69 * seconds)
    assert window_energy_j(trace, window, BOUNDS.wired(0.0)).budget.parts["wire"] == 0.0
    stated = BOUNDS.wired(0.01)
    corrected = window_energy_j(trace.behind(stated.wire_ohm), window, stated)
    assert corrected.energy.value == pytest.approx(unknown.energy.value - 0.01 * 1.69 * seconds)
    assert corrected.budget.parts["wire"] == pytest.approx(0.2 * 0.01 / 3**0.5 * 1.69 * seconds)


@pytest.mark.parametrize("true_a", [0.5, 1.0, 1.5])
def test_a_calibrated_meter_with_a_heated_shunt_is_as_uncertain_a_reference_as_its_calibration_says(true_a):
    made = calibrated(ladder()).calibration
    reference = other_meter("sensor 1", replace(BOUNDS, calibration=made))
    at = made.sensitivity(true_a, made.steady_warmth_a2(true_a))
    u_a = math.hypot(*(part_u for _, part_u in made.contributions(at).values()))
    assert reference.current_u_a(true_a) == pytest.approx(u_a, rel=0.3)
