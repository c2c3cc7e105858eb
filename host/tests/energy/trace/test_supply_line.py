"""Voltages between bus readings follow the supply's load line, fitted to the run's own readings."""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from opjoule.energy.cells import Cells
from opjoule.energy.sensor_calibration import SensorCalibration
from opjoule.energy.trace.journal import TraceJournal, read_trace, to_parquet
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.trace.supply_line import BusReadings, fit_supply_line
from opjoule.energy.window import Window, window_energy_j
from opjoule.meters.chips import ina219_breakout

SENSOR = replace(
    ina219_breakout(seen_fraction=1.0),
    calibration=SensorCalibration("exact"),
    clock_error_max=0.0,
)
CONVERSION_NS = 532_000
FINE = 8
"""Points of the true current in a conversion."""
ROW = 128
SECOND_NS = 1_000_000_000


def true_current(seconds, level, seed=1, on_s=(0.035, 0.046)):
    """Bursts of about 40 ms between two levels, on a grid of an eighth of a conversion."""
    rng = np.random.default_rng(seed)
    count = int(seconds * SECOND_NS / CONVERSION_NS) * FINE
    current_a = np.full(count, level[0])
    edges = (np.cumsum(rng.uniform(*on_s, int(seconds / on_s[0]) + 2)) * 1e9 / CONVERSION_NS * FINE).astype(int)
    for start, end in zip(edges[::2], edges[1::2], strict=False):
        current_a[start:end] = level[1]
    return current_a


def measured(current_a, source_v, resistance_ohm, step_v=4e-3):
    """Trace in shunt mode: each 129th conversion is the bus's. Gives it with held voltages, and the true energy."""
    voltage_v = source_v - resistance_ohm * current_a
    conversions = current_a.size // FINE // (ROW + 1) * (ROW + 1)
    shape = conversions, FINE
    mean_a = current_a[: conversions * FINE].reshape(shape).mean(axis=1)
    mean_v = voltage_v[: conversions * FINE].reshape(shape).mean(axis=1)
    number = np.arange(conversions)
    is_bus = number % (ROW + 1) == 0
    bus = BusReadings((number[is_bus] + 1).astype(np.int64) * CONVERSION_NS, np.rint(mean_v[is_bus] / step_v) * step_v)
    centre_ns = number[~is_bus].astype(np.int64) * CONVERSION_NS + CONVERSION_NS // 2
    held = PowerTrace.of(centre_ns, np.rint(mean_a[~is_bus] / 1e-4) * 1e-4, np.repeat(bus.voltage_v, ROW))
    energy = np.concatenate([[0.0], np.cumsum(current_a * voltage_v)]) * CONVERSION_NS * 1e-9 / FINE
    return replace(held, bus=bus), energy


def energy_of(trace, energy, start_s=1.0, end_s=9.0):
    """(interval, true energy) of a window on whole points of the grid."""
    first, last = (round(time_s * SECOND_NS / CONVERSION_NS * FINE) for time_s in (start_s, end_s))
    window = Window(first * CONVERSION_NS // FINE, last * CONVERSION_NS // FINE, 0.0)
    return window_energy_j(Cells.of(trace), window, SENSOR), float(energy[last] - energy[first])


def test_bursts_of_40_ms_on_0_3_ohm_change_the_energy_by_less_than_0_05_percent():
    """Held voltages are 2 to 3 % wrong here: high ones under low currents, and the other way round."""
    held, energy = measured(true_current(10, (0.3, 1.2)), 5.1, 0.3)
    trace = held.on_supply_line()
    assert trace.supply.resistance_ohm == pytest.approx(0.3, abs=0.01)
    interval, true_j = energy_of(trace, energy)
    assert interval.energy.value == pytest.approx(true_j, rel=5e-4)
    assert interval.energy.covers(true_j)
    assert interval.energy.relative_u < 1e-3
    assert abs(energy_of(held, energy)[0].energy.value / true_j - 1) > 0.001


def test_a_stiff_supply_keeps_its_voltage():
    held, _ = measured(true_current(10, (0.3, 1.2)), 5.1, 0.0)
    trace = held.on_supply_line()
    assert trace.supply.resistance_ohm == pytest.approx(0.0, abs=2e-3)
    assert trace.voltage_v == pytest.approx(5.1, abs=4e-3)


def test_a_source_that_drifts_is_followed():
    count = true_current(10, (0.5, 0.5)).size
    source_v = 5.0 + 0.1 * np.linspace(0, 1, count)
    held, energy = measured(true_current(10, (0.3, 1.2)), source_v, 0.2)
    interval, true_j = energy_of(held.on_supply_line(), energy)
    assert interval.energy.value == pytest.approx(true_j, rel=1e-3)
    assert interval.energy.covers(true_j)


def test_a_reading_in_mid_change_hardly_counts():
    held, _ = measured(true_current(10, (0.3, 1.2)), 5.1, 0.3)
    line = held.supply
    after = np.searchsorted(held.meter_ns, line.meter_ns)
    changing = np.abs(held.current_a[after] - held.current_a[after - 1]) > 0.6
    assert 0 < changing.sum() < changing.size / 4
    assert line.weight[changing].max() < 0.25
    assert np.median(line.weight[~changing]) > 0.3


@pytest.mark.parametrize("seed", range(5))
def test_ripple_that_the_readings_meet_by_chance_is_in_the_budget(seed):
    """50 mV from crest to crest: 145 readings leave up to 0.05 %, of which steps and noise say nothing."""
    rng = np.random.default_rng(seed)
    current_a = true_current(10, (0.8, 0.8))
    phase = 2 * np.pi * rng.uniform(90, 600) * np.arange(current_a.size) * CONVERSION_NS * 1e-9 / FINE
    held, energy = measured(current_a, 5.1 + 0.025 * np.sin(phase), 0.0)
    interval, true_j = energy_of(held.on_supply_line(), energy)
    assert interval.budget.parts["voltage"] > 1.5e-4 * true_j
    assert interval.energy.covers(true_j)


def test_a_current_that_no_neighbour_foretells_leaves_the_resistance_in_doubt():
    rng = np.random.default_rng(3)
    current_a = np.repeat(0.6 + 0.2 * rng.standard_normal(20_000), FINE)
    held, _ = measured(current_a, 5.1, 0.3)
    line = held.supply
    assert line.resistance_u_ohm > 0.03
    assert abs(line.resistance_ohm - 0.3) < 2 * line.resistance_u_ohm


def test_without_a_reading_between_samples_there_is_no_line():
    times_ns = np.arange(0, 10 * CONVERSION_NS, CONVERSION_NS)
    before = BusReadings(np.array([-5 * CONVERSION_NS]), np.array([5.0]))
    assert fit_supply_line(before, times_ns, np.full(10, 0.5)) is None
    held = replace(PowerTrace.of(times_ns, np.full(10, 0.5), np.full(10, 5.0)), bus=before)
    assert held.on_supply_line() is held


def test_few_readings_say_that_they_know_little():
    held, energy = measured(true_current(10, (0.8, 0.8)), 5.1, 0.0)
    short = replace(held, bus=BusReadings(held.bus.meter_ns[:3], held.bus.voltage_v[:3])).on_supply_line()
    interval, true_j = energy_of(short, energy)
    assert interval.budget.parts["voltage"] > 2e-3 * true_j


def test_a_record_gives_the_same_voltages_before_and_after_its_parquet_files(tmp_path):
    held, _ = measured(true_current(3, (0.3, 1.2)), 5.1, 0.3)
    journal = TraceJournal(tmp_path)
    half = len(held) // 2
    for part in (slice(0, half), slice(half, None)):
        journal.append_samples(held.meter_ns[part], held.current_a[part], held.voltage_v[part])
    for at_ns, reading_v in zip(held.bus.meter_ns.tolist(), held.bus.voltage_v.tolist(), strict=True):
        journal.append_bus(at_ns, reading_v)
    journal.close()
    streamed = read_trace(tmp_path)
    assert "bus.parquet" in {path.name for path in to_parquet(tmp_path)}
    stored = pq.read_table(tmp_path / "power.parquet").column("voltage_v").to_numpy()
    assert streamed.voltage_v == pytest.approx(held.on_supply_line().voltage_v, abs=1e-12)
    assert stored == pytest.approx(streamed.voltage_v, abs=1e-12)
    assert read_trace(tmp_path).voltage_v == pytest.approx(stored, abs=1e-12)
