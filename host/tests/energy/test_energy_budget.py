"""The stated interval covers the truth in at least 95 of 100 synthetic measurements; budgets add up."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import accumulate

import msgspec
import numpy as np
import pytest
from opjoule.base.coverage import student_t
from opjoule.base.errors import WindowError
from opjoule.energy.baseline import idle_power, marginal_energy
from opjoule.energy.budget import PARTS, Budget, step_u
from opjoule.energy.error_bounds import CURRENT, SHUNT, ErrorBounds
from opjoule.energy.repeats import long_block_errors, repeat_standard_u, standard_error
from opjoule.energy.sensor_calibration import SensorCalibration
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.window import Window, window_energy_j
from opjoule.meters.chips import ina219_breakout
from opjoule.runs.record.json_file import plain

SENSOR = ina219_breakout()
STEP_NS = 133_000
"""Grid of the true current: eight points in one shunt+bus pair of conversions."""
SEEN, PAIR = 4, 8


def true_power(rng, seconds, idle_w, busy_w, idle_share):
    """A board's true power [W] on the grid: idle, then bursts of random length, then idle."""
    count = int(seconds * 1e9 / STEP_NS)
    power_w = np.full(count, idle_w)
    first, last = int(count * idle_share), int(count * (1 - idle_share))
    at = first
    while at < last:
        busy, rest = (rng.integers(2, 400, 2)).tolist()
        power_w[at : min(at + busy, last)] = busy_w
        at += busy + rest
    return power_w + rng.normal(0, 0.05, count)


def measured(rng, power_w, voltage_v, sensor):
    """What an INA219 in shunt+bus mode makes of it: gain and offset errors, half seen, rounded to steps."""
    pairs = power_w.size // PAIR
    seen_a = (power_w / voltage_v)[: pairs * PAIR].reshape(pairs, PAIR)[:, :SEEN].mean(axis=1)
    for source in (SHUNT, CURRENT):
        seen_a *= 1 + rng.uniform(-1, 1) * sensor.gain_errors_max.get(source, 0.0)
    seen_a += rng.uniform(-1, 1) * sensor.current_offset_max_a
    bus_v = voltage_v * (1 + rng.uniform(-1, 1) * sensor.voltage_gain_error_max)
    current_a = np.rint(seen_a / sensor.current_step_a) * sensor.current_step_a
    voltage = np.full(pairs, np.rint(bus_v / sensor.voltage_step_v) * sensor.voltage_step_v)
    centre_ns = (np.arange(pairs, dtype=np.int64) * PAIR + SEEN // 2) * STEP_NS
    return PowerTrace.of(centre_ns, current_a, voltage)


def trial(seed, sensor):
    """Energy, marginal energy and their truths of one random measurement."""
    rng = np.random.default_rng(seed)
    seconds, idle_share = rng.uniform(3, 12), 0.25
    idle_w, busy_w = rng.uniform(1.5, 3.0), rng.uniform(3.0, 6.5)
    power_w = true_power(rng, seconds, idle_w, busy_w, idle_share)
    trace = measured(rng, power_w, rng.uniform(4.9, 5.2), sensor)
    running = np.concatenate([[0.0], np.cumsum(power_w)]) * STEP_NS * 1e-9
    start, end = int(power_w.size * idle_share), int(power_w.size * (1 - idle_share))
    u_ns = 1e5
    shift_ns = round(rng.normal(0, u_ns))
    window = Window(start * STEP_NS + shift_ns, end * STEP_NS + shift_ns, u_ns)
    edge = 50
    before = Window(edge * STEP_NS, (start - edge) * STEP_NS, u_ns)
    after = Window((end + edge) * STEP_NS, (power_w.size - 2 * edge) * STEP_NS, u_ns)
    run = window_energy_j(trace, window, sensor)
    marginal = marginal_energy(run, idle_power(trace, [before, after], sensor), sensor)
    truth_j = float(running[end] - running[start])
    return run, marginal, truth_j, truth_j - idle_w * (end - start) * STEP_NS * 1e-9


@pytest.fixture(scope="module")
def spec_sheet_trials():
    return [trial(seed, SENSOR) for seed in range(100)]


CALIBRATED = ErrorBounds(
    gain_errors_max={},
    current_offset_max_a=0.0,
    current_step_a=1e-4,
    voltage_step_v=4e-3,
    current_max_a=3.2,
    seen_fraction=0.5,
    clock_error_max=0.0,
    calibration=SensorCalibration("ideal"),
)


@pytest.fixture(scope="module")
def ideal_trials():
    """Without gain and offset nothing hides a mistake in quantisation, sampling, alignment or baseline."""
    return [trial(seed, CALIBRATED) for seed in range(1000, 1100)]


@pytest.mark.parametrize("trials", ["spec_sheet_trials", "ideal_trials"])
def test_energy_intervals_cover_the_truth(trials, request):
    results = request.getfixturevalue(trials)
    assert sum(run.energy.covers(truth) for run, _, truth, _ in results) >= 95


@pytest.mark.parametrize("trials", ["spec_sheet_trials", "ideal_trials"])
def test_marginal_energy_intervals_cover_the_truth(trials, request):
    results = request.getfixturevalue(trials)
    assert sum(marginal.energy.covers(truth) for _, marginal, _, truth in results) >= 95


def test_intervals_are_not_wide_without_need(ideal_trials):
    """The typical error is at least an eighth of the stated u: covering the truth is not bought with width."""
    ratios = [abs(run.energy.value - truth) / run.energy.u for run, _, truth, _ in ideal_trials]
    assert float(np.sqrt(np.mean(np.square(ratios)))) > 1 / 8


def test_offset_cancels_in_marginal_energy_and_gain_scales_with_the_difference(spec_sheet_trials):
    for run, marginal, _, _ in spec_sheet_trials[:20]:
        assert marginal.budget.parts["offset"] < 0.02 * run.budget.parts["offset"]
        assert marginal.budget.parts["gain"] == pytest.approx(
            SENSOR.power_gain_u * abs(marginal.energy.value), rel=5e-3
        )


def test_drift_of_idle_power_enters_the_baseline():
    """2.0 W before, 2.2 W after: standard uncertainty at least 0.2 / sqrt(12) W."""
    rng = np.random.default_rng(4)
    current_a = np.concatenate([np.full(3000, 0.4), np.full(3000, 0.8), np.full(3000, 0.44)])
    current_a += rng.normal(0, 0.002, current_a.size)
    trace = PowerTrace.of(np.arange(9000) * 1_064_000, current_a, np.full(9000, 5.0))
    windows = [Window(10**8, 3 * 10**9, 0.0), Window(6_500_000_000, 9_500_000_000, 0.0)]
    idle = idle_power(trace, windows, SENSOR)
    assert idle.power.value == pytest.approx(2.1, abs=1e-3)
    assert idle.standard_u_w == pytest.approx(0.2 / math.sqrt(12), rel=0.01)
    run = window_energy_j(trace, Window(3_300_000_000, 6_300_000_000, 0.0), SENSOR)
    marginal = marginal_energy(run, idle, SENSOR)
    strays_j = idle.noise_w_root_s * math.sqrt(3.0)
    assert marginal.budget.parts["baseline"] == pytest.approx(math.hypot(idle.standard_u_w * 3.0, strays_j))
    assert 0 < strays_j < 0.01
    assert "baseline" not in marginal.budget.absent


def test_idle_power_takes_one_or_two_windows():
    trace = PowerTrace.of(np.arange(10) * 1_064_000, np.ones(10), np.ones(10))
    with pytest.raises(WindowError, match="windows, got 0"):
        idle_power(trace, [], SENSOR)


def test_standard_error_respects_autocorrelation():
    """An AR(1) series of correlation 0.95: the naive error is 6 times too small, the block error is not."""
    rho, count, means, errors = 0.95, 4096, [], []
    for seed in range(40):
        steps = np.random.default_rng(seed).normal(0, 1, count)
        series = np.empty(count)
        series[0] = steps[0] / math.sqrt(1 - rho**2)
        for index in range(1, count):
            series[index] = rho * series[index - 1] + steps[index]
        means.append(series.mean())
        errors.append(standard_error(series))
    assert float(np.mean(errors)) == pytest.approx(float(np.std(means)), rel=0.4)


def test_few_long_blocks_hold_the_mean_of_what_stays_correlated_for_a_tenth_of_the_stretch():
    """An AR(1) series; of two stretches together, and of one, which says less and so is wider."""
    rng = np.random.default_rng(3)
    held, wider, count, rho = [], [], 1000, 0.98
    for _ in range(200):
        stretches = []
        for _ in range(2):
            steps = rng.normal(0, 1, count)
            steps[0] /= math.sqrt(1 - rho**2)
            stretches.append(np.array(list(accumulate(steps.tolist(), lambda now, step: rho * now + step))))
        errors = long_block_errors(stretches)
        held += [abs(float(stretch.mean())) <= 2 * error for stretch, error in zip(stretches, errors, strict=True)]
        wider.append(long_block_errors(stretches[:1])[0] / errors[0])
    assert 0.88 <= np.mean(held) <= 0.97
    assert np.mean(wider) > 1.05
    assert long_block_errors([np.ones(4), np.arange(5.0)])[0] == 0.0


def test_a_budget_names_every_part_and_gives_a_reason_for_an_absent_one():
    parts = dict.fromkeys(PARTS[:9], 1.0)
    with pytest.raises(ValueError, match="budget must name"):
        Budget(parts, {})
    budget = Budget(parts, {"baseline": "idle power is not subtracted", "repeats": "one run"})
    assert budget.standard_u == pytest.approx(3)
    assert budget.energy(10.0).u == pytest.approx(2 * 3)
    entries = json.loads(json.dumps(plain(budget.stated())))
    assert list(entries) == list(PARTS)
    assert sum(entries[part]["share"] for part in PARTS[:9]) == pytest.approx(1.0)
    assert entries["repeats"] == {"value": None, "u": None, "unit": "J", "reason": "one run"}
    assert budget.with_part("repeats", 2.0).standard_u == pytest.approx(math.sqrt(13))


def test_the_spread_of_repeats_is_widened_for_few_runs():
    values = [10.0, 12.0, 11.0]
    assert 2 * repeat_standard_u(values) == pytest.approx(4.53 * 1.0 / math.sqrt(3))
    assert 2.11 < student_t(22) < 2.13 and student_t(10**6) < 2.001
    with pytest.raises(ValueError, match="at least two"):
        repeat_standard_u([1.0])


def test_a_calibration_replaces_the_bounds_of_the_data_sheet():
    exact = replace(SENSOR, calibration=SensorCalibration("c1"))
    assert exact.voltage_u_v(5.0) == 0.0 < SENSOR.voltage_u_v(5.0)
    assert msgspec.json.decode(msgspec.json.encode(exact), type=ErrorBounds) == exact


def test_a_quiet_signal_keeps_the_error_of_its_step_whole_and_noise_takes_it_away():
    """A value that could lie anywhere within a step is off by lsb / sqrt(12) in the mean of all places."""
    lsb, rng = 4e-3, np.random.default_rng(1)
    places = 5.0 + lsb * (np.arange(100) / 100)
    rounded = np.rint(places / lsb) * lsb
    assert float(np.sqrt(np.mean((rounded - places) ** 2))) == pytest.approx(lsb / math.sqrt(12), rel=0.01)
    assert step_u(np.full(1000, 5.0), lsb, 0.0) == pytest.approx(lsb / math.sqrt(12))
    errors = []
    for place in places:
        true = place + rng.normal(0, 0.6 * lsb, 4000)
        noisy = np.rint(true / lsb) * lsb
        errors.append(float(noisy.mean() - true.mean()))
        stated = step_u(noisy, lsb, float(noisy.var(ddof=1)))
    assert float(np.sqrt(np.mean(np.square(errors)))) < 1.2 * stated < lsb / 20


def test_a_signal_between_two_levels_has_two_steps_errors_not_noise():
    """Levels apart by many steps do not smooth the rounding: their errors are two, each of a quiet signal."""
    levels = np.tile(np.repeat([5.0, 4.8], 40), 20)
    assert step_u(levels, 4e-3, 0.0) == pytest.approx(4e-3 / math.sqrt(24), rel=0.01)


def test_codes_may_be_cut_or_rounded_unless_a_calibration_knows():
    """Half a step too low in the mean, or not: rectangular would be too narrow, both are held."""
    assert SENSOR.voltage_rounding_u_v == pytest.approx(4e-3 / 2 / math.sqrt(2))
    assert SENSOR.current_offset_u_a > SENSOR.current_offset_max_a / math.sqrt(3)
    assert CALIBRATED.voltage_u_v(5.0) == 0.0


def shunt_rows(current_a, slot_periods=2.15):
    """A trace of back-to-back conversions with a slot for the bus after each 128, at 5 V."""
    number = np.arange(current_a.size)
    centre_ns = ((number + (slot_periods - 1) * (number // 128)) * 532_000).astype(np.int64)
    return PowerTrace.of(centre_ns, current_a, np.full(current_a.size, 5.0))


def test_the_part_of_the_time_that_is_seen_is_what_was_converted():
    trace = shunt_rows(np.full(128 * 60, 0.6))
    energy = window_energy_j(trace, Window(int(1e8), int(4e9), 0.0), replace(CALIBRATED, seen_fraction=1.0))
    assert energy.seen_share == pytest.approx(128 / (128 + 1.15), abs=5e-4)
    pairs = PowerTrace.of(np.arange(4000) * 1_064_000, np.full(4000, 0.6), np.full(4000, 5.0))
    assert window_energy_j(pairs, Window(10**8, 4 * 10**9, 0.0), SENSOR).seen_share == pytest.approx(0.5)


def test_the_sampling_part_of_a_steady_load_is_the_same_in_each_window():
    """Steps about each 11 ms: about three in four stretches of 16 samples hold one, by chance a little more or less."""
    rng = np.random.default_rng(2)
    lengths = rng.integers(17, 27, 3000)
    current_a = np.repeat(np.where(np.arange(lengths.size) % 2, 0.4, 1.2), lengths)
    current_a = np.concatenate([np.full(4000, 0.4), current_a]) + rng.normal(0, 2e-5, 4000 + current_a.size)
    trace, sensor = shunt_rows(current_a), replace(CALIBRATED, seen_fraction=1.0)
    starts_ns = [int(3e9 + n * 1e9) for n in range(25)]
    parts = [
        window_energy_j(trace, Window(start, start + 10**9, 0.0), sensor).budget.parts["quantisation"]
        for start in starts_ns
    ]
    assert max(parts) < 1.5 * min(parts)
    assert max(parts) < 1e-3 * 4.0
