"""Seconds come from the best clock there is: a meter's resonator does not change a joule."""

import math
from dataclasses import replace

import numpy as np
import pytest
from opjoule.clocks.clock_map import ClockMap
from opjoule.energy.baseline import idle_power, marginal_energy
from opjoule.energy.error_bounds import CRYSTAL_ERROR_MAX, RESONATOR_ERROR_MAX
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.window import Window, window_energy_j
from opjoule.meters.chips import ina219_breakout

SENSOR = ina219_breakout()
SECOND_NS = 1_000_000_000


def map_to_meter(ppm: float, source: str = "board", u_rate: float = 0.0) -> ClockMap:
    return ClockMap(source, "meter", 0, 0, 1 + ppm * 1e-6, 0.0, u_rate, "exchanges", 0.0, 9)


def steady(ppm: float, low_a: float = 0.4, high_a: float = 0.8) -> PowerTrace:
    """5 V for 30 s of the board: low, high, low for 10 s each, on a meter clock that is `ppm` fast."""
    board_ns = np.arange(0, 30 * SECOND_NS, 532_000)
    current_a = np.where((board_ns // (10 * SECOND_NS)) == 1, high_a, low_a)
    return PowerTrace.of(map_to_meter(ppm).to_target(board_ns), current_a, np.full(board_ns.size, 5.0))


@pytest.mark.parametrize("ppm", [-5000, 0, 5000])
def test_a_resonator_5000_ppm_off_changes_no_energy(ppm):
    trace, board_to_meter = steady(ppm), map_to_meter(ppm)
    window = Window.on_meter(board_to_meter, 11 * SECOND_NS, 19 * SECOND_NS)
    energy = window_energy_j(trace, window, SENSOR)
    assert window.duration_s == pytest.approx(8.0, rel=1e-9)
    assert energy.energy.value == pytest.approx(8.0 * 4.0, rel=1e-6)
    assert energy.mean_power_w == pytest.approx(4.0, rel=1e-6)
    assert energy.timebase.clock == "board"
    assert energy.budget.parts["timebase"] == pytest.approx(32.0 * CRYSTAL_ERROR_MAX / math.sqrt(3), rel=1e-6)


@pytest.mark.parametrize("ppm", [-5000, 5000])
def test_marginal_energy_is_in_the_boards_seconds_too(ppm):
    trace, board_to_meter = steady(ppm), map_to_meter(ppm)
    windows = [Window.on_meter(board_to_meter, a * SECOND_NS, b * SECOND_NS) for a, b in ((1, 9), (21, 29))]
    idle = idle_power(trace, windows, SENSOR)
    run = window_energy_j(trace, Window.on_meter(board_to_meter, 11 * SECOND_NS, 19 * SECOND_NS), SENSOR)
    marginal = marginal_energy(run, idle, SENSOR)
    assert idle.power.value == pytest.approx(2.0, rel=1e-6)
    assert marginal.energy.value == pytest.approx(16.0, rel=1e-6)
    assert marginal.budget.parts["timebase"] == pytest.approx(run.budget.parts["timebase"] / 2, rel=1e-5)


def test_a_window_on_the_meters_clock_takes_its_seconds_from_the_host_and_its_doubt_from_the_map():
    trace = steady(4000)
    meter_to_host = map_to_meter(4000, "host", u_rate=3e-6).inverse()
    window = Window.of_meter(trace.meter_ns[5], trace.meter_ns[18_000], meter_to_host)
    energy = window_energy_j(trace, window, SENSOR)
    assert window.duration_s == pytest.approx((18_000 - 5) * 532e-6, rel=1e-8)
    assert energy.timebase.clock == "host"
    assert energy.timebase.relative_u == pytest.approx(math.hypot(CRYSTAL_ERROR_MAX / math.sqrt(3), 3e-6), rel=0.01)


def test_seconds_that_only_the_meter_told_are_as_good_as_its_oscillator():
    trace = steady(0)
    resonator = window_energy_j(trace, Window.of_meter(0, 9 * SECOND_NS, None), SENSOR)
    assert resonator.timebase.clock == "meter"
    assert resonator.timebase.stated()["error_max"] == RESONATOR_ERROR_MAX
    assert resonator.budget.parts["timebase"] == pytest.approx(18 * RESONATOR_ERROR_MAX / math.sqrt(3))
    crystal = window_energy_j(trace, Window(0, 9 * SECOND_NS, 0.0), replace(SENSOR, clock_error_max=50e-6))
    assert crystal.budget.parts["timebase"] == pytest.approx(18 * 50e-6 / math.sqrt(3))


def test_a_power_has_no_timebase_in_it():
    trace = steady(0)
    energy = window_energy_j(trace, Window.of_meter(0, 9 * SECOND_NS, None), replace(SENSOR, clock_error_max=0.3))
    assert energy.energy.relative_u > 0.3
    assert energy.power.relative_u < 0.02
