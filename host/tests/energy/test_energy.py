"""Energy of windows: exact arithmetic of cells, edges, gaps and long traces."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opjoule.base.errors import GapError, WindowError
from opjoule.base.units import Cause
from opjoule.energy.baseline import idle_power, marginal_energy
from opjoule.energy.cells import Cells
from opjoule.energy.step_integral import StepIntegral
from opjoule.energy.trace.power_trace import Gap, PowerTrace
from opjoule.energy.window import Window, window_energy_j
from opjoule.meters.chips import ina219_breakout

SENSOR = ina219_breakout()
PERIOD_NS = 1_064_000


def trace_of(current_a, voltage_v=5.0, start_ns=0, gaps=(), period_ns=PERIOD_NS):
    current_a = np.asarray(current_a, float)
    meter_ns = start_ns + period_ns * np.arange(current_a.size)
    voltage_v = np.where(np.isnan(current_a), np.nan, voltage_v)
    return PowerTrace.of(meter_ns, current_a, voltage_v, gaps)


def energy_j(trace, start_ns, end_ns, **limits):
    return window_energy_j(trace, Window(start_ns, end_ns, 0.0), SENSOR, **limits).energy.value


currents = st.lists(st.floats(0.0, 3.2, allow_nan=False), min_size=40, max_size=80)
fractions = st.floats(0.0, 1.0)


@given(currents, st.tuples(fractions, fractions, fractions))
@settings(max_examples=60, deadline=None)
def test_energy_adds_over_any_split_of_the_window(current_a, cuts):
    """The two parts of a window, cut anywhere, hold the energy of the whole."""
    trace = trace_of(current_a, start_ns=10**15)
    cells = Cells.of(trace)
    start, middle, end = (cells.start_ns + round(cut * (cells.end_ns - cells.start_ns)) for cut in sorted(cuts))
    if start < middle < end:
        parts = energy_j(cells, start, middle) + energy_j(cells, middle, end)
        assert parts == pytest.approx(energy_j(cells, start, end), rel=1e-12, abs=1e-15)


@given(currents, st.floats(0.1, 3.0), st.tuples(fractions, fractions))
@settings(max_examples=60, deadline=None)
def test_energy_scales_with_current(current_a, factor, cuts):
    plain, scaled = trace_of(current_a), trace_of(np.array(current_a) * factor)
    cells = Cells.of(plain)
    start, end = (cells.start_ns + round(cut * (cells.end_ns - cells.start_ns)) for cut in sorted(cuts))
    if start < end:
        assert energy_j(scaled, start, end) == pytest.approx(factor * energy_j(plain, start, end), rel=1e-12, abs=1e-15)


@given(currents, st.tuples(fractions, fractions))
@settings(max_examples=60, deadline=None)
def test_window_energy_is_the_exact_sum_of_cells_and_parts_of_cells(current_a, cuts):
    """Against rational arithmetic on the definition: each sample holds from midpoint to midpoint."""
    trace = trace_of(current_a)
    cells = Cells.of(trace)
    start, end = (cells.start_ns + round(cut * (cells.end_ns - cells.start_ns)) for cut in sorted(cuts))
    if start == end:
        return
    total = Fraction(0)
    for centre, current in zip(trace.meter_ns.tolist(), trace.current_a.tolist(), strict=True):
        overlap = min(end, centre + PERIOD_NS // 2) - max(start, centre - PERIOD_NS // 2)
        total += Fraction(current) * 5 * max(overlap, 0)
    assert energy_j(trace, start, end) == pytest.approx(float(total / 10**9), rel=1e-12, abs=1e-15)


def test_uneven_samples_meet_half_way():
    trace = PowerTrace.of([0, 1_000_000, 4_000_000], [1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
    cells = Cells.of(trace)
    assert cells.bounds_ns.tolist() == [-1_000_000, 500_000, 2_500_000, 5_000_000]
    assert float(cells.power.between(500_000, 2_500_000)) == pytest.approx(2.0 * 2e-3)


def test_a_second_after_ten_hours_is_as_exact_as_one_at_the_start():
    """Against exact summation: a plain running sum of 150 kJ would be off by 1e-11 of the last joules."""
    count = 3_400_000
    values = np.random.default_rng(2).uniform(2.0, 6.0, count)
    bounds_ns = 10 * PERIOD_NS * np.arange(count + 1, dtype=np.int64)
    integral = StepIntegral(bounds_ns, values)
    cell_s = 10 * PERIOD_NS * 1e-9
    last = float(integral.between(bounds_ns[-601], bounds_ns[-1]))
    assert last == pytest.approx(math.fsum(values[-600:] * cell_s), rel=2e-14)
    assert float(integral.between(0, bounds_ns[-1])) == pytest.approx(math.fsum(values * cell_s), rel=2e-14)


def test_many_windows_at_once_agree_with_one_by_one():
    rng = np.random.default_rng(3)
    cells = Cells.of(trace_of(rng.uniform(0.5, 1.0, 10_000)))
    edges = np.sort(rng.integers(cells.start_ns, cells.end_ns, (500, 2)), axis=1)
    together = cells.power.between(edges[:, 0], edges[:, 1])
    alone = [float(cells.power.between(start, end)) for start, end in edges.tolist()]
    assert together.tolist() == alone


def with_gap(current_a, first, lost, charge=True):
    """The trace without samples first .. first + lost - 1, and the gap that the meter would report."""
    current_a = np.asarray(current_a, float)
    mean_a = float(current_a[first : first + lost].mean()) if charge else None
    gap = Gap.between((first - 1) * PERIOD_NS, (first + lost) * PERIOD_NS, lost, "frame lost", mean_a)
    holed = current_a.copy()
    holed[first : first + lost] = np.nan
    return trace_of(holed, gaps=[gap])


@given(currents, st.integers(1, 30), st.integers(1, 8))
@settings(max_examples=80, deadline=None)
def test_a_gap_with_recovered_charge_loses_no_energy(current_a, first, lost):
    whole, holed = trace_of(current_a), with_gap(current_a, first, lost)
    start, end = Cells.of(whole).start_ns, Cells.of(whole).end_ns
    result = window_energy_j(holed, Window(start, end, 0.0), SENSOR)
    assert result.energy.value == pytest.approx(energy_j(whole, start, end), rel=1e-12, abs=1e-15)
    assert result.budget.parts["loss"] == 0.0 and result.lost_s == 0.0 and result.lost_samples == lost


@pytest.mark.parametrize("first", [0, 95])
def test_a_recovered_gap_at_an_end_of_the_trace_belongs_to_it(first):
    """The first or the last frame was lost, its charge was not."""
    current_a = np.random.default_rng(first).uniform(0.2, 1.0, 100)
    gap = Gap(
        round((first - 0.5) * PERIOD_NS),
        round((first + 4.5) * PERIOD_NS),
        5,
        float(current_a[first : first + 5].sum()) * PERIOD_NS * 1e-9,
        "frame lost",
    )
    kept = np.delete(np.arange(100), slice(first, first + 5))
    holed = PowerTrace.of(kept * PERIOD_NS, current_a[kept], np.full(95, 5.0), [gap])
    whole = Cells.of(trace_of(current_a))
    assert (Cells.of(holed).start_ns, Cells.of(holed).end_ns) == (whole.start_ns, whole.end_ns)
    assert energy_j(holed, whole.start_ns, whole.end_ns) == pytest.approx(
        energy_j(whole, whole.start_ns, whole.end_ns), rel=1e-12
    )


def test_a_window_edge_inside_a_recovered_gap_has_a_bounded_uncertainty():
    """A burst somewhere in a gap of known charge: either side of the edge, the interval covers it."""
    current_a = np.full(200, 0.5)
    current_a[::7] = 1.5
    for burst in range(100, 110):
        varied = current_a.copy()
        varied[100:110] = 0.5
        varied[burst] = 1.5
        holed = with_gap(varied, 100, 10)
        result = window_energy_j(holed, Window(0, 105 * PERIOD_NS, 0.0), SENSOR)
        truth = energy_j(trace_of(varied), 0, 105 * PERIOD_NS)
        assert abs(result.energy.value - truth) <= 2 * result.budget.parts["loss"]
        assert result.budget.parts["loss"] > 0


def test_bus_readings_inside_a_recovered_gap_are_in_its_interval():
    """Each takes the place of three conversions in 32, and the load steps every 7 of them."""
    place = np.flatnonzero(np.arange(3200) % 32 < 29)
    lost = (place >= 1000) & (place < 1800)
    first, last = place[lost][0], place[lost][-1]
    errors = []
    for seed in range(40):
        current_a = np.repeat(np.random.default_rng(seed).uniform(0.3, 1.4, 500), 7)[:3200]
        around = ((first - 1) * PERIOD_NS, (last + 1) * PERIOD_NS)
        gap = Gap.between(*around, int(lost.sum()), "frame lost", float(current_a[place[lost]].mean()))
        kept = place[~lost]
        holed = PowerTrace.of(kept * PERIOD_NS, current_a[kept], np.full(kept.size, 5.0), [gap])
        result = window_energy_j(holed, Window(10 * PERIOD_NS, 3150 * PERIOD_NS, 0.0), SENSOR)
        error_a = gap.charge_c / (gap.duration_ns * 1e-9) - current_a[first : last + 1].mean()
        errors.append(5.0 * error_a * gap.duration_ns * 1e-9 / result.budget.parts["loss"])
    assert 0.6 < np.sqrt(np.mean(np.square(errors))) < 1.2


def test_a_gap_without_charge_is_bounded_by_what_flowed_around_it():
    """Square wave between 0.5 and 1.5 A: whatever flowed in the gap lies inside the stated bounds."""
    current_a = np.where(np.arange(400) // 5 % 2, 1.5, 0.5)
    for first in range(150, 165):
        result = window_energy_j(with_gap(current_a, first, 10, charge=False), Window(0, 399 * PERIOD_NS, 0.0), SENSOR)
        lost_j = float(np.sum(current_a[first : first + 10])) * 5.0 * PERIOD_NS * 1e-9
        assert result.lost_bounds_j[0] == pytest.approx(10 * PERIOD_NS * 1e-9 * 5 * 0.5)
        assert result.lost_bounds_j[1] == pytest.approx(10 * PERIOD_NS * 1e-9 * 5 * 1.5)
        assert result.lost_bounds_j[0] <= lost_j <= result.lost_bounds_j[1]
        truth = energy_j(trace_of(current_a), 0, 399 * PERIOD_NS)
        assert abs(result.energy.value - truth) <= 2 * result.budget.parts["loss"]


def test_a_gap_with_too_few_samples_around_is_bounded_by_the_range_of_the_sensor():
    current_a = np.full(24, 0.5)
    result = window_energy_j(with_gap(current_a, 10, 2, charge=False), Window(0, 23 * PERIOD_NS, 0.0), SENSOR)
    assert result.lost_bounds_j == pytest.approx((0.0, 2 * PERIOD_NS * 1e-9 * 5 * 3.2))


def test_lost_rows_that_no_gap_explains_are_a_gap_all_the_same():
    current_a = np.full(400, 0.5)
    current_a[100:103] = np.nan
    result = window_energy_j(trace_of(current_a), Window(0, 399 * PERIOD_NS, 0.0), SENSOR)
    assert result.lost_samples == 3
    assert result.lost_s == pytest.approx(3 * PERIOD_NS * 1e-9, rel=1e-6)


def test_too_much_loss_is_refused_with_the_figure():
    holed = with_gap(np.full(400, 0.5), 100, 100, charge=False)
    with pytest.raises(GapError, match=r"25\.\d % of window .* limit 10\.0 %"):
        energy_j(holed, 0, 399 * PERIOD_NS)


@pytest.mark.parametrize(("start", "end"), [(-PERIOD_NS, 10), (0, 400 * PERIOD_NS), (10, 10), (20, 10)])
def test_a_window_that_the_trace_does_not_cover_is_refused(start, end):
    with pytest.raises(WindowError, match="window"):
        energy_j(trace_of(np.full(400, 0.5)), start, end)


def test_a_trace_without_samples_is_refused():
    with pytest.raises(WindowError, match="0 good samples"):
        energy_j(PowerTrace.of([], [], []), 0, 1)


def test_alignment_uncertainty_follows_the_power_step_at_the_edges():
    """1 ms of u_time at an edge with 2.5 W on one side and 5 W on the other: 2.5 mJ."""
    current_a = np.concatenate([np.full(1000, 0.5), np.full(1000, 1.0)])
    window = Window(500 * PERIOD_NS, 1500 * PERIOD_NS, 1e6)
    part = window_energy_j(trace_of(current_a), window, SENSOR).budget.parts["alignment"]
    assert part == pytest.approx(2.5e-3, rel=0.01)
    quiet = window_energy_j(trace_of(np.full(2000, 0.5)), window, SENSOR).budget.parts["alignment"]
    assert quiet == pytest.approx(0.0, abs=1e-9)


def test_gain_and_offset_do_not_shrink_with_time():
    """Ten times the window: ten times the gain and offset parts, and their share of the energy unchanged."""
    rng = np.random.default_rng(1)
    trace = trace_of(0.8 + 0.05 * rng.standard_normal(20_000))
    short = window_energy_j(trace, Window(0, 10**9, 0.0), SENSOR)
    long = window_energy_j(trace, Window(0, 10**10, 0.0), SENSOR)
    for part in ("gain", "offset"):
        assert long.budget.parts[part] / short.budget.parts[part] == pytest.approx(10, rel=0.01)
    assert long.budget.parts["quantisation"] / short.budget.parts["quantisation"] == pytest.approx(
        math.sqrt(10), rel=0.25
    )
    assert short.budget.parts["gain"] / short.energy.value == pytest.approx(
        math.sqrt(0.01**2 + 0.005**2 + 0.005**2 + (210e-6 * 15) ** 2) / math.sqrt(3), rel=3e-3
    )


def clipped_trace(clipped, gaps=()):
    """100 samples of 1 A; `clipped`: numbers of those at the end of the range."""
    marks = np.zeros(100, bool)
    marks[list(clipped)] = True
    return PowerTrace.of(np.arange(100) * PERIOD_NS, np.ones(100), np.full(100, 5.0), gaps, marks)


def test_clipped_samples_make_the_energy_a_lower_bound_without_an_uncertainty():
    result = window_energy_j(clipped_trace([50, 51]), Window(0, 99 * PERIOD_NS, 0.0), SENSOR)
    assert result.clipped_samples == 2
    assert result.clipped_s == pytest.approx(2 * PERIOD_NS * 1e-9)
    assert result.energy.u is None
    assert result.energy.cause is Cause.LOWER_BOUND and "2 samples" in result.energy.reason


def test_clipped_samples_outside_the_window_change_nothing():
    result = window_energy_j(clipped_trace([50, 51]), Window(0, 40 * PERIOD_NS, 0.0), SENSOR)
    assert (result.clipped_samples, result.clipped_s) == (0, 0.0)
    assert result.energy.u is not None


def test_clipped_samples_of_a_lost_frame_count_too():
    """The charge of a lost frame is a sum of codes: what was clipped in it bounds it from below as well."""
    end_ns = 100 * PERIOD_NS + 9 * PERIOD_NS
    gap = Gap.between(99 * PERIOD_NS, 110 * PERIOD_NS, 10, "frame lost", 1.0, clipped_samples=3)
    whole = clipped_trace([])
    after = 110 + np.arange(50)
    trace = PowerTrace.of(np.concatenate([whole.meter_ns, after * PERIOD_NS]), np.ones(150), np.full(150, 5.0), [gap])
    result = window_energy_j(trace, Window(0, end_ns + 20 * PERIOD_NS, 0.0), SENSOR)
    assert result.clipped_samples == 3 and result.clipped_s == pytest.approx(gap.duration_ns * 1e-9)
    assert result.energy.u is None


def test_a_clipped_idle_window_leaves_the_marginal_energy_without_an_uncertainty():
    trace = clipped_trace([10])
    idle = idle_power(trace, [Window(0, 30 * PERIOD_NS, 0.0)], SENSOR)
    run = window_energy_j(trace, Window(40 * PERIOD_NS, 90 * PERIOD_NS, 0.0), SENSOR)
    assert idle.clipped_samples == 1 and run.clipped_samples == 0
    assert marginal_energy(run, idle, SENSOR).energy.u is None
