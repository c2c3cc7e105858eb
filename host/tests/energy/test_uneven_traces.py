"""Traces whose stamps are at uneven distances: what flows between the samples is in the interval."""

import numpy as np
import pytest
from opjoule.energy.cells import Cells
from opjoule.energy.error_bounds import ErrorBounds
from opjoule.energy.trace.power_trace import PowerTrace
from opjoule.energy.window import Window, window_energy_j

BOUNDS = ErrorBounds({}, 0.0, 0.0, 0.0, 10.0, 1.0, 0.0)
"""A meter without errors of its own."""
GRID_S, SPAN_S = 1e-4, 10.0


def load_w(rng, kind):
    """Power on a grid of 0.1 ms."""
    size = round(SPAN_S / GRID_S)
    if kind == "noise":
        return rng.normal(3.0, 1.0, size // 5).repeat(5)
    flips = np.cumsum(rng.random(size) < GRID_S / 0.05) % 2
    return 2.0 + 2.0 * flips


def steps_s(rng, kind):
    """Distances of samples: between 2 and 16.5 ms, or in fours of 10 ms with a rest between them."""
    count = round(SPAN_S / 5e-3)
    if kind == "scattered":
        return rng.uniform(2e-3, 16.5e-3, count)
    return np.where(np.arange(count) % 4 == 0, rng.uniform(10e-3, 40e-3, count), 10e-3)


@pytest.mark.parametrize("stamps", ["scattered", "fours"])
@pytest.mark.parametrize("load", ["noise", "on and off"])
def test_the_interval_of_instants_at_uneven_distances_holds_the_energy(load, stamps):
    held = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        power_w, time_s = load_w(rng, load), np.cumsum(steps_s(rng, stamps))
        time_s = time_s[time_s < SPAN_S - GRID_S]
        current_a = power_w[(time_s / GRID_S).astype(int)] / 5.0
        trace = PowerTrace.of(np.rint(time_s * 1e9).astype(np.int64), current_a, np.full(current_a.size, 5.0))
        cells = Cells.of(trace)
        span_ns = cells.start_ns + 10**7, cells.end_ns - 10**7
        made = window_energy_j(cells, Window(*span_ns, 0.0), BOUNDS).energy
        running_j = np.concatenate([np.zeros(1), np.cumsum(power_w) * GRID_S])
        true_j = np.diff(np.interp(np.array(span_ns) * 1e-9, np.arange(running_j.size) * GRID_S, running_j))[0]
        held += abs(made.value - true_j) <= made.u
    assert held >= 54


def test_an_even_trace_has_the_period_as_its_shortest_cell():
    time_ns = np.arange(5000) * 1_064_000
    cells = Cells.of(PowerTrace.of(time_ns, np.full(5000, 0.6), np.full(5000, 5.0)))
    assert cells.shortest_ns == cells.period_ns
