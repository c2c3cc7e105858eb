"""Stamps within a row of conversions are even, whatever the meter knew of them at first."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opjoule.energy.trace import conversion_rows
from opjoule.energy.trace.conversion_rows import evenly_stamped
from opjoule.energy.trace.journal import TraceJournal, read_trace, to_parquet
from opjoule.energy.trace.power_trace import Gap, PowerTrace
from opjoule.energy.trace.supply_line import BusReadings

PERIOD_NS, BREAK_NS, ROW, ROWS = 497_757, 1_565_000, 64, 30


def conversions():
    """True centres of rows of conversions, and the end of the bus reading before each row [ns]."""
    number = np.arange(ROW * ROWS)
    true_ns = 10**9 + PERIOD_NS * number + (BREAK_NS - PERIOD_NS) * (number // ROW)
    return true_ns, true_ns[::ROW] - PERIOD_NS


def warming(true_ns, bus_ns, ppm_per_s):
    """The same times on a clock whose rate changes."""
    return tuple(
        at_ns + (0.5e-6 * ppm_per_s * (at_ns * 1e-9) ** 2 * 1e9).astype(np.int64) for at_ns in (true_ns, bus_ns)
    )


def stamped(true_ns, bus_ns):
    """A trace whose stamps are up to 90 us off at the beginning of each row, and up to 8 us later."""
    off_ns = np.random.default_rng(7).uniform(-8e3, 8e3, true_ns.size)
    off_ns += 82e3 * np.cos(np.arange(true_ns.size) * 1.7) * np.exp(-(np.arange(true_ns.size) % ROW) / 3)
    trace = PowerTrace.of(true_ns + off_ns.astype(np.int64), np.full(true_ns.size, 0.5), np.full(true_ns.size, 5.0))
    return replace(trace, bus=BusReadings(bus_ns, np.full(bus_ns.size, 5.0)))


def lossy(trace, first, count):
    """The trace with some lost conversions, whose charge is known."""
    lost = slice(first, first + count)
    current_a, voltage_v = trace.current_a.copy(), trace.voltage_v.copy()
    current_a[lost] = voltage_v[lost] = np.nan
    around_ns = int(trace.meter_ns[first - 1]), int(trace.meter_ns[first + count])
    gap = Gap.between(*around_ns, count, "frame lost", 0.5)
    meter_ns = trace.meter_ns.copy()
    meter_ns[lost] = gap.lost_centres_ns()
    return replace(trace, meter_ns=meter_ns, current_a=current_a, voltage_v=voltage_v, gaps=(gap,))


def test_stamps_of_a_rows_beginning_come_from_its_later_conversions():
    true_ns, bus_ns = conversions()
    trace = stamped(true_ns, bus_ns)
    assert np.abs(trace.meter_ns - true_ns).max() > 80_000
    assert np.abs(evenly_stamped(trace).meter_ns - true_ns).max() < 10_000


def test_clocks_may_warm_up():
    true_ns, bus_ns = warming(*conversions(), ppm_per_s=50)
    assert np.abs(evenly_stamped(stamped(true_ns, bus_ns)).meter_ns - true_ns).max() < 10_000


def test_rows_of_slow_conversions_keep_their_stamps():
    true_ns, bus_ns = (32 * at_ns for at_ns in conversions())
    trace = stamped(true_ns, bus_ns)
    assert evenly_stamped(trace) is trace


def test_a_gap_and_its_lost_conversions_move_with_the_samples_around_them():
    true_ns, bus_ns = conversions()
    trace = lossy(stamped(true_ns, bus_ns), 4 * ROW - 7, 12)
    even = evenly_stamped(trace)
    (before,), (after,) = trace.gaps, even.gaps
    assert np.abs(even.meter_ns - true_ns)[even.good].max() < 10_000
    assert after.start_meter_ns == pytest.approx(true_ns[4 * ROW - 8] + PERIOD_NS / 2, abs=30_000 + BREAK_NS // 24)
    assert after.charge_c / after.duration_ns == pytest.approx(before.charge_c / before.duration_ns)
    assert after.duration_ns != before.duration_ns
    assert np.all(np.diff(even.meter_ns) > 0)


def test_a_trace_without_bus_readings_is_not_made_of_such_rows():
    trace = replace(stamped(*conversions()), bus=None)
    assert evenly_stamped(trace) is trace


def test_a_row_that_is_not_even_keeps_its_stamps_and_spoils_no_other():
    true_ns, bus_ns = conversions()
    broken = slice(5 * ROW + ROW // 2, 6 * ROW)
    true_ns[broken] += 900_000
    true_ns[6 * ROW :] += 900_000
    bus_ns[6:] += 900_000
    trace = stamped(true_ns, bus_ns)
    row, even = slice(5 * ROW, 6 * ROW), evenly_stamped(trace)
    assert np.array_equal(even.meter_ns[row], trace.meter_ns[row])
    assert np.abs(np.delete(even.meter_ns - true_ns, row)).max() < 10_000


def test_rows_are_the_same_in_whatever_steps_they_are_calculated(monkeypatch):
    trace = lossy(stamped(*conversions()), 700, 40)
    at_once = evenly_stamped(trace)
    monkeypatch.setattr(conversion_rows, "_TOGETHER", 3)
    assert np.abs(evenly_stamped(trace).meter_ns - at_once.meter_ns).max() <= 1


@given(st.lists(st.integers(1, 10**6), min_size=2, max_size=60), st.lists(st.integers(0, 4 * 10**7), max_size=6))
def test_the_order_of_samples_stays_whatever_their_distances(steps_ns, readings_ns):
    meter_ns = np.cumsum(steps_ns)
    held = PowerTrace.of(meter_ns, np.full(meter_ns.size, 0.5), np.full(meter_ns.size, 5.0))
    bus_ns = np.unique(np.array(readings_ns, np.int64))
    even = evenly_stamped(replace(held, bus=BusReadings(bus_ns, np.full(bus_ns.size, 5.0))))
    assert np.all(np.diff(even.meter_ns) > 0)


def test_a_record_gives_the_same_stamps_and_gaps_before_and_after_its_parquet_files(tmp_path):
    true_ns, bus_ns = conversions()
    trace = lossy(stamped(true_ns, bus_ns), 700, 40)
    journal = TraceJournal(tmp_path)
    for at_ns in bus_ns.tolist():
        journal.append_bus(at_ns, 5.0)
    for part in (slice(0, 700), slice(740, None)):
        if part.start:
            journal.append_gap(trace.gaps[0])
        journal.append_samples(trace.meter_ns[part], trace.current_a[part], trace.voltage_v[part])
    journal.close()
    streamed = read_trace(tmp_path)
    to_parquet(tmp_path)
    stored = read_trace(tmp_path)
    assert np.array_equal(streamed.meter_ns, evenly_stamped(trace).meter_ns)
    assert np.array_equal(stored.meter_ns, streamed.meter_ns)
    assert stored.gaps == streamed.gaps != trace.gaps
