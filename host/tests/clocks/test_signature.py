"""Load signatures: found where they are, to microseconds, and refused where they are not. SIMULATED traces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opjoule.base.errors import AlignmentError
from opjoule.clocks.signature import TAPS, LoadPattern, fit_signature, maximal_sequence, signature_chips
from validation.signature_alignment import LIMITS_US, trial
from validation.synthetic_board import CHIP_NS, INA219, MONSOON, random_run, watch


@pytest.mark.parametrize("order", sorted(TAPS))
def test_a_maximal_sequence_resembles_itself_at_no_shift(order):
    signs = 2 * maximal_sequence(order).astype(int) - 1
    assert signs.size == 2**order - 1
    assert {int(signs @ np.roll(signs, shift)) for shift in range(1, signs.size)} == {-1}


def test_signatures_hardly_resemble_each_other():
    signs = [2 * signature_chips(number).astype(int) - 1 for number in range(0, 200, 9)]
    for index, first in enumerate(signs):
        for second in signs[index + 1 :]:
            correlation = np.correlate(np.concatenate([first, first]), second) / first.size
            assert np.abs(correlation).max() < 0.35


@given(st.integers(0, 200), st.floats(0, 5e-3))
@settings(max_examples=6, deadline=None)
def test_the_integral_of_a_pattern_is_that_of_its_lagging_load(number, lag_s):
    pattern = LoadPattern.of_chips(signature_chips(number, 5), 10_000_000, 10**12)
    step_s = 2e-5
    time_s = np.arange(0, 0.45, step_s)
    load = (np.searchsorted((pattern.change_ns - pattern.start_ns) * 1e-9, time_s, side="right") % 2).astype(float)
    value, kept = np.zeros(time_s.size + 1), np.exp(-step_s / lag_s) if lag_s > 1e-5 else 0.0
    for index, level in enumerate(load.tolist()):
        value[index + 1] = level + (value[index] - level) * kept
    numeric = np.cumsum((value[:-1] + value[1:]) / 2) * step_s if kept else np.cumsum(load) * step_s
    assert pattern.integral_s(time_s + step_s, lag_s) == pytest.approx(numeric, abs=3e-5)


@pytest.mark.parametrize("meter", [INA219, MONSOON], ids=lambda meter: meter.name)
def test_random_runs_align_within_the_limit(meter):
    """Two of the trials of host/validation/signature_alignment.py; each also looks for an unplayed pattern."""
    trials = [trial(seed, meter) for seed in range(2)]
    assert max(one.error_us for one in trials) <= LIMITS_US[meter.name]
    assert sum(one.wrong_locks for one in trials) == 0


@pytest.fixture(scope="module")
def recorded():
    rng = np.random.default_rng(77)
    run = random_run(rng, 5.0)
    return run, *watch(rng, run, INA219, 40.0)


def test_one_pattern_is_enough_near_it_and_less_certain_far_away(recorded):
    run, meter_ns, power_w, truth = recorded
    fitted = fit_signature(meter_ns, power_w, run.patterns[:1], INA219.conversion_ns).clock_map
    at = run.patterns[0].start_ns
    assert abs(fitted.to_target(at) - truth.to_target(at)) < 100_000
    assert fitted.u_ns(at + 60 * 10**9) > 2 * fitted.u_ns(at)


def test_the_quality_says_what_was_seen(recorded):
    run, meter_ns, power_w, _ = recorded
    fit = fit_signature(meter_ns, power_w, run.patterns, INA219.conversion_ns)
    assert 0.5 < fit.peak <= 1.0 and fit.rival < 0.5
    assert 0.4 < fit.step_w < 3.6 and 0 < fit.lag_ns < 300_000
    assert fit.clock_map.method == "signature"


def test_a_pattern_played_twice_is_refused(recorded):
    """The second pattern has the first one's number: both places fit it."""
    run, meter_ns, power_w, _ = recorded
    twice = np.concatenate([power_w, power_w])
    doubled_ns = np.concatenate([meter_ns, meter_ns + (meter_ns[-1] - meter_ns[0]) + INA219.period_ns])
    with pytest.raises(AlignmentError, match="one place"):
        fit_signature(doubled_ns, twice, run.patterns[:1], INA219.conversion_ns)


def test_patterns_of_another_run_are_refused(recorded):
    run, meter_ns, power_w, _ = recorded
    first, second = run.patterns
    moved = LoadPattern(second.change_ns + 10**9)
    with pytest.raises(AlignmentError, match="one run"):
        fit_signature(meter_ns, power_w, [first, moved], INA219.conversion_ns)


def test_a_steady_or_short_trace_and_no_pattern_are_refused(recorded):
    run, meter_ns, power_w, _ = recorded
    steady = np.full(power_w.size, 3.0)
    with pytest.raises(AlignmentError, match="not found"):
        fit_signature(meter_ns, steady, run.patterns, INA219.conversion_ns)
    with pytest.raises(AlignmentError, match="record longer"):
        fit_signature(meter_ns[:1000], power_w[:1000], run.patterns, INA219.conversion_ns)
    with pytest.raises(AlignmentError, match="no pattern"):
        fit_signature(meter_ns, power_w, [], INA219.conversion_ns)


def test_a_pattern_needs_ordered_pairs_of_changes():
    with pytest.raises(ValueError, match="even number"):
        LoadPattern(np.array([1, 2, 3]))
    assert LoadPattern.of_chips(np.array([0, 1, 1, 0], np.int8), CHIP_NS, 0).change_ns.tolist() == [
        CHIP_NS,
        3 * CHIP_NS,
    ]
