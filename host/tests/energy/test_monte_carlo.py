"""The budget against a Monte Carlo: distributions put through calibration, correction and integration themselves.

Each trial calibrates anew (noise and last digits of every point, what the reference gets wrong everywhere), corrects
the traces of two runs as they were read, and integrates them by a clock of its own; nothing is linearised. The spread
of what comes out must be what the budget states.
Source: JCGM 101:2008, 7 (propagation of distributions) and 8 (validation of the GUM uncertainty framework by it).
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from calibrated_sensor import CURRENTS_A, TrueReference, TrueSensor, bench_reference, points
from opjoule.base.units import Quantity
from opjoule.energy.baseline import idle_power, marginal_energy
from opjoule.energy.calibration.fitting import CalibrationFault, calibrate
from opjoule.energy.cells import Cells
from opjoule.energy.comparison import difference, ratio
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.window import Timebase, Window, window_energy_j
from opjoule.meters.chips import ina219_breakout

TRIALS = 1000
TOLERANCE = 0.07
"""Tolerance of a standard deviation of 1000 values: three times its own (1 / sqrt(2 n))."""
BOUNDS = replace(
    ina219_breakout(),
    sensor_id="bench-1@0x40",
    current_step_a=0.0,
    voltage_step_v=0.0,
    heating_max_per_a2=0.0,
)
CLOCK_U = 9e-5
"""relative standard uncertainty of the seconds; drawn as normal, stated as a rectangle of that size"""
PERIOD_NS = 5_000_000
WINDOWS_NS = ((50, 450), (500, 1500), (1550, 1950))
SENSOR = TrueSensor(1.008, 1.1e-3, 1.0)
RUNS = {"a": (0.45, 0.9), "b": (0.5, 1.25)}
"""Current while idle, and of the run [A]; behind 0.3 ohm."""


def as_read(sensor, idle_a, run_a):
    """A run between two idle phases, as the sensor reads it."""
    current_a = np.full(2000, idle_a)
    current_a[475:1525] = run_a
    place = np.arange(2000, dtype=np.int64) * PERIOD_NS
    return PowerTrace.of(place, sensor.current(current_a), sensor.voltage(5.15 - 0.3 * current_a))


@dataclass(frozen=True)
class Energies:
    """What one run comes to."""

    total: Quantity
    marginal: Quantity


def energies(read, calibration, rate=1.0):
    bounds = replace(BOUNDS, calibration=calibration)
    cells = Cells.of(calibration.apply(read))
    before, run, after = (
        Window(start * PERIOD_NS, end * PERIOD_NS, 0.0, timebase=Timebase("board", rate, CLOCK_U * 3**0.5))
        for start, end in WINDOWS_NS
    )
    whole = window_energy_j(cells, run, bounds)
    marginal = marginal_energy(whole, idle_power(cells, [before, after], bounds), bounds)
    return Energies(
        *(
            Quantity.from_standard(e.energy.value, e.energy.standard_u, "J", shared=e.budget.shared)
            for e in (whole, marginal)
        )
    )


def calibration_of(sensor, rng=None):
    """As it came out, or as it would come out with other errors of the same distributions."""
    reference = bench_reference()
    drawn = TrueReference.draw(reference, rng) if rng else TrueReference(reference)
    taken = points(sensor, TrueReference(reference))
    if rng:
        taken = [
            replace(
                point,
                current_a=rng.normal(point.current_a, point.current_u_a),
                reference_a=rng.normal(drawn.current(true_a), point.reference_u_a),
                voltage_v=rng.normal(point.voltage_v, point.voltage_u_v),
                reference_v=rng.normal(drawn.voltage(point.reference_v), point.reference_u_v),
            )
            for point, true_a in zip(taken, CURRENTS_A, strict=True)
        ]
    return calibrate(taken, reference, BOUNDS, "this one").calibration


@pytest.fixture(scope="module")
def stated():
    """Energies of both runs with their budgets, by the calibration as it came out."""
    made = calibration_of(SENSOR)
    return {name: energies(as_read(SENSOR, *run), made) for name, run in RUNS.items()}


@pytest.fixture(scope="module")
def drawn():
    """name -> values of all trials; the two runs of a trial have one calibration, and a clock each."""
    rng = np.random.default_rng(12)
    results = {"a": [], "b": []}
    while len(results["a"]) < TRIALS:
        # What is known of the voltage's gain beforehand is an input like any other: drawn, too.
        sensor = replace(SENSOR, voltage_gain=rng.normal(1.0, BOUNDS.voltage_gain_error_max / 3**0.5))
        try:
            made = calibration_of(sensor, rng)
        except CalibrationFault:
            continue  # one in a thousand strays too far, and is taken anew
        for name, run in RUNS.items():
            results[name].append(energies(as_read(sensor, *run), made, 1.0 + rng.normal(0, CLOCK_U)))
    return {
        (name, what): np.array([getattr(result, what).value for result in values])
        for name, values in results.items()
        for what in ("total", "marginal")
    }


@pytest.mark.parametrize("what", ["total", "marginal"])
@pytest.mark.parametrize("run", ["a", "b"])
def test_an_energys_budget_is_the_spread_of_the_drawn_energies(stated, drawn, run, what):
    side, values = getattr(stated[run], what), drawn[run, what]
    assert values.std(ddof=1) == pytest.approx(side.standard_u, rel=TOLERANCE)
    assert values.mean() == pytest.approx(side.value, abs=4 * side.standard_u / TRIALS**0.5)
    inside = np.abs(values - side.value) < 2 * side.standard_u
    assert 0.935 < inside.mean() < 0.97


@pytest.mark.parametrize("what", ["total", "marginal"])
def test_a_comparisons_uncertainty_is_the_spread_of_the_drawn_comparisons(stated, drawn, what):
    a, b = (getattr(stated[run], what) for run in "ab")
    first, second = drawn["a", what], drawn["b", what]
    assert (first / second).std(ddof=1) == pytest.approx(ratio(a, b).standard_u, rel=TOLERANCE)
    assert (first - second).std(ddof=1) == pytest.approx(difference(a, b).standard_u, rel=TOLERANCE)


@pytest.mark.parametrize("what", ["total", "marginal"])
def test_the_same_energies_by_two_calibrations_differ_by_far_more(stated, drawn, what):
    """What would be stated without the correlation is what independent trials show."""
    a, b = (getattr(stated[run], what) for run in "ab")
    shuffled = np.random.default_rng(13).permutation(drawn["b", what])
    alone = ratio(a.stated, b.stated)
    assert (drawn["a", what] / shuffled).std(ddof=1) == pytest.approx(alone.standard_u, rel=TOLERANCE)
    assert ratio(a, b).standard_u < alone.standard_u / 4


def test_the_clocks_alone_are_left_of_equal_runs(stated):
    a = stated["a"].total
    assert ratio(a, a).standard_u == pytest.approx(2**0.5 * CLOCK_U, rel=1e-2)
